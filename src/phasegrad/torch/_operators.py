"""The operators: settling, its derivative and certificates, each one node to autograd and to the compiler.

They take tensors and plain data. The topology comes as a name (`phasegrad.torch._registry`), a parameter that the
network does not have as None.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from phasegrad._validation import counted
from phasegrad.linearised import Verdict
from phasegrad.tensors import Settled, Structure, fitting, verdicts
from phasegrad.torch._registry import structure_of
from phasegrad.torch._states import SIGNS, Around, flat, free_states, outputs_of

# Frames of these lie between a warning and the line that it points at; the last are those of the standard library.
_PACKAGES = ("phasegrad", "torch", "contextlib", "functools")
_NAMES = ("inputs", "coupling", "omega", "field_strength", "field_phase")


class SettlingWarning(UserWarning):
    """Some samples of a batch have no equilibrium, or no gradient was found for them.

    See Also
    --------
    torch.PhaseNetwork : A PyTorch layer that settles.

    Examples
    --------
    >>> import warnings
    >>> import torch
    >>> import phasegrad as pg
    >>> layer = pg.torch.PhaseNetwork.layers(4, 8, 3)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     outputs = layer(torch.full((1, 4), float("nan")))
    >>> caught[0].category.__name__, outputs.isnan().any().item(), int(layer.unsettled_count)
    ('SettlingWarning', False, 1)
    """


@torch.library.custom_op("phasegrad::settle", mutates_args=())
def settle(
    inputs: Tensor, coupling: Tensor, omega: Tensor, field_strength: Tensor | None, field_phase: Tensor | None,
    topology: str, gradient: str, beta: float, tolerance: float, most_sweeps: int,  # noqa: ARG001
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return phases of the outputs, states and fields, where the samples settled, their residuals and sweeps."""
    structure = structure_of(topology)
    if inputs.shape[0] == 0:
        return _like(inputs, structure)
    parameters = _by_name(coupling, omega, field_strength, field_phase)

    def work() -> tuple[Tensor, ...]:
        free = free_states(structure, parameters, inputs, tolerance, most_sweeps)
        reached, settled = free.reached, free.settled
        phases = outputs_of(structure, reached.states, settled)
        states, fields = flat(reached.states, settled), flat(reached.fields, settled)
        return phases, states, fields, settled, reached.residual.clone(), reached.sweeps

    found = _guarded(work, structure, inputs, gradient)
    lost = inputs.shape[0] - int(found[3].sum())
    if lost:
        _warn(
            f"{lost} of {counted(inputs.shape[0], 'sample')} did not settle: their outputs are those that the "
            "option 'unsettled' of PhaseNetwork asks for, and no gradient passes through them. The attribute 'info' "
            "says which samples they are; leave them out of the loss if layers behind must not learn from them."
        )
    return found


@settle.register_fake
def _(*given: Any) -> Any:
    return _like(given[0], structure_of(given[5]))


def _like(inputs: Tensor, structure: Structure) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return tensors as `settle` returns them, of zeros."""
    count, size = inputs.shape[0], sum(group.size for group in structure.groups[1:])
    return (
        inputs.new_zeros(count, len(structure.network.outputs)),
        inputs.new_zeros(2, count, size),
        inputs.new_zeros(2, count, size),
        inputs.new_zeros(count, dtype=torch.bool),
        inputs.new_zeros(count),
        inputs.new_zeros(count, dtype=torch.long),
    )


@torch.library.custom_op("phasegrad::settle_backward", mutates_args=())
def settle_backward(
    slope: Tensor, inputs: Tensor, coupling: Tensor, omega: Tensor, field_strength: Tensor | None,
    field_phase: Tensor | None, states: Tensor, fields: Tensor, settled: Tensor, topology: str, gradient: str,
    beta: float, wanted: Sequence[bool],
) -> list[Tensor]:  # fmt: skip
    """Return gradients, by inputs and the parameters wanted, of what has the given slope by the outputs' phases."""
    structure = structure_of(topology)
    parameters = _by_name(coupling, omega, field_strength, field_phase)
    names = [name for name, asked in zip(_NAMES, wanted, strict=True) if asked]
    if inputs.shape[0] == 0:
        return [torch.zeros_like({"inputs": inputs, **parameters}[name]) for name in names]

    def work() -> tuple[dict[str, Tensor], int]:
        around = Around(structure, parameters, inputs, states, fields, settled)
        return around.gradients(slope, names, gradient=gradient, beta=beta)

    found, lost = _guarded(work, structure, inputs, gradient)
    if lost:
        advice = "" if gradient == "implicit" else " A smaller beta, or gradient='implicit', may find them."
        _warn(f"No gradient was found for {lost} of {counted(inputs.shape[0], 'sample')}; they add nothing.{advice}")
    return [found[name].contiguous() for name in names]


