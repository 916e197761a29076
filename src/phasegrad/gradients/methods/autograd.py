r"""The autograd gradient: a second implementation in PyTorch.

What it shares with the other methods is the network's numbers, the checks of the arguments, and the state near which it
looks. Its forces are a second writing (`Term.torch_force`, `Cost.torch_cost`: dense matrix expressions of tensors), the
equilibrium is found by its own Newton iteration with a Jacobian that autograd derives, and differentiated implicitly.
Interactions and costs of your own without a torch form are called through NumPy.

Newton starts from the given equilibrium rounded to two decimals: near enough to end in the same state among
several, and all further digits are its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._process import one_torch_thread
from phasegrad._validation import Array, how_to_install
from phasegrad.equilibria import Equilibrium
from phasegrad.gradients._accuracy import NEARLY_SINGULAR, checked
from phasegrad.gradients._exact import distances, exact_slopes
from phasegrad.gradients._gradient import Gradient
from phasegrad.gradients._method import Method
from phasegrad.gradients._problem import INPUTS, Problem, pose
from phasegrad.linearised import refuse_dense_solve
from phasegrad.networks import Network
from phasegrad.objectives import Cost

_SAME_STATE = 1e-6
_MAX_STEPS = 50
_ADVICE = f"Either two writings of a term or cost disagree, its force and 'torch_force'. Or: {NEARLY_SINGULAR}"


def autograd(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *,
    wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
) -> Gradient:  # fmt: skip
    """Return the gradient by PyTorch's automatic differentiation through a solver of its own.

    Needs PyTorch (``pip install '.[torch]'`` in a clone of the repository); the arguments are those of `adjoint`.

    See Also
    --------
    adjoint : One transposed linear solve; exact.
    finite_difference : Differences of the cost.
    check_gradients : Several methods in one table.
    torch.PhaseNetwork : A PyTorch layer that settles.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.layered(2, 5, 2, seed=0)
    >>> question = (network, pg.find_equilibrium(network, [0.8, -0.6]), pg.PhaseTargets(), [-0.2, 0.2])
    >>> print(f"{pg.gradients.cosine(pg.gradients.autograd(*question), pg.adjoint(*question)):.8f}")
    1.00000000
    """
    _import_torch()
    problem = pose("autograd", network, equilibrium, objective, target, wrt, frequencies)
    refuse_dense_solve(network.graph, "autograd", reciprocal=network.reciprocal)
    names, batch = list(problem.wrt), problem.system.batch
    values = {name: np.zeros((batch, problem.width(name))) for name in names}
    ok = np.zeros(batch, dtype=bool)
    # On matrices this small PyTorch's threads would wait for each other most of the time.
    with one_torch_thread():
        for b in problem.solvable:
            gradients, ok[b] = _sample_gradient(problem, int(b), names)
            for name, slope in problem.collected(gradients).items():
                values[name][b] = slope
    # The values are this method's own; how far off they may be, the other writing of the same formulas tells.
    exact = exact_slopes(problem)
    return checked(problem, problem.answer(values, distances(problem, values, exact), ok=ok), lambda: _ADVICE)


def _sample_gradient(problem: Problem, b: int, names: list[str]) -> tuple[dict[str, Array], bool]:
    """Return the gradient of one sample by all that is named, and whether it belongs to the state given.

    By a parameter it has one entry for every node or edge; see `Problem.collected`.
    """
    torch = _import_torch()
    system, graph = problem.system, problem.network.graph
    leaves, held = _leaves(problem, b, names)
    moving, goal = torch.tensor(graph.free), torch.tensor(problem.target[b].copy())

    def balance(free: Any) -> Any:
        whole = held.index_put((moving,), free)
        force = sum(term.torch_force(graph, leaves, whole) for term in system.terms)
        return force[moving] - force[graph.reference] if system.drifts else force[moving]

    phases = torch.tensor(np.round(problem.phases[b][graph.free], 2))
    lost = {name: np.full(leaves[name].shape, np.nan) for name in names}, False
    for _ in range(_MAX_STEPS):
        jacobian = torch.autograd.functional.jacobian(balance, phases)
        step, failed = torch.linalg.solve_ex(jacobian, -balance(phases).detach())
        if failed:
            return lost
        phases = phases + step
        if step.numel() == 0 or float(step.abs().max()) < 1e-13:
            break
    outputs = phases.clone().requires_grad_(True)
    cost = problem.objective.torch_cost(held.index_put((moving,), outputs)[torch.tensor(problem.nodes)], goal)
    (slope,) = torch.autograd.grad(cost, outputs)
    # dF + J dtheta = 0, so that dC = slope . dtheta = -(J^-T slope) . dF.
    response, failed = torch.linalg.solve_ex(torch.autograd.functional.jacobian(balance, phases).T, -slope)
    if failed:
        return lost
    wanted = [leaves[name] for name in names]
    slopes = torch.autograd.grad(balance(phases), wanted, response, allow_unused=True)
    found = np.max(np.abs(phases.numpy() - problem.phases[b][graph.free]), initial=0.0) < _SAME_STATE
    zeros = (np.zeros(leaf.shape) for leaf in wanted)
    given = (zero if each is None else each.numpy() for zero, each in zip(zeros, slopes, strict=True))
    return dict(zip(names, given, strict=True)), bool(found)


def _leaves(problem: Problem, b: int, names: list[str]) -> tuple[dict[str, Any], Any]:
    """Return what one sample is made of as tensors, by name, and the phases of what is held, zero elsewhere, (N,).

    Where the gradient with respect to the data is asked for, frequencies or clamped phases are functions of the data.
    """
    torch = _import_torch()
    network, system, graph = problem.network, problem.system, problem.network.graph
    leaves = {
        name: torch.tensor(values[b if values.shape[0] > 1 else 0].copy()).requires_grad_(name in names)
        for name, values in system.values.items()
    }
    phases = torch.tensor(system.held_phases[b].copy())
    if INPUTS in names and problem.inputs is not None:
        data = torch.tensor(problem.inputs[b].copy())
        leaves[INPUTS] = data.clone().requires_grad_(True)
        if graph.clamped:
            phases = phases + network.input_scale * (leaves[INPUTS] - data)
        else:
            given = {
                each.name: torch.tensor(graph.sharing.spread(each.on, network.parameters[each.name]).copy())
                for term in system.terms
                for each in term.parameters
            }
            for term in (term for term in system.terms if term.drives):
                leaves |= term.torch_in_frame(graph, given, network.input_scale * leaves[INPUTS])
    held = torch.zeros(graph.size, dtype=torch.float64)
    return leaves, held.index_put((torch.tensor(graph.held),), phases)


def _import_torch() -> Any:
    try:
        import torch
    except ImportError:
        raise ImportError(
            f"The autograd gradient needs PyTorch, which is not installed. {how_to_install('torch')} Or use adjoint, "
            "which is exact and needs nothing."
        ) from None
    return torch


METHOD = Method(autograd, trains=False, compared=True, package="torch")
