"""special: functions that are at the top, too, under the names SciPy has."""
from flowedu import digamma, erf, erfc, erfinv, exp2, expm1, log1p, logit, logsumexp, round, sinc, xlogy  # noqa: F401
from flowedu.nn.functional import log_softmax, softmax  # noqa: F401

psi = digamma