@settle_backward.register_fake
def _(*given: Any) -> Any:
    return [each.new_empty(each.shape) for each, asked in zip(given[1:6], given[-1], strict=True) if asked]


@torch.library.custom_op("phasegrad::certify", mutates_args=())
def certify(
    inputs: Tensor, coupling: Tensor, omega: Tensor, field_strength: Tensor | None, field_phase: Tensor | None,
    states: Tensor, fields: Tensor, settled: Tensor, topology: str,
) -> Tensor:  # fmt: skip
    """Return which samples have settled in states that are proved stable."""
    structure = structure_of(topology)
    parameters = _by_name(coupling, omega, field_strength, field_phase)

    def work() -> Tensor:
        around = Around(structure, parameters, inputs, states, fields, settled)
        return settled & (verdicts(around.batch, Settled(*around.free)) == int(Verdict.STABLE))

    return _guarded(work, structure, inputs, "implicit") if inputs.shape[0] else torch.zeros_like(settled)


@certify.register_fake
def _(inputs: Tensor, *_rest: Any) -> Tensor:
    return inputs.new_empty(inputs.shape[0], dtype=torch.bool)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
    tensors, plain = inputs[:5], inputs[5:]
    _, states, fields, settled, residual, sweeps = output
    ctx.mark_non_differentiable(states, fields, settled, residual, sweeps)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*tensors, states, fields, settled)
    # The structure lives as long as this graph, also without its module.
    ctx.plain, ctx.structure = plain, structure_of(plain[0])


def _backward(ctx: Any, slope: Tensor | None, *_others: Any) -> tuple[Any, ...]:
    wanted = list(ctx.needs_input_grad[:5])
    if slope is None or not any(wanted):
        return (None,) * 10
    topology, gradient, beta, _, _ = ctx.plain
    found = iter(settle_backward(slope, *ctx.saved_tensors, topology, gradient, beta, wanted))
    return (*(next(found) if asked else None for asked in wanted), None, None, None, None, None)


def _refuse_twice(_ctx: Any, *_slopes: Any) -> None:
    raise NotImplementedError(
        "A PhaseNetwork can be differentiated once: gradients of gradients are not there. Leave create_graph=True out, "
        "or detach what it gives."
    )


settle.register_autograd(_backward, setup_context=_setup)
settle_backward.register_autograd(_refuse_twice)


def _warn(message: str) -> None:
    """Warn at the line that called PyTorch or this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _PACKAGES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, SettlingWarning, stacklevel=level)


def _guarded(work: Callable[[], Any], structure: Structure, inputs: Tensor, gradient: str) -> Any:
    """Do work in the precision of the tensors, and say in words which batch would fit if memory runs out."""
    nudges = 0 if gradient == "implicit" else len(SIGNS[gradient])
    fits = fitting(structure, inputs.shape[0], inputs.element_size(), nudges, inputs.device)
    with fits, torch.autocast(inputs.device.type, enabled=False):
        return work()


def _by_name(
    coupling: Tensor, omega: Tensor, field_strength: Tensor | None, field_phase: Tensor | None
) -> Mapping[str, Tensor]:
    parameters = {"coupling": coupling, "omega": omega}
    if field_strength is not None and field_phase is not None:
        parameters |= {"field_strength": field_strength, "field_phase": field_phase}
    return parameters
