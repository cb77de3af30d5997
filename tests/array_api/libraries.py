"""Calls of SciPy, scikit-learn, and einops on tensors, compared with the same calls on NumPy's arrays.

test_libraries.py runs this as a program in a separate process, because SciPy reads SCIPY_ARRAY_API when it is
imported. `python libraries.py scipy` prints {call: problem} as JSON.
"""
import json
import os
import sys
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"
import numpy as np  # noqa: E402

import flowedu as flow  # noqa: E402

rng = np.random.default_rng(0)
x, p = rng.normal(size=(6, 4)), rng.uniform(0.1, 0.9, size=(6, 4))
big = rng.normal(size=(40, 5))
labels, target = (big[:, 0] > 0).astype(np.int64), big @ np.arange(1.0, 6.0)
chances = (target - target.min()) / (target.max() - target.min()) * 0.8 + 0.1
block = rng.normal(size=(2, 3, 4))
ARRAYS = {"x": x, "p": p, "big": big, "labels": labels, "target": target, "chances": chances, "block": block}

SCIPY = """
    special.logsumexp(x, axis=1)|special.softmax(x, axis=0)|special.log_softmax(x, axis=0)|special.expit(x)|special.logit(p)
    special.entr(p)|special.xlogy(x, p)|special.rel_entr(p, p * 2)|special.ndtr(x)|special.gammaln(p)|special.erf(x)
    stats.zscore(x)|stats.moment(x, 3)|stats.skew(x, axis=1)|stats.kurtosis(x)|stats.gmean(p)|stats.hmean(p)
    stats.pmean(p, 2.0)|stats.variation(p)|stats.sem(x)|stats.ttest_1samp(x, 0.0).pvalue|stats.ttest_ind(x, p).statistic
    stats.pearsonr(x[:, 0], p[:, 0]).statistic|stats.entropy(p)|stats.iqr(x)|stats.tmean(x, (-1.0, 1.0))
    stats.jarque_bera(x[:, 0]).statistic|stats.rankdata(x)|stats.directional_stats(x).mean_direction|stats.circmean(p)
    stats.f_oneway(x, p).pvalue|stats.bartlett(x, p).pvalue|stats.combine_pvalues(p[0]).pvalue|stats.lmoment(x)
    cluster.vq.whiten(x)|cluster.vq.vq(x, p[:2])[1]|cluster.hierarchy.linkage(x)|integrate.trapezoid(x, p)
    integrate.tanhsinh(lambda t: t * t, x[0], x[0] + 1.0).integral|integrate.cumulative_trapezoid(x)
    differentiate.derivative(lambda t: t ** 3, x).df|optimize.rosen(x)|optimize.rosen_der(x[0])|signal.detrend(x)
    optimize.elementwise.find_root(lambda t, c: t * t - c, (p * 0, p * 0 + 2.0), args=(p,)).x|signal.convolve(x[0], p[0])
    spatial.transform.Rotation.from_quat(x).as_matrix()|spatial.distance.pdist(x)|ndimage.gaussian_filter(x, 1.0)
"""
SKLEARN = """
    preprocessing.StandardScaler().fit_transform(big)|preprocessing.MinMaxScaler().fit_transform(big)
    preprocessing.Normalizer().fit_transform(big)|preprocessing.KernelCenterer().fit_transform(big @ big.T)
    preprocessing.PolynomialFeatures(2).fit_transform(big)|preprocessing.LabelEncoder().fit_transform(labels)
    abs(decomposition.PCA(2, svd_solver="full").fit_transform(big))|metrics.pairwise.rbf_kernel(big)
    discriminant_analysis.LinearDiscriminantAnalysis().fit(big, labels).predict(big)|metrics.r2_score(target, target * 0.9)
    linear_model.Ridge(solver="svd").fit(big, target).coef_|linear_model.RidgeCV(alphas=[0.1, 1.0]).fit(big, target).coef_
    linear_model.RidgeClassifier(solver="svd").fit(big, labels).predict(big)|metrics.accuracy_score(labels, 1 - labels)
    mixture.GaussianMixture(2, random_state=0, init_params="random").fit(big).means_|metrics.f1_score(labels, labels)
    metrics.mean_squared_error(target, target * 2)|metrics.confusion_matrix(labels, 1 - labels)
    metrics.pairwise.euclidean_distances(big)|metrics.log_loss(labels, chances)
    model_selection.train_test_split(big, random_state=0)[0]
    model_selection.cross_val_predict(linear_model.Ridge(solver="svd"), big, target)
"""
EINOPS = """
    rearrange(block, "a b c -> c (a b)")|rearrange([block, block], "l a b c -> a l b c")|reduce(block, "a b c -> a", "mean")
    reduce(block, "a (b 1) c -> b", "max")|reduce(block, "a (b k) c -> b c", "sum", k=1)
    reduce(block > 0, "a b c -> b", "any")|reduce(block, "a b c -> ()", "min")
    repeat(block, "a b c -> a b (c d)", d=2)|repeat(block, "a b c -> (e a) b c", e=2)
    pack([block, block[:, :, 0]], "a b *")[0]|unpack(block, [(1,), (3,)], "a b *")[1]|reduce(block, "... c -> ...", "prod")
"""


