"""Log-densities, entropies, and divergences in decimal arithmetic, written as in a textbook.

The textbook formulas cancel: lgamma(1e38) is 1e40, and the difference of two such values may be 1. Of 150
digits, at least 90 stay correct, so no rearrangement is needed, and derivatives may be central differences
with a step of 1e-60. This file shares no code with flowedu.distributions.
"""
import functools
import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

CONTEXT = Context(prec=150, Emax=10 ** 8, Emin=-10 ** 8)
D = Decimal
ZERO, ONE, HALF = D(0), D(1), D("0.5")


def exactly(f):
    """Decorate a function to run with 150 digits, on the exact values of its float arguments."""
    @functools.wraps(f)
    def run(*args):
        with localcontext(CONTEXT):
            return f(*(D(x) if isinstance(x, (int, float)) else x for x in args))
    return run


@functools.cache
def bernoulli_numbers(count: int) -> list[Decimal]:
    """Return the Bernoulli numbers B_0 to B_count."""
    numbers = [Fraction(1)]
    for m in range(1, count + 1):
        numbers.append(-sum(math.comb(m + 1, k) * b for k, b in enumerate(numbers)) / (m + 1))
    return [D(b.numerator) / D(b.denominator) for b in numbers]


@functools.cache
@exactly
def pi() -> Decimal:
    """Return pi by Machin's formula."""
    def arctan_of_inverse(n: int) -> Decimal:
        total, power, k = ZERO, ONE / n, 0
        while abs(power) > D(10) ** -149:
            total += (power if k % 2 == 0 else -power) / (2 * k + 1)
            power, k = power / (n * n), k + 1
        return total
    return 16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)


@functools.cache
@exactly
def euler() -> Decimal:
    """Return the Euler-Mascheroni constant."""
    return -digamma(ONE)


SHIFT, TERMS = 90, 60         # Stirling's series from x = 90 on: its 60th term is below 1e-110


@exactly
def log(x: Decimal) -> Decimal:
    return x.ln() if x > 0 else D("-Infinity")


@exactly
def times_log(x: Decimal, y: Decimal) -> Decimal:
    """Return x log(y), which is 0 where x is 0."""
    return ZERO if x == 0 else x * log(y)


@functools.lru_cache(4096)
@exactly
def lgamma(x: Decimal) -> Decimal:
    product = ONE
    while x < SHIFT:
        product, x = product * x, x + 1
    numbers, total, power = bernoulli_numbers(2 * TERMS), ZERO, x
    for k in range(1, TERMS + 1):
        total, power = total + numbers[2 * k] / (2 * k * (2 * k - 1) * power), power * x * x
    return (x - HALF) * x.ln() - x + (2 * pi()).ln() / 2 + total - product.ln()


@functools.lru_cache(4096)
@exactly
def digamma(x: Decimal) -> Decimal:
    total = ZERO
    while x < SHIFT:
        total, x = total - 1 / x, x + 1
    numbers, power = bernoulli_numbers(2 * TERMS), x * x
    total += x.ln() - 1 / (2 * x)
    for k in range(1, TERMS + 1):
        total, power = total - numbers[2 * k] / (2 * k * power), power * x * x
    return total


def derivative(f, args: tuple, i: int) -> Decimal:
    """Return the derivative of f by its argument i, which is not 0."""
    h = D("1e-60")
    with localcontext(CONTEXT):
        args = [D(x) for x in args]
        low, high = ([*args[:i], args[i] * (1 + sign * h), *args[i + 1:]] for sign in (-1, 1))
        return (f(*high) - f(*low)) / (2 * h * args[i])


# ---- log-densities of (value, parameters)
@exactly
def normal(x, loc, scale):
    return -((x - loc) / scale) ** 2 / 2 - log(scale) - log(2 * pi()) / 2


@exactly
def laplace(x, loc, scale):
    return -abs(x - loc) / scale - log(2 * scale)


@exactly
def cauchy(x, loc, scale):
    return -log(1 + ((x - loc) / scale) ** 2) - log(scale) - log(pi())


@exactly
def gumbel(x, loc, scale):
    z = (loc - x) / scale
    return z - z.exp() - log(scale)


@exactly
def student_t(x, df, loc, scale):
    z = (x - loc) / scale
    return (lgamma((df + 1) / 2) - lgamma(df / 2) - log(df * pi()) / 2 - log(scale)
            - (df + 1) / 2 * log(1 + z * z / df))


@exactly
def half_normal(x, scale):
    return normal(x, ZERO, scale) + log(D(2))


@exactly
def half_cauchy(x, scale):
    return cauchy(x, ZERO, scale) + log(D(2))


@exactly
def exponential(x, rate):
    return log(rate) - rate * x


@exactly
def weibull(x, scale, k):
    z = log(x / scale)
    return log(k) - log(scale) + (k - 1) * z - (k * z).exp()


