"""When a gradient says that it may be wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phasegrad._validation import BoolArray
from phasegrad.gradients._exact import natural_size
from phasegrad.gradients._gradient import Gradient, warn
from phasegrad.gradients._problem import Problem

#: Share of the largest entry of a gradient that its stated error may be before a warning says so.
LIMIT = 0.01
#: The same under a nudge that was given by hand: its error of order beta was asked for.
GIVEN_NUDGE_LIMIT = 0.1
NEARLY_SINGULAR = (
    "Its equilibrium is nearly unstable, was settled too loosely, or strengths span too many decades for the digits of "
    "a float: move away from the end of locking, settle more tightly, or bring the strengths closer together."
)
# Share of a gradient nearby below which an error is that of a zero.
_NOTHING = 1e-9


def checked(problem: Problem, gradient: Gradient, advice: Callable[[], str], limit: float = LIMIT) -> Gradient:
    """Return the gradient, with a warning where its stated error exceeds the limit."""
    worst = 0.0, ""
    for name in problem.wrt:
        relative = gradient.relative_error(name).ravel()
        large = _matters(problem, gradient, name, relative > limit)
        if np.any(large) and float(np.max(relative[large])) > worst[0]:
            worst = float(np.max(relative[large])), name
    if worst[1]:
        count = int(np.sum(gradient.relative_error(worst[1]) > limit))
        which = "" if gradient.cost.size == 1 else f" of the worst of {count} such samples out of {gradient.cost.size}"
        warn(
            f"{problem.owner}: the gradient by {worst[1]}{which} may be off by {in_words(worst[0])} of its largest "
            f"entry; gradient.error has the estimate for every entry. {advice()}"
        )
    return gradient


def in_words(share: float) -> str:
    """Return a share as a percentage; beyond ten times the whole it is no measure any more."""
    if share >= 10:
        return "more than ten times the size"
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def _matters(problem: Problem, gradient: Gradient, name: str, large: BoolArray) -> BoolArray:
    """Return which of the large relative errors (B,) belong to more than a gradient that is zero but for rounding."""
    rows = np.flatnonzero(large)
    if rows.size:
        error = np.max(gradient.error[name].reshape(large.size, -1)[rows], axis=1)
        large[rows] = ~(error <= _NOTHING * natural_size(problem.take(rows))[name])
    return large