def evaluate(call: str, names: dict, arrays: dict):
    return eval(call, {**names, **arrays})


def compare(calls: str, *namespaces: dict) -> dict[str, str]:
    """Return {call: problem} for calls whose results on tensors differ from those on arrays."""
    wrong = {}
    tensors = {name: flow.tensor(a) for name, a in ARRAYS.items()}
    for names in namespaces:
        for call in [c.strip() for line in calls.strip().splitlines() for c in line.split("|")]:
            expected = np.asarray(evaluate(call, names, ARRAYS))
            try:
                result = evaluate(call, names, tensors)
            except Exception as e:
                wrong[call] = f"{type(e).__name__}: {e}"
                continue
            if expected.ndim and not isinstance(result, flow.Tensor):
                wrong[call] = f"a {type(result).__name__}"
            # Both run the same float64 algorithms on at most 200 values below 100. Some iterate to 1e-8.
            elif not np.allclose(np.asarray(result), expected, rtol=1e-6, atol=1e-8):
                wrong[call] = "other numbers"
    return wrong


def run_scipy() -> dict[str, str]:
    from scipy import (
        cluster,
        differentiate,
        integrate,
        ndimage,
        optimize,
        signal,
        spatial,
        special,
        stats,
    )
    from scipy.optimize import elementwise  # noqa: F401  (loads the submodule)
    return compare(SCIPY, {m.__name__.rpartition(".")[2]: m for m in (
        cluster, differentiate, integrate, ndimage, optimize, signal, spatial, special, stats)})


def run_sklearn() -> dict[str, str]:
    import sklearn
    from sklearn import (
        decomposition,
        discriminant_analysis,
        linear_model,
        metrics,
        mixture,
        model_selection,
        preprocessing,
    )
    sklearn.set_config(array_api_dispatch=True)
    return compare(SKLEARN, {m.__name__.rpartition(".")[2]: m for m in (
        decomposition, discriminant_analysis, linear_model, metrics, mixture, model_selection,
        preprocessing)})


def run_einops() -> dict[str, str]:
    import einops
    import einops.array_api
    wrong = compare(EINOPS, vars(einops))
    tensors = {name: flow.tensor(a) for name, a in ARRAYS.items()}
    for call in [c.strip() for line in EINOPS.strip().splitlines() for c in line.split("|")]:
        a, b = (evaluate(call, vars(m), tensors) for m in (einops, einops.array_api))
        if not np.array_equal(a.numpy(), b.numpy()):
            wrong[f"array_api: {call}"] = "other numbers than the backend's"

    class Graph(flow.nn.Graph):
        def build(self, block):
            return einops.reduce(einops.rearrange(block, "a b c -> c (b a)"), "c d -> d", "mean")

    def gradient(block):
        leaf = block.clone().requires_grad_()
        einops.einsum(einops.repeat(leaf, "a b c -> a b (c d)", d=2), "a b c -> b").square().sum().backward()
        return leaf.grad

    expected = einops.reduce(block, "a b c -> (b a)", "mean")
    if not np.allclose(Graph()(tensors["block"]).numpy(), expected, rtol=1e-12):
        wrong["graph"] = "other numbers"
    # d/dx of sum((2 sum x) ** 2)
    by_hand = np.broadcast_to((block.sum((0, 2)) * 8)[None, :, None], block.shape)
    if not np.allclose(gradient(tensors["block"]).numpy(), by_hand, rtol=1e-12):
        wrong["gradient"] = "other numbers"
    return wrong


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps({"scipy": run_scipy, "sklearn": run_sklearn, "einops": run_einops}[sys.argv[1]]()))