@exactly
def pareto(x, scale, alpha):
    return log(alpha) + alpha * log(scale) - (alpha + 1) * log(x)


@exactly
def gamma(x, a, rate):
    return a * log(rate) + (a - 1) * log(x) - rate * x - lgamma(a)


@exactly
def chi2(x, df):
    return gamma(x, df / 2, HALF)


@exactly
def beta(x, a, b):
    return (a - 1) * log(x) + (b - 1) * log(1 - x) + lgamma(a + b) - lgamma(a) - lgamma(b)


@exactly
def dirichlet(*args):
    x, a = args[:len(args) // 2], args[len(args) // 2:]
    return sum((b - 1) * log(y) - lgamma(b) for y, b in zip(x, a)) + lgamma(sum(a))


@exactly
def bernoulli(x, p):
    return times_log(x, p) + times_log(1 - x, 1 - p)


@exactly
def bernoulli_by_logits(x, logit):
    return x * logit - log(1 + logit.exp())


@exactly
def geometric(k, p):
    return times_log(k, 1 - p) + log(p)


@exactly
def geometric_by_logits(k, logit):
    return logit - (k + 1) * log(1 + logit.exp())


@exactly
def binomial(k, n, p):
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + times_log(k, p) + times_log(n - k, 1 - p)


@exactly
def binomial_by_logits(k, n, logit):
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * logit - n * log(1 + logit.exp())


@exactly
def poisson(k, rate):
    return times_log(k, rate) - rate - lgamma(k + 1)


# ---- entropies
@exactly
def gamma_entropy(a, rate):
    return a - log(rate) + lgamma(a) + (1 - a) * digamma(a)


@exactly
def chi2_entropy(df):
    return gamma_entropy(df / 2, HALF)


@exactly
def student_t_entropy(df, loc, scale):
    h = df / 2
    return (log(scale) + (h + HALF) * (digamma(h + HALF) - digamma(h)) + log(df) / 2
            + lgamma(h) + lgamma(HALF) - lgamma(h + HALF))


@exactly
def dirichlet_entropy(*a):
    total = sum(a)
    return (sum(map(lgamma, a)) - lgamma(total) + (total - len(a)) * digamma(total)
            - sum((b - 1) * digamma(b) for b in a))


@exactly
def bernoulli_entropy(p):
    return -times_log(p, p) - times_log(1 - p, 1 - p)


@exactly
def geometric_entropy(p):
    return bernoulli_entropy(p) / p


@exactly
def weibull_entropy(scale, k):
    return euler() * (1 - 1 / k) + log(scale / k) + 1


@exactly
def pareto_entropy(scale, alpha):
    return log(scale / alpha) + 1 + 1 / alpha


@exactly
def exponential_entropy(rate):
    return 1 - log(rate)


@exactly
def log_of_scale(constant):
    """Return the entropy function log(scale) + constant."""
    return lambda *args: exactly(lambda scale: log(scale) + constant)(args[-1])


# ---- divergences of (parameters of p, parameters of q)
@exactly
def gamma_kl(a, r, b, s):
    return b * log(r / s) + lgamma(b) - lgamma(a) + (a - b) * digamma(a) + (s - r) * a / r


@exactly
def dirichlet_kl(*args):
    a, b = args[:len(args) // 2], args[len(args) // 2:]
    return (lgamma(sum(a)) - lgamma(sum(b)) - sum(lgamma(x) - lgamma(y) for x, y in zip(a, b))
            + sum((x - y) * (digamma(x) - digamma(sum(a))) for x, y in zip(a, b)))


@exactly
def bernoulli_kl(p, q):
    return times_log(p, p / q) + times_log(1 - p, (1 - p) / (1 - q))


@exactly
def geometric_kl(p, q):
    return bernoulli_kl(p, q) / p


@exactly
def poisson_kl(a, b):
    return a * log(a / b) - a + b


@exactly
def exponential_kl(a, b):
    return b / a - 1 - log(b / a)


@exactly
def normal_kl(m, s, n, t):
    return log(t / s) + (s * s + (m - n) ** 2) / (2 * t * t) - HALF


@exactly
def half_normal_kl(s, t):
    return normal_kl(ZERO, s, ZERO, t)


@exactly
def laplace_kl(m, s, n, t):
    off = abs(m - n)
    return log(t / s) + off / t + s / t * (-off / s).exp() - 1


@exactly
def cauchy_kl(m, s, n, t):
    return log(((s + t) ** 2 + (m - n) ** 2) / (4 * s * t))


@exactly
def gumbel_kl(m, s, n, t):
    ratio, places = s / t, (n - m) / t
    return -log(ratio) - places + (ratio - 1) * euler() + (places + lgamma(1 + ratio)).exp() - 1


@exactly
def pareto_kl(s, a, t, b):
    return b * log(s / t) - log(b / a) + b / a - 1
