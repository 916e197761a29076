"""Dense networks of many kinds, each with its dynamics written out anew: the judge of what solvers claim about them.

A `Case` is a network with one sample of inputs and perhaps a nudge. `Dynamics` knows d theta / dt = F(theta) of all its
oscillators, by products of a full coupling matrix; it shares no formula with the library.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from random_networks import connected_edges
from scipy.integrate import BDF
from scipy.linalg import expm

import phasegrad as pg

SERIES = (pg.terms.OddSeries((1.0, 0.3)), pg.terms.OddSeries((1.0, 0.1, 0.05)))
NOT_MONOTONE = (
    pg.terms.OddSeries((1.0, -0.9)),
    pg.terms.OddSeries((1.0, 0.0, -0.8)),
    pg.terms.OddSeries((0.2, 1.0, 0.5)),
)

DRIFTS = 24 * np.pi
MANY_STEPS = 4000


@dataclass(frozen=True, eq=False)
class Case:
    """A network, one sample of inputs, and a nudge toward target phases of its outputs with strength beta."""

    name: str
    network: pg.Network
    inputs: np.ndarray | None = None
    target: np.ndarray | None = None
    beta: float = 0.0

    def find(self, starts: np.ndarray, solver: str, **options) -> pg.Equilibrium:
        """Return what a solver makes of several starts (B, N)."""
        nudge = None if self.target is None else pg.Nudge(pg.PhaseTargets(), self.target, self.beta)
        return pg.find_equilibrium(self.network, self.inputs, nudge=nudge, start=starts, solver=solver, **options)


class Dynamics:
    """d theta / dt = F(theta) of a case, for phases (B, N) of all oscillators.

    Where nothing fixes the gauge all oscillators move, and a state is one that rotates as a whole. A nudge without a
    gauge of its own is a pull of somebody who holds the reference.
    """

    def __init__(self, case: Case) -> None:
        network, size = case.network, case.network.size
        self.size = size
        self.amplitudes = list(enumerate(getattr(network.interaction, "coefficients", (1.0,)), 1))
        self.matrix = np.zeros((size, size))
        i, j = network.edges.T
        back = network.parameters.get("coupling_reverse")
        self.matrix[i, j], self.matrix[j, i] = network.coupling, network.coupling if back is None else back
        self.symmetric = back is None
        self.omega = network.omega.copy()
        clamps = network.inputs if network.input_mode == "phase" else ()
        if case.inputs is not None and not clamps:
            self.omega[list(network.inputs)] = network.input_scale * case.inputs
        self.field = network.parameters.get("field_strength"), network.parameters.get("field_phase")
        self.second = network.parameters.get("second_strength"), network.parameters.get("second_phase")
        self.outputs, self.target, self.beta = list(network.outputs), case.target, case.beta
        loose = not clamps and self.field[0] is None and self.second[0] is None
        self.rotates = loose and case.target is None
        self.turns_with_reference = loose and not self.rotates
        self.held = np.zeros(size, dtype=bool)
        self.held[list(clamps)] = True
        self.held[network.reference] |= self.turns_with_reference
        if loose:
            self.omega -= self.omega.mean()
        self.moving = np.flatnonzero(~self.held)
        self.basis = self._basis()

    def _basis(self) -> np.ndarray:
        """Return orthonormal directions (N, n) of all that can move, common rotation left out."""
        directions = np.eye(self.size)[:, self.moving]
        if self.rotates:
            directions = np.linalg.qr(np.column_stack([np.ones(self.size), directions[:, 1:]]))[0][:, 1:]
        return directions

    def rate(self, phases: np.ndarray) -> np.ndarray:
        """Return d theta / dt, (B, N); where the network rotates, relative to the mean."""
        rate = np.broadcast_to(self.omega, phases.shape).copy()
        for k, a in self.amplitudes:
            sin, cos = np.sin(k * phases), np.cos(k * phases)
            rate += a * (cos * (sin @ self.matrix.T) - sin * (cos @ self.matrix.T))
            if self.field[0] is not None:
                rate += a * self.field[0] * np.sin(k * (self.field[1] - phases))
        if self.second[0] is not None:
            rate += self.second[0] * np.sin(2 * (self.second[1] - phases))
        if self.target is not None:
            rate[:, self.outputs] += self.beta * (self.target - phases[:, self.outputs])
        rate[:, self.held] = 0.0
        return rate - rate.mean(axis=1, keepdims=True) if self.rotates else rate

    def jacobian(self, phases: np.ndarray) -> np.ndarray:
        """Return dF / dtheta along the directions of `basis`, (B, n, n)."""
        angle = phases[:, None, :] - phases[:, :, None]
        matrix = sum(a * k * self.matrix * np.cos(k * angle) for k, a in self.amplitudes)
        own = -matrix.sum(axis=2)
        for k, a in self.amplitudes if self.field[0] is not None else ():
            own -= a * k * self.field[0] * np.cos(k * (self.field[1] - phases))
        if self.second[0] is not None:
            own -= 2 * self.second[0] * np.cos(2 * (self.second[1] - phases))
        if self.target is not None:
            own[:, self.outputs] -= self.beta
        each = np.arange(self.size)
        matrix[:, each, each] += own
        return self.basis.T @ matrix @ self.basis

    def slowest(self, phases: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rate at which disturbances die out at worst, (B,), and the way of the one that does so, (B, N)."""
        matrix = self.jacobian(phases)
        values, vectors = np.linalg.eigh(matrix) if self.symmetric else np.linalg.eig(matrix)
        last = np.argmax(values.real, axis=1)
        each = np.arange(len(phases))
        return -values.real[each, last], vectors[each, :, last].real @ self.basis.T

    def stiffness(self) -> float:
        """Return a bound on the norm of the Jacobian."""
        steep = sum(abs(a) * k for k, a in self.amplitudes)
        own = steep * np.abs(self.matrix).sum(axis=1)
        own += 0 if self.field[0] is None else steep * np.abs(self.field[0])
        own += 0 if self.second[0] is None else 2 * np.abs(self.second[0])
        return float(2 * np.max(own) + abs(self.beta))

    def flow(self, phases: np.ndarray, times: np.ndarray, steps: int) -> np.ndarray:
        """Return where the dynamics lead from phases (B, N) in times (B,), by so many steps of Runge and Kutta's."""
        h = (times / steps)[:, None]
        for _ in range(steps):
            first = self.rate(phases)
            second = self.rate(phases + h / 2 * first)
            third = self.rate(phases + h / 2 * second)
            fourth = self.rate(phases + h * third)
            phases = phases + h / 6 * (first + 2 * second + 2 * third + fourth)
        return phases

    def trajectory(self, phases: np.ndarray, **options) -> Iterator[tuple[float, np.ndarray]]:
        """Yield time and phases (N,) along the dynamics, by SciPy's implicit multistep method, for as long as wanted.

        The coordinates are those of `basis`, so that nothing is lost to a common rotation.
        """

        def rate(_, along):
            return self.rate((phases + self.basis @ along)[None])[0] @ self.basis

        def slope(_, along):
            return self.jacobian((phases + self.basis @ along)[None])[0]

        method = BDF(rate, 0.0, np.zeros(self.basis.shape[1]), np.inf, jac=slope, **options)
        while method.status == "running":
            method.step()
            yield method.t, phases + self.basis @ method.y

    def distance(self, phases: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return how far two sets of states (B, N) are apart, common rotation left out, (B,)."""
        return np.linalg.norm((phases - other) @ self.basis, axis=1)

    def placed(self, start: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Return a start (N,) with held oscillators where ``held`` (N,) has them; turned with it if one is a gauge."""
        if self.turns_with_reference:
            start = start - start[self.held] + held[self.held]
        return np.where(self.held, held, start)

    def settles(self, start: np.ndarray) -> np.ndarray | None:
        """Return the stable state that the dynamics reach from a start (N,); None if they drift for twelve turns."""
        stiffness = self.stiffness()
        for _, phases in islice(self.trajectory(start, rtol=1e-6, atol=1e-8), MANY_STEPS):
            turned = (phases - start) @ self.basis @ self.basis.T
            if np.max(np.abs(turned)) > DRIFTS:
                return None
            if np.max(np.abs(self.rate(phases[None]))) < 1e-3 * stiffness:
                state = self._newton(phases)
                if state is not None:
                    (gap,), _ = self.slowest(state[None])
                    # Nearer than the curvature of the forces reaches, so that it is the state the dynamics approach.
                    if np.max(np.abs(state - phases)) < min(0.1, gap / stiffness) and gap > 1e-13 * stiffness:
                        return state
        return None

    def _newton(self, phases: np.ndarray) -> np.ndarray | None:
        for _ in range(8):
            try:
                step = np.linalg.solve(self.jacobian(phases[None])[0], -self.rate(phases[None])[0] @ self.basis)
            except np.linalg.LinAlgError:
                return None
            phases = phases + self.basis @ step
            if np.max(np.abs(step)) < 1e-10:
                return phases
        return None

    def returns(self, states: np.ndarray, rng: np.random.Generator, *, integrate: bool) -> np.ndarray:
        """Return which states (B, N) the network comes back to after a small disturbance, (B,).

        The disturbance is random, plus the one that dies out most slowly. It has died out by a factor of ten after
        eight of its own times; in linear response all disturbances have. A fold is at least gap / stiffness away.
        """
        gap, slowest = self.slowest(states)
        safe = np.maximum(gap, 1e-13 * self.stiffness())
        times = 8 / safe
        if not integrate:
            responses = expm(times[:, None, None] * self.jacobian(states))
            return np.linalg.norm(responses, 2, axis=(1, 2)) < 0.1
        size = np.minimum(1e-3, 1e-2 * safe / self.stiffness())[:, None]
        along = slowest / np.linalg.norm(slowest, axis=1, keepdims=True)
        way = along + rng.standard_normal(states.shape) @ self.basis @ self.basis.T / np.sqrt(self.size)
        first = states + size * way
        # Runge and Kutta's method is stable up to 2.78 of the shortest time.
        steps = np.ceil(times * self.stiffness() / 2.5)
        last = first.copy()
        easy = steps <= MANY_STEPS
        if np.any(easy):
            last[easy] = self.flow(first[easy], times[easy], int(np.max(steps[easy])))
        for b in np.flatnonzero(~easy):
            path = self.trajectory(first[b], rtol=1e-8, atol=1e-4 * float(size[b, 0]))
            last[b] = next(phases for time, phases in path if time >= times[b])
        return self.distance(last, states) < 0.1 * self.distance(first, states)


def _plain(rng: np.random.Generator, n: int, density: float = 0.5, spread: float = 0.3, **options) -> pg.Network:
    edges = connected_edges(n, rng, density)
    options = {"outputs": (n - 1,), "coupling": rng.uniform(0.2, 2.0, len(edges)), **options}
    return pg.Network(edges, omega=spread * rng.standard_normal(n), **options)


def _field(rng: np.random.Generator, n: int) -> dict:
    return {"field_strength": rng.uniform(0.01, 1.0, n), "field_phase": rng.uniform(-np.pi, np.pi, n)}


def _signs(rng: np.random.Generator, network: pg.Network, share: float) -> pg.Network:
    signs = np.where(rng.random(network.n_edges) < share, -1.0, 1.0)
    return network.replace(coupling=signs * network.coupling, signed=True)


def layered(rng, n):
    network = pg.layered(2, max(1, n - 4), 2, coupling_scale=rng.choice([0.3, 1.0, 2.0]), seed=int(rng.integers(2**31)))
    return Case("layered", network, rng.uniform(-1, 1, 2))


def random(rng, n):
    return Case("random", _plain(rng, n, spread=rng.choice([0.0, 0.3, 1.0])))


def complete(rng, n):
    return Case("complete", pg.networks.complete(n, coupling=rng.uniform(0.1, 1.0), omega=rng.standard_normal(n)))


def ring(rng, n):
    n = max(n, 3)
    return Case("ring", pg.networks.ring(n, coupling=rng.uniform(0.5, 2.0, n), omega=0.2 * rng.standard_normal(n)))


def signed(rng, n):
    return Case("signed", _signs(rng, _plain(rng, n, spread=rng.choice([0.0, 0.3])), 0.25))


def field(rng, n):
    return Case("field", _plain(rng, n, **_field(rng, n)))


def clamped(rng, n):
    n = max(n, 3)
    if rng.random() < 0.5:
        return Case("clamped", pg.networks.signed_layers(2, n, 2, seed=int(rng.integers(2**31))), rng.uniform(-2, 2, 2))
    network = _plain(rng, n, inputs=(0, 1), input_mode="phase")
    return Case("clamped", network, rng.uniform(-2, 2, 2))


def odd_series(rng, n):
    return Case("odd series", _plain(rng, n, interaction=SERIES[rng.integers(len(SERIES))]))


def not_monotone(rng, n):
    return Case("not monotone", _plain(rng, n, interaction=NOT_MONOTONE[rng.integers(len(NOT_MONOTONE))]))


def second_harmonic(rng, n):
    strength, phase = rng.uniform(0.01, 1.0, n), rng.uniform(-np.pi, np.pi, n)
    network = _plain(rng, n, second_strength=strength, second_phase=phase)
    return Case("second harmonic", _signs(rng, network, rng.choice([0.0, 0.5])))


def near_critical(rng, n):
    network, _ = at_the_fold(rng, n)
    return Case("near critical", network.replace(omega=network.omega * (1 - 10.0 ** rng.uniform(-7, -1))))


def spread_scales(rng, n):
    network = _plain(rng, n, spread=0.0)
    network = network.replace(coupling=10.0 ** rng.uniform(-4, 2, network.n_edges))
    omega = 0.3 * pg.networks.to_matrix(network).sum(axis=1) * rng.uniform(-1, 1, n)
    if rng.random() < 0.8:
        # Frequencies that hold a given state, so that there is one.
        omega = -Dynamics(Case("undriven", network)).rate(rng.uniform(-0.6, 0.6, (1, n)))[0]
    return Case("spread scales", network.replace(omega=omega))


def weak(rng, n):
    network, scale = _plain(rng, n), 10.0 ** rng.uniform(-9, -2)
    return Case("weak", network.replace(coupling=scale * network.coupling, omega=scale * network.omega))


def non_reciprocal_field(rng, n):
    network = _plain(rng, n, **_field(rng, n))
    return Case("non-reciprocal, field", network.replace(coupling_reverse=rng.uniform(0.2, 2.0, network.n_edges)))


def non_reciprocal(rng, n):
    network = _plain(rng, n)
    return Case("non-reciprocal", network.replace(coupling_reverse=rng.uniform(0.2, 2.0, network.n_edges)))


def nudged(rng, n):
    options = _field(rng, n) if rng.random() < 0.5 else {}
    network = _plain(rng, n, outputs=tuple(range(n // 2, n)), **options)
    target, beta = rng.uniform(-2, 2, n - n // 2), float(rng.choice([-0.3, 0.01, 0.5]))
    return Case("nudged", network, None, target, beta)


def frustrated(rng, n):
    network = _signs(rng, _plain(rng, n, density=0.8, spread=rng.choice([0.0, 0.1])), 0.5)
    return Case("frustrated", network)


def tiny(rng, n):
    return Case("tiny", _plain(rng, 2 + n % 2, spread=rng.choice([0.0, 0.5])))


def tree(rng, n):
    return Case("tree", _plain(rng, n, density=0.0, spread=0.15))


def bipartite(rng, n):
    half = max(1, n // 2)
    edges = [(i, half + j) for i in range(half) for j in range(half)]
    coupling = rng.uniform(0.2, 2.0, len(edges))
    network = pg.Network(edges, coupling, 0.3 * rng.standard_normal(2 * half))
    return Case("bipartite", _signs(rng, network, rng.choice([0.0, 0.5])))


RECIPROCAL = (
    layered, random, complete, ring, signed, field, clamped, odd_series, not_monotone, second_harmonic, near_critical,
    spread_scales, weak, nudged, frustrated, tiny, tree, bipartite,
)  # fmt: skip
KINDS = (*RECIPROCAL, non_reciprocal_field, non_reciprocal)


def at_the_fold(rng: np.random.Generator, n: int) -> tuple[pg.Network, np.ndarray]:
    """Return a network and its state in which a stable branch ends: the smallest eigenvalue is zero.

    A random state is stretched until the Laplacian turns singular, and frequencies are chosen that hold it there.
    """
    network = _plain(rng, n, spread=0.0)
    shape = rng.standard_normal(n)
    shape -= shape[0]
    dynamics = Dynamics(Case("fold", network))
    low, high = 0.0, np.pi / np.max(np.abs(shape))
    for _ in range(200):
        middle = (low + high) / 2
        rate = dynamics.slowest((middle * shape)[None])[0][0]
        low, high = (middle, high) if rate > 0 else (low, middle)
    state = low * shape
    return network.replace(omega=-dynamics.rate(state[None])[0]), state


def draw(kind, index: int, most: int = 24) -> tuple[Case, np.random.Generator]:
    """Return case number ``index`` of a kind, and the stream it was drawn from."""
    rng = np.random.default_rng((index, [each.__name__ for each in KINDS].index(kind.__name__)))
    return kind(rng, int(rng.integers(2, most + 1))), rng


def starts_of(case: Case, rng: np.random.Generator, count: int) -> np.ndarray:
    """Return starts (count, N): phase zero, near it, and uniformly random ones."""
    size = case.network.size
    starts = rng.uniform(-np.pi, np.pi, (count, size))
    starts[0] = 0.0
    starts[1:2] *= 0.1
    return starts
