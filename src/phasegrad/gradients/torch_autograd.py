r"""The autograd gradient: an independent implementation in PyTorch.

It shares no code with the rest of the package. Forces are written as dense matrix expressions of tensors, the
equilibrium is found by its own Newton iteration with a Jacobian that autograd derives, and a
`torch.autograd.Function` differentiates the result implicitly. Agreement with the other methods is therefore
evidence about the equations, not about shared helpers.

Newton starts from the given equilibrium rounded to two decimals: near enough to end in the same state among
several, and all further digits are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad.dynamics import Cost
from phasegrad.equilibrium import Equilibrium
from phasegrad.gradients.result import Gradient, Question, ask
from phasegrad.interactions import Interaction, OddSeries, Sine
from phasegrad.network import Network
from phasegrad.objectives import (
    ClassTargets,
    CosineCrossEntropy,
    OutputDifferences,
    PeriodicDistance,
    PhaseTargets,
)
from phasegrad.solvers.regime import refuse_dense_solve

Array = NDArray[Any]
Tensor = Any

_SAME_STATE = 1e-6
_MAX_STEPS = 50


def autograd(
    network: Network,
    equilibrium: Equilibrium,
    objective: Cost,
    target: ArrayLike,
    *,
    wrt: str | Iterable[str] = "omega",
    frequencies: str = "centred",
) -> Gradient:
    """Return the gradient by PyTorch's automatic differentiation through a solver of its own.

    Needs PyTorch (``pip install phasegrad[autograd]``).

    Parameters
    ----------
    network : Network
    equilibrium : Equilibrium
        The free equilibrium of that network, any batch shape.
    objective : Cost
        For example `PhaseTargets`.
    target : array_like, shape (..., M)
        One target per sample, or one for all.
    wrt : str or sequence of str
        Any of "omega", "coupling", "field_strength", "field_phase".
    frequencies : {"centred", "raw"}
        Whether the gradient by omega is by the centred or by the raw frequencies.
    """
    _import_torch()
    question = ask("autograd", network, equilibrium, objective, target, wrt, frequencies)
    refuse_dense_solve(network, "autograd")
    names = list(question.wrt)
    if "coupling" in names and not network.reciprocal:
        names.append("coupling_reverse")
    batch = question.system.batch
    widths = {name: network.n_edges if name.startswith("coupling") else network.size for name in names}
    values = {name: np.zeros((batch, width)) for name, width in widths.items()}
    ok = np.zeros(batch, dtype=bool)
    with _one_thread():
        for b in question.solvable:
            gradients, ok[b] = _sample_gradient(question, int(b), names)
            for name in names:
                values[name][b] = gradients[name]
    return question.answer(values, ok=ok)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep PyTorch on one thread: on matrices this small its threads wait for each other most of the time."""
    torch = _import_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _sample_gradient(question: Question, b: int, names: list[str]) -> tuple[dict[str, Array], bool]:
    torch = _import_torch()
    network = question.network
    leaves = _parameters(question, b)
    for name in names:
        leaves[name].requires_grad_(True)
    held = torch.zeros(network.size, dtype=torch.float64)
    if network.clamps_inputs:
        assert question.inputs is not None
        held[list(network.inputs)] = network.input_scale * torch.tensor(question.inputs[b])
    moving = torch.tensor(network.free)
    order = list(leaves)

    def equation(free_phases: Tensor, *values: Tensor) -> Tensor:
        phases = held.index_put((moving,), free_phases)
        return _force(network, question.frequencies, phases, dict(zip(order, values, strict=True)))[moving]

    start = torch.tensor(np.round(question.phases[b][network.free], 2))
    settled = _settle_function().apply(equation, start, *leaves.values())
    phases = held.index_put((moving,), settled)
    try:
        _cost(question, b, phases).backward()
    except torch.linalg.LinAlgError:
        return {name: np.full(leaves[name].shape, np.nan) for name in names}, False
    gradients = {}
    for name in names:
        slope = leaves[name].grad
        gradients[name] = np.zeros(leaves[name].shape) if slope is None else slope.numpy()
    same = bool(np.max(np.abs(phases.detach().numpy() - question.phases[b]), initial=0.0) < _SAME_STATE)
    return gradients, same


def _parameters(question: Question, b: int) -> dict[str, Tensor]:
    """Return the network's parameters as leaf tensors; centred frequencies are leaves of their own."""
    torch = _import_torch()
    network = question.network
    omega = torch.tensor(network.omega.copy())
    if network.inputs and not network.clamps_inputs and question.inputs is not None:
        omega[list(network.inputs)] = network.input_scale * torch.tensor(question.inputs[b])
    if network.pinned and question.frequencies == "centred":
        omega = omega - omega.mean()
    leaves = {"omega": omega, "coupling": torch.tensor(network.coupling.copy())}
    for name in ("coupling_reverse", "field_strength", "field_phase"):
        values = getattr(network, name)
        if values is not None:
            leaves[name] = torch.tensor(values.copy())
    return leaves


