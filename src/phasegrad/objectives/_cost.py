r"""What every cost is: a number for the phases of the outputs, its force and its curvature.

Only `Cost.cost` must be written. Force and Hessian then follow by central differences, with errors of order 1e-10 and
1e-6, good enough to train on; written by hand with analytic functions they are exact, and every gradient method takes
them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array, last_axis_array
from phasegrad.networks import Network

# Central differences: truncation of order step^2 against rounding over step, and over step^2.
_STEP, _WIDE_STEP = 1e-5, 1e-4
# Outputs beyond which nobody tries a Hessian out.
_WIDE = 1000


class Cost:
    """A cost of the phases of the outputs; subclass it with `cost`.

    Phases have the shape (..., M), one per output, and targets what `check_target` returns, with the same leading
    shape. For the holomorphic gradient the formula must accept complex phases.

    See Also
    --------
    PhaseTargets : Squared distance from given phases.
    ClassObjective : The base of costs that stand for classes.
    Nudge : A weak pull of the outputs.
    train : Train one network or many.

    Examples
    --------
    The outputs should be opposite each other, wherever they are:

    >>> import numpy as np, phasegrad as pg
    >>> class Opposite(pg.Cost):
    ...     def cost(self, phases, target):
    ...         return target[..., 0] * (1 + np.cos(phases[..., 0] - phases[..., 1]))
    >>> network = pg.networks.random_network(6, seed=1)
    >>> equilibrium = pg.find_equilibrium(network)
    >>> question = (network, equilibrium, Opposite(), [1.0, 1.0])
    >>> exact, nudged = pg.adjoint(*question), pg.centred(*question)
    >>> bool(abs(exact.omega - nudged.omega).max() < 1e-4 * abs(exact.omega).max())
    True
    """

    def cost(self, phases: Array, target: Array) -> Array:
        """Return the cost, shape (...), of output phases (..., M)."""
        raise NotImplementedError(f"{type(self).__name__} must say what it costs: write its 'cost' method.")

    def force(self, phases: Array, target: Array) -> Array:
        """Return minus the derivative of the cost, shape (..., M)."""
        outputs = np.asarray(phases)
        slopes = []
        for unit in np.eye(outputs.shape[-1]):
            up, down = (self.cost(outputs + sign * _STEP * unit, target) for sign in (1, -1))
            slopes.append((np.asarray(down) - np.asarray(up)) / (2 * _STEP))
        return np.stack(slopes, axis=-1)

    def hessian(self, phases: Array, target: Array) -> Array:
        """Return the second derivative of the cost, shape (..., M, M)."""
        outputs = np.asarray(phases)
        step = _STEP if type(self).force is not Cost.force else _WIDE_STEP
        rows = []
        for unit in np.eye(outputs.shape[-1]):
            up, down = (self.force(outputs + sign * step * unit, target) for sign in (1, -1))
            rows.append((np.asarray(down) - np.asarray(up)) / (2 * step))
        matrix = np.stack(rows, axis=-1)
        return (matrix + np.swapaxes(matrix, -1, -2)) / 2

    def nodes(self, network: Network) -> tuple[int, ...]:
        """Return the nodes whose phases the cost reads: the network's outputs."""
        if not network.outputs:
            raise ValueError("This network has no outputs. Name them in the Network: Network(..., outputs=[...]).")
        return network.outputs

    def check_target(self, target: ArrayLike, network: Network) -> Array:
        """Return the target with its batch shape in front and one entry per output behind, or raise ValueError."""
        width = len(self.nodes(network))
        return last_axis_array("target", target, width, "one per output", type(self).__name__)

    def torch_cost(self, phases: Any, target: Any) -> Any:
        """Return the cost of one sample as tensors: a second writing, for the autograd gradient.

        Unless a subclass writes it, the slope is taken from `force`, and autograd differentiates the rest.
        """
        import torch

        slope = -self.force(phases.detach().numpy(), target.numpy())
        return (phases * torch.tensor(slope)).sum()

    def torch_force(self, phases: Any, target: Any) -> Any:
        """Return minus the slope of the cost, (B, M), of a batch of tensors (B, M), on any device.

        It follows from `torch_cost`; where a subclass does not write that, from `force`, by way of NumPy.
        """
        import torch

        if type(self).torch_cost is Cost.torch_cost:
            arrays = (each.detach().double().cpu().numpy() for each in (phases, target))
            return torch.as_tensor(self.force(*arrays), dtype=phases.dtype).to(phases.device)
        return -torch.func.vmap(torch.func.grad(self.torch_cost))(phases, target)


