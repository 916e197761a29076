"""Gradients in fifty digits: forces, Jacobian and implicit derivative written a second time, with mpmath.

Nothing of the package's own arithmetic is used: a network lends its numbers, and the phases found near which to look.
"""

from collections.abc import Mapping

import mpmath as mp
import numpy as np

import phasegrad as pg

DIGITS = 50
#: Sine coefficients of the terms that pull every oscillator, by the names of their strength and phase.
OWN_SERIES = {("second_strength", "second_phase"): (0.0, 1.0), ("third_strength", "third_phase"): (0.0, 0.0, 1.0)}


def series_of(interaction: pg.terms.Interaction) -> tuple[float, ...]:
    """Return the sine coefficients of an interaction."""
    return (1.0,) if isinstance(interaction, pg.terms.Sine) else tuple(interaction.coefficients)


def _value(series, angle):
    return mp.fsum(mp.mpf(a) * mp.sin((k + 1) * angle) for k, a in enumerate(series))


def _slope(series, angle):
    return mp.fsum((k + 1) * mp.mpf(a) * mp.cos((k + 1) * angle) for k, a in enumerate(series))


class Exact:
    """One sample of a network in fifty digits, at the equilibrium nearest to given phases."""

    def __init__(self, network: pg.Network, phases: np.ndarray, inputs: np.ndarray | None) -> None:
        self.network, self.series, self.has_data = network, series_of(network.interaction), inputs is not None
        self.values = {name: [mp.mpf(float(p)) for p in each] for name, each in network.parameters.items()}
        omega, self.theta = self.values["omega"], [mp.mpf(float(phase)) for phase in phases]
        for node, value in zip(network.inputs, [] if inputs is None else inputs, strict=inputs is not None):
            driven = mp.mpf(float(network.input_scale)) * mp.mpf(float(value))
            if network.graph.clamped:
                self.theta[node] = mp.mpf(float(network.input_phase)) + driven
            else:
                omega[node] = driven
        if network.graph.pinned:
            mean = mp.fsum(omega) / network.size
            omega[:] = [each - mean for each in omega]
        self.fields = [(self.series, "field_strength", "field_phase")] if "field_strength" in self.values else []
        self.fields += [(series, *names) for names, series in OWN_SERIES.items() if names[0] in self.values]
        self.found = self._settle()

    def _pulls(self):
        """Yield each pull of one end of an edge: where, how strong, its value and the slopes of that.

        The slopes are by the phase of the node, by that of the other end, by the lag and by the anisotropy.
        """
        theta, none = self.theta, [mp.mpf(0)] * self.network.n_edges
        there = self.values["coupling"]
        back = self.values.get("coupling_reverse", there)
        lags, shares = (self.values.get(name, none) for name in ("lag", "anisotropy"))
        for k, (i, j) in enumerate(self.network.edges.tolist()):
            for node, other, strength in ((i, j, there[k]), (j, i, back[k])):
                across, along = theta[other] - theta[node] - lags[k], theta[node] + theta[other]
                steep, bent = _slope(self.series, across), shares[k] * _slope(self.series, along)
                held = _value(self.series, along)
                value = _value(self.series, across) + shares[k] * held
                yield k, node, other, strength, value, (bent - steep, bent + steep, -steep, held)

    def _balance(self):
        """Return the force on every oscillator and its Jacobian by all phases."""
        n, theta = self.network.size, self.theta
        force, jacobian = list(self.values["omega"]), mp.zeros(n, n)
        for _, node, other, strength, value, slopes in self._pulls():
            force[node] += strength * value
            jacobian[node, node] += strength * slopes[0]
            jacobian[node, other] += strength * slopes[1]
        for series, strength, phase in self.fields:
            for i, (h, psi) in enumerate(zip(self.values[strength], self.values[phase], strict=True)):
                force[i] += h * _value(series, psi - theta[i])
                jacobian[i, i] -= h * _slope(series, psi - theta[i])
        return force, jacobian

    def _reduced(self, jacobian):
        free = self.network.free.tolist()
        return mp.matrix([[jacobian[i, j] for j in free] for i in free])

    def _settle(self) -> bool:
        """Take Newton's steps; return whether they ended near where they began."""
        start, free = list(self.theta), self.network.free.tolist()
        for _ in range(60):
            force, jacobian = self._balance()
            try:
                step = mp.lu_solve(self._reduced(jacobian), -mp.matrix([force[i] for i in free]))
            except ZeroDivisionError:
                return False
            for i, by in zip(free, step, strict=True):
                self.theta[i] += by
            if max(abs(self.theta[i] - start[i]) for i in free) > 0.5:
                return False
            if max(abs(by) for by in step) < mp.mpf(10) ** -40:
                return True
        return False

    def gradient(self, target: np.ndarray, *, raw: bool) -> Mapping[str, np.ndarray]:
        """Return the gradient of half the squared distance of the outputs from the target, by all there is."""
        n, theta, free = self.network.size, self.theta, self.network.free.tolist()
        slope = [mp.mpf(0)] * n
        for node, aim in zip(self.network.outputs, target, strict=True):
            slope[node] = theta[node] - mp.mpf(float(aim))
        answer = mp.lu_solve(-self._reduced(self._balance()[1]).T, mp.matrix([slope[i] for i in free]))
        response = [mp.mpf(0)] * n
        for i, value in zip(free, answer, strict=True):
            response[i] = value
        found = {"omega": list(response), **self._by_edges(response)}
        for series, strength, phase in self.fields:
            angles = [psi - at for psi, at in zip(self.values[phase], theta, strict=True)]
            found[strength] = [r * _value(series, a) for r, a in zip(response, angles, strict=True)]
            parts = zip(response, self.values[strength], angles, strict=True)
            found[phase] = [r * h * _slope(series, a) for r, h, a in parts]
        if self.has_data:
            found["inputs"] = self._by_data(response)
        if raw and self.network.graph.pinned:
            mean = mp.fsum(found["omega"]) / n
            found["omega"] = [each - mean for each in found["omega"]]
        return {name: np.array([float(each) for each in values]) for name, values in found.items()}

    def _by_edges(self, response):
        """Return the gradient by strengths, lags and anisotropies."""
        names = [name for name in ("coupling", "coupling_reverse", "lag", "anisotropy") if name in self.values]
        found = {name: [mp.mpf(0)] * self.network.n_edges for name in names}
        for k, node, other, strength, value, slopes in self._pulls():
            reverse = node > other and "coupling_reverse" in found
            found["coupling_reverse" if reverse else "coupling"][k] += response[node] * value
            for name, slope in zip(("lag", "anisotropy"), slopes[2:], strict=True):
                if name in found:
                    found[name][k] += response[node] * strength * slope
        return found

    def _by_data(self, response):
        """Return the gradient by the data: its frequency moves the mean with it, its phase pulls all neighbours."""
        scale = mp.mpf(float(self.network.input_scale))
        if not self.network.graph.clamped:
            mean = mp.fsum(response) / self.network.size if self.network.graph.pinned else 0
            return [scale * (response[node] - mean) for node in self.network.inputs]
        jacobian, nodes = self._balance()[1], range(self.network.size)
        return [scale * mp.fsum(response[i] * jacobian[i, node] for i in nodes) for node in self.network.inputs]


def exact_gradient(
    network: pg.Network, phases: np.ndarray, inputs: np.ndarray | None, target: np.ndarray, *, raw: bool
) -> Mapping[str, np.ndarray] | None:
    """Return the gradient of `PhaseTargets` by every parameter and by the data, where there are any.

    None where no equilibrium lies near the phases.
    """
    with mp.workdps(DIGITS):
        sample = Exact(network, phases, inputs)
        return sample.gradient(target, raw=raw) if sample.found else None
