"""A state whose smallest eigenvalue is zero to rounding is neither stable nor unstable: it is marginal."""

import dense_networks as dense
import numpy as np
import pytest
from marginal_states import MARGINAL, marginal_case

#: Share of the Laplacian's norm below which an eigenvalue counts as zero.
EDGE = 1e-10


@pytest.mark.parametrize("make", MARGINAL, ids=lambda make: make.__name__)
def test_the_states_are_on_the_edge(make):
    """No force, and an independent Jacobian whose largest eigenvalue is zero."""
    case, state = marginal_case(make)
    dynamics = dense.Dynamics(case)
    assert np.max(np.abs(dynamics.rate(state[None]))) <= 1e-14 * dynamics.stiffness()
    assert np.abs(dynamics.slowest(state[None])[0]) <= EDGE * dynamics.stiffness()


@pytest.mark.parametrize("make", MARGINAL, ids=lambda make: make.__name__)
@pytest.mark.parametrize("word", ["auto", "newton", "sparse", "flow"])
def test_a_state_on_the_edge_is_called_marginal(make, word):
    """The solver "batch" is left out: alignment leads it away from such states."""
    case, state = marginal_case(make)
    found = case.find(state, word)
    assert found.status.item().name == "MARGINAL"
    assert not found.stable
