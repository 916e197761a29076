"""The gradient methods, one file each: a public function and its record. A new one is a file, and its import here."""

from phasegrad.gradients._method import Method
from phasegrad.gradients.methods import (
    adjoint,
    autograd,
    centred,
    continuous,
    dyadic,
    finite_difference,
    holomorphic,
    random_sign,
    stochastic,
    two_phase,
)

_MODULES = (
    adjoint,
    two_phase,
    centred,
    holomorphic,
    finite_difference,
    autograd,
    dyadic,
    random_sign,
    continuous,
    stochastic,
)
#: Every way to a gradient, by name: the one table of methods.
METHODS: dict[str, Method] = {module.METHOD.name: module.METHOD for module in _MODULES}