def _force(network: Network, frequencies: str, phases: Tensor, values: dict[str, Tensor]) -> Tensor:
    torch = _import_torch()
    omega = values["omega"]
    if network.pinned and frequencies == "raw":
        omega = omega - omega.mean()
    i, j = torch.tensor(network.edges.copy()).T
    matrix = torch.zeros((network.size, network.size), dtype=torch.float64)
    matrix = matrix.index_put((i, j), values["coupling"])
    matrix = matrix.index_put((j, i), values.get("coupling_reverse", values["coupling"]))
    pull = _interaction(network.interaction)
    total = omega + (matrix * pull(phases[None, :] - phases[:, None])).sum(dim=1)
    if "field_strength" in values:
        total = total + values["field_strength"] * pull(values["field_phase"] - phases)
    return total


def _interaction(interaction: Interaction) -> Callable[[Tensor], Tensor]:
    torch = _import_torch()
    if type(interaction) is Sine:
        return lambda angle: torch.sin(angle)
    if type(interaction) is OddSeries:
        weights = interaction.coefficients
        return lambda angle: sum(a * torch.sin(k * angle) for k, a in enumerate(weights, 1))
    function = _elementwise_function()
    return lambda angle: function.apply(angle, interaction.value, interaction.derivative)


def _cost(question: Question, b: int, phases: Tensor) -> Tensor:
    torch = _import_torch()
    outputs = phases[torch.tensor(question.nodes)]
    objective, target = question.objective, torch.tensor(question.target[b].copy())
    if isinstance(objective, CosineCrossEntropy):
        return torch.nn.functional.cross_entropy(objective.sharpness * torch.cos(outputs), target)
    away = outputs - target
    if isinstance(objective, PeriodicDistance):
        return (1 - torch.cos(away)).sum()
    if isinstance(objective, OutputDifferences):
        pairs = away[:, None] - away[None, :]
        return (pairs**2).sum() / (4 * len(away))
    if isinstance(objective, ClassTargets | PhaseTargets):
        return 0.5 * (away**2).sum()
    slope = -objective.force(outputs.detach().numpy(), question.target[b])
    return (outputs * torch.tensor(slope)).sum()


def _settle_function() -> Any:
    """Return the autograd Function that finds an equilibrium and differentiates it implicitly."""
    torch = _import_torch()

    class Settle(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, equation: Callable[..., Tensor], start: Tensor, *values: Tensor) -> Tensor:
            fixed = [value.detach() for value in values]
            phases = start.clone()
            ctx.equation = equation
            for _ in range(_MAX_STEPS):
                jacobian = torch.autograd.functional.jacobian(lambda p: equation(p, *fixed), phases)
                step, failed = torch.linalg.solve_ex(jacobian, -equation(phases, *fixed))
                if failed:
                    phases = torch.full_like(phases, torch.nan)
                    break
                phases = phases + step
                if step.numel() == 0 or float(step.abs().max()) < 1e-13:
                    break
            ctx.save_for_backward(phases, *values)
            return phases

        @staticmethod
        def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
            phases, *values = ctx.saved_tensors
            leaves = [value.detach().requires_grad_(True) for value in values]
            jacobian = torch.autograd.functional.jacobian(lambda p: ctx.equation(p, *leaves), phases).detach()
            response = torch.linalg.solve(jacobian.T, -slopes[0])
            with torch.enable_grad():
                balance = ctx.equation(phases.detach(), *leaves)
            grads = torch.autograd.grad(balance, leaves, response, allow_unused=True)
            return None, None, *grads

    return Settle


def _elementwise_function() -> Any:
    """Return the autograd Function of a NumPy function with a known derivative."""
    torch = _import_torch()

    class Elementwise(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, angle: Tensor, value: Any, derivative: Any) -> Tensor:
            ctx.slope = torch.tensor(derivative(angle.detach().numpy()))
            return torch.tensor(value(angle.detach().numpy()))

        @staticmethod
        def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
            return slopes[0] * ctx.slope, None, None

    return Elementwise


def _import_torch() -> Any:
    try:
        import torch
    except ImportError:
        raise ImportError(
            "The autograd gradient needs PyTorch, which is not installed. Install it with "
            "'pip install phasegrad[autograd]', or use adjoint, which is exact and needs nothing."
        ) from None
    return torch
