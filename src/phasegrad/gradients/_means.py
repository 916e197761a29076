r"""The mean gradient of a mini-batch: what training descends along.

For equilibrium propagation it is a difference of local slopes of the energy between nudged states, weighed and summed
over the samples; each term sums its own (`Term.summed_contrast`), for couplings by products of matrices where it can,
so that no array of samples times edges is made. The adjoint gradient is put together in the same way. Every other
method (`Propagation`) gives the slopes of every sample, which are summed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.dynamics import Pull, System
from phasegrad.equilibria import Status
from phasegrad.gradients._differences import difference_slopes
from phasegrad.gradients._nudged import drawn_signs
from phasegrad.gradients._propagation import Propagation
from phasegrad.gradients._question import Question
from phasegrad.linearised import PhasorLaplacian, linearise
from phasegrad.networks import Network
from phasegrad.objectives import Cost
from phasegrad.solvers import BATCHED, FOLLOWING, STOPPING
from phasegrad.terms import States

# What a linear solve may leave of its right-hand side.


class MeanGradient:
    """Weighted sums of the gradient over free equilibria of R networks, b samples each.

    Parameters
    ----------
    network : Network
        One of the R networks, for what all of them share: graph and terms.
    system : System
        The flat batch, (R b) samples.
    phases : ndarray, shape (R b, N)
        Free equilibria.
    cost, nodes, target
        The objective, the nodes it reads, and its targets (R b, M).
    limits : ndarray, shape (R b,)
        The residuals that nudged states must reach.
    strict : bool
        Whether they must be stable.
    state : PhasorLaplacian, optional
        The same samples by products of matrices, where R is 1.
    """

    def __init__(
        self,
        network: Network,
        system: System,
        phases: FloatArray,
        cost: Cost,
        nodes: IntArray,
        target: Array,
        *,
        limits: FloatArray,
        strict: bool = True,
        state: PhasorLaplacian | None = None,
    ) -> None:
        self.network, self.system, self.phases = network, system, phases
        self.state, self.strict = state, strict
        self.cost, self.nodes, self.target, self.limits = cost, nodes, target, limits

    def take(
        self, share: FloatArray, names: Sequence[str], *, by: Propagation, frequencies: str,
        streams: Sequence[np.random.Generator] = (),
    ) -> tuple[dict[str, FloatArray], BoolArray]:  # fmt: skip
        """Return the sums (R, width) by every parameter named, and which samples have a part in them, (R b,).

        Samples of no share have none; where a nudged state was not found the sample is left out, and the shares (R, b)
        of the network's other samples are brought to the same sum. What a method draws comes from the networks' own
        ``streams``.
        """
        rows = np.flatnonzero(share.ravel() > 0)
        if by.method == "finite_difference":
            return self._differences(rows, share, names, raw=frequencies == "raw")
        if not (by.exact or by.contrasts):
            return self._one_by_one(rows, share, names, by, frequencies, streams)
        span = np.full(share.size, 2 * by.beta if by.method == "centred" else by.beta)
        if by.exact:
            response, found = self._response(rows)
            found &= np.all(np.isfinite(response[rows]), axis=1)
            response[rows[~found]] = 0.0
        else:
            if by.method == "random_sign":
                span *= np.concatenate([drawn_signs(share.shape[1], stream)[:, 0] for stream in streams])
            plus, minus, found = self._nudged(rows, by, np.sign(span))
        used = np.zeros(share.size, dtype=bool)
        used[rows] = found
        share = _rebalanced(share, used)
        sums: dict[str, FloatArray] = {}
        graph, values = self.system.graph, self.system.values
        contrasts = not by.exact and self.system.reciprocal
        if contrasts:
            held = None if self.state is None else self.state.phasors.held
            states = [States(graph, phases, held) for phases in (plus, minus)]
        elif not by.exact:
            response = self.system.gauged((minus - plus) / span[:, None])
        for term in self.system.terms:
            asked = [parameter for parameter in term.parameters if parameter.name in names]
            if not asked:
                continue
            if contrasts:
                slopes = term.summed_contrast(graph, values, states[0], states[1], share / span.reshape(share.shape))
            else:
                slopes = term.summed_products(graph, values, self.phases, response, share)
            for parameter in asked:
                name, total = parameter.name, graph.sharing.collect(parameter.on, slopes[parameter.name])
                sums[name] = term.raw_slope(graph, name, total) if frequencies == "raw" else total
        return sums, used

    def _nudged(self, rows: IntArray, by: Propagation, sign: FloatArray) -> tuple[Array, Array, BoolArray]:
        """Return the phases under nudges of the samples' signs, (R b,), and under the other sign or free.

        The mask says which of the samples ``rows`` were found.
        """
        signs = np.array([1.0, -1.0] if by.method == "centred" else [1.0])
        stacked = np.concatenate([rows] * signs.size)
        strengths = np.repeat(signs, rows.size) * sign[stacked] * by.beta
        pull = Pull(self.cost, self.nodes, self.target[stacked], strengths[:, None])
        found, limits = np.zeros(stacked.size, dtype=bool), self.limits[stacked]
        nudged = self.phases[stacked]
        if self.state is not None:
            state = self.state.take(stacked).nudged(pull)
            moving, left, _ = BATCHED.iterate(state, limits)
            found = left <= limits
            nudged[:, state.nodes] = moving if found.all() else np.where(found[:, None], moving, state.moving)
        missing = np.flatnonzero(~found)
        if missing.size and not (self.strict and self.state is not None):
            system = self.system.take(stacked[missing])
            if by.correction == "asymmetric":
                system = system.corrected(nudged[missing])
            system = system.replace(pull=pull.take(missing))
            # A state off the branch of the free one would be no small change of it, and its difference no slope.
            solution = (STOPPING if self.strict else FOLLOWING).solve(system, nudged[missing], limits[missing])
            nudged[missing], found[missing] = solution.phases, solution.residual <= limits[missing]
        plus, minus = self.phases.copy(), self.phases
        plus[rows] = nudged[: rows.size]
        if signs.size > 1:
            minus = self.phases.copy()
            minus[rows] = nudged[rows.size :]
        return plus, minus, np.all(found.reshape(signs.size, rows.size), axis=0)

    def _response(self, rows: IntArray) -> tuple[FloatArray, BoolArray]:
        """Return lambda = L^-T dC/dtheta of all samples, (R b, N), zero but for ``rows``, and where it was found."""
        response = np.zeros_like(self.phases)
        outputs = np.take(self.phases[rows], self.nodes, axis=1)
        response[rows[:, None], self.nodes] = -self.cost.force(outputs, self.target[rows])
        if self.state is not None:
            state = self.state.take(rows)
            moving, found = state.solve(np.take(response[rows], state.nodes, axis=1))
            response[rows[:, None], state.nodes] = moving
            return response, found
        dense = linearise(self.system.take(rows), self.phases[rows])
        moving, found = dense.solve(np.take(response[rows], dense.nodes, axis=1), transposed=True)
        response[rows] = self.system.spread(moving)
        return response, found

    def _differences(
        self, rows: IntArray, share: FloatArray, names: Sequence[str], *, raw: bool
    ) -> tuple[dict[str, FloatArray], BoolArray]:
        part = self.system.take(rows)
        slopes, found = {}, np.ones(rows.size, dtype=bool)
        for term in part.terms:
            for parameter in term.parameters:
                if parameter.name in names:
                    each, good = difference_slopes(
                        part, self.phases[rows], self.cost, self.nodes, self.target[rows], term, parameter,
                        step=1e-5, raw=raw,
                    )  # fmt: skip
                    slopes[parameter.name], found = each, found & good
        return self._summed(rows, share, slopes, found)

    def _one_by_one(
        self, rows: IntArray, share: FloatArray, names: Sequence[str], by: Propagation, frequencies: str,
        streams: Sequence[np.random.Generator],
    ) -> tuple[dict[str, FloatArray], BoolArray]:  # fmt: skip
        """Return the sums of the slopes that a method has for every sample, those of a network after the other."""
        question = Question(
            by.method, self.network, self.cost, (rows.size,), self.system.take(rows), self.phases[rows], self.nodes,
            self.target[rows], None, np.full(rows.size, Status.STABLE, dtype=object), tuple(names), frequencies,
            correction=by.correction,
        )  # fmt: skip
        slopes = {name: np.zeros((rows.size, question.width(name))) for name in names}
        found = np.zeros(rows.size, dtype=bool)
        for r in range(share.shape[0]):
            mine = np.flatnonzero(rows // share.shape[1] == r)
            if mine.size:
                values, found[mine] = by.slopes(question.take(mine), streams[r] if streams else None)
                for name in names:
                    slopes[name][mine] = question.in_units(name, values[name])
        return self._summed(rows, share, slopes, found)

    def _summed(
        self, rows: IntArray, share: FloatArray, slopes: Mapping[str, FloatArray], found: BoolArray
    ) -> tuple[dict[str, FloatArray], BoolArray]:
        """Return the weighted sums of slopes (rows, width) of the samples that were found."""
        used = np.zeros(share.size, dtype=bool)
        used[rows] = found
        weights, sums = _rebalanced(share, used), {}
        for name, each in slopes.items():
            whole = np.zeros((share.size, each.shape[1]))
            whole[rows[found]] = each[found]
            sums[name] = np.einsum("rb,rbp->rp", weights, whole.reshape(*share.shape, -1))
        return sums, used


def _rebalanced(share: FloatArray, used: BoolArray) -> FloatArray:
    """Return shares (R, b) of the samples that are used, brought to the sum that all had."""
    kept = np.where(used.reshape(share.shape), share, 0.0)
    if np.array_equal(kept, share):
        return share
    total = np.sum(kept, axis=1, keepdims=True)
    return kept * (np.sum(share, axis=1, keepdims=True) / np.where(total > 0, total, 1.0))