def check_cost(objective: Any, phases: Array, target: Array, owner: str) -> None:
    """Raise in words where an objective is none, or where what it returns for real phases (B, M) cannot be used."""
    if not isinstance(objective, Cost):
        raise TypeError(
            f"{owner} needs an objective such as PhaseTargets() or a subclass of Cost of your own. Got {objective!r}"
            f"{' (a class: call it)' if isinstance(objective, type) else ''}."
        )
    (total, width), wide = phases.shape, phases.shape[1] > _WIDE
    for name, shape in (("cost", ()), ("force", (width,)), ("hessian", (width, width)))[: 2 if wide else 3]:
        # Few methods use the Hessian, which may take many evaluations: one sample will do.
        batch = min(total, 1) if name == "hessian" else total
        given, words = getattr(objective, name)(phases[:batch], target[:batch]), f"{type(objective).__name__}.{name}"
        try:
            answer = np.asarray(given)
        except ValueError:
            answer = np.array(None)
        if answer.dtype.kind not in "biufc":
            raise ValueError(f"{words} must return an array of numbers. Got {given!r:.80}.")
        if answer.shape != (batch, *shape):
            raise ValueError(
                f"{words} must return shape {_shape((batch, *shape), batch)} for output phases of shape "
                f"{_shape((batch, width), batch)}. Got {_shape(answer.shape, batch)}: keep the leading axes and sum "
                "over the last."
            )
        if np.iscomplexobj(answer):
            raise ValueError(f"{words} must return real numbers for real phases. Got complex ones.")
        if not np.all(np.isfinite(answer)):
            row = int(np.argmax(~np.isfinite(answer.reshape(batch, -1)).all(axis=1)))
            raise ValueError(f"{words} must return finite numbers. Got {answer[row]} for output phases {phases[row]}.")
    own = type(objective).force is not Cost.force and not type(objective).__module__.startswith("phasegrad.")
    if own and total and not wide:
        _check_force(objective, phases[:4], target[:4])


@np.errstate(all="ignore")
def _check_force(objective: Cost, phases: Array, target: Array) -> None:
    """Raise ValueError where the force is not minus the slope of the cost in any of the samples.

    They are moved a little, away from ties between outputs; a kink, or what is not finite, in one of them says nothing.
    """
    phases = phases + np.random.default_rng(0).uniform(-0.1, 0.1, phases.shape)
    mine, slope = (np.asarray(force(phases, target)) for force in (objective.force, partial(Cost.force, objective)))
    size = np.maximum(*(np.linalg.norm(each, axis=1) for each in (mine, slope)))
    wrong = np.linalg.norm(mine - slope, axis=1) > 0.1 * size + 1e-8 * (1 + np.abs(objective.cost(phases, target)))
    if np.all(wrong):
        raise ValueError(
            f"{type(objective).__name__}.force must be minus the slope of its cost. Got {mine[0]} for output phases "
            f"{phases[0]}, where central differences of the cost give {slope[0]}. Leave 'force' out to use these."
        )


def _shape(shape: tuple[int, ...], batch: int) -> str:
    """Return a shape in words, the number of samples as B."""
    named = ["B" if axis == 0 and size == batch else str(size) for axis, size in enumerate(shape)]
    return f"({', '.join(named)}{',' if len(named) == 1 else ''})"
