"""special: functions that torch also has at its top level, under SciPy's names."""
from flowedu import (  # noqa: F401
    digamma,
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    log1p,
    logit,
    logsumexp,
    round,
    sinc,
    xlogy,
)
from flowedu.nn.functional import log_softmax, softmax  # noqa: F401

psi = digamma
