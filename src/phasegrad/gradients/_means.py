r"""The mean gradient of a mini-batch: what training descends along.

For equilibrium propagation it is a difference of local slopes of the energy between nudged states, weighed and summed
over the samples; each term sums its own (`Term.summed_contrast`), for couplings by products of matrices where it can,
so that no array of samples times edges is made. The adjoint gradient is put together in the same way. Every other
method (`Propagation`) gives the slopes of every sample, which are summed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.dynamics import Pull, System
from phasegrad.equilibria import Status
from phasegrad.gradients._problem import Problem
from phasegrad.gradients._propagation import Propagation
from phasegrad.gradients._schemes import Scheme
from phasegrad.linearised import EdgewiseLaplacian, PhasorLaplacian, linearise
from phasegrad.networks import Network
from phasegrad.objectives import Cost
from phasegrad.solvers import BATCHED, FOLLOWING, STOPPING
from phasegrad.terms import States, Term

#: Sums the slopes of one term over samples with their shares (R, b), (R, width) by name.
_Read: TypeAlias = Callable[[Term, FloatArray], Mapping[str, FloatArray]]
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
    state : PhasorLaplacian or EdgewiseLaplacian, optional
        The same samples by products of matrices, where R is 1, or by compiled steps.
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
        state: PhasorLaplacian | EdgewiseLaplacian | None = None,
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
        if by.exact:
            response, found = self._response(rows)
            return self._by_terms(self._products(response), rows, found, share, names, frequencies)
        scheme = by.contrast
        if scheme is None:
            return self._one_by_one(rows, share, names, by, frequencies, streams)
        signs = np.ones(share.size)
        if by.draws:
            signs = np.concatenate([np.ravel(by.signs(share.shape[1], stream)) for stream in streams])
        plus, minus, found = self._nudged(rows, by, scheme, signs)
        span = by.beta / float(np.real(scheme.weights[0])) * signs
        if self.system.reciprocal:
            read = self._contrast(plus, minus, span)
        else:
            read = self._products(self.system.gauged((minus - plus) / span[:, None]))
        return self._by_terms(read, rows, found, share, names, frequencies)

    def _contrast(self, plus: Array, minus: Array, span: FloatArray) -> _Read:
        """Return what sums the differences of slopes between two states (R b, N), over the nudge between them."""
        graph, values = self.system.graph, self.system.values
        held = self.state.phasors.held if isinstance(self.state, PhasorLaplacian) else None
        ahead, behind = States(graph, plus, held), States(graph, minus, held)
        return lambda term, share: term.summed_contrast(graph, values, ahead, behind, share / span.reshape(share.shape))

    def _products(self, response: Array) -> _Read:
        """Return what sums the products of a response (R b, N) with the slopes of the forces."""
        graph, values = self.system.graph, self.system.values
        return lambda term, share: term.summed_products(graph, values, self.phases, response, share)

    def _by_terms(
        self,
        read: _Read,
        rows: IntArray,
        found: BoolArray,
        share: FloatArray,
        names: Sequence[str],
        frequencies: str,
    ) -> tuple[dict[str, FloatArray], BoolArray]:
        """Return the sums by every parameter named, each term summing its own."""
        used = np.zeros(share.size, dtype=bool)
        used[rows] = found
        share, graph = _rebalanced(share, used), self.system.graph
        sums: dict[str, FloatArray] = {}
        for term in self.system.terms:
            asked = [parameter for parameter in term.parameters if parameter.name in names]
            slopes = read(term, share) if asked else {}
            for parameter in asked:
                name, total = parameter.name, graph.sharing.collect(parameter.on, slopes[parameter.name])
                sums[name] = term.raw_slope(graph, name, total) if frequencies == "raw" else total
        return sums, used

    def _nudged(
        self, rows: IntArray, by: Propagation, scheme: Scheme, signs: FloatArray
    ) -> tuple[Array, Array, BoolArray]:
        """Return the phases of the two states of a scheme, the nudges times the samples' signs (R b,).

        The mask says which of the samples ``rows`` were found.
        """
        nudges = np.real(scheme.nudges)
        stacked = np.concatenate([rows] * nudges.size)
        strengths = np.repeat(nudges, rows.size) * signs[stacked] * by.beta
        pull = Pull(self.cost, self.nodes, self.target[stacked], strengths[:, None])
        found, limits = np.zeros(stacked.size, dtype=bool), self.limits[stacked]
        nudged = self.phases[stacked]
        if self.state is not None:
            every = stacked.size == self.phases.shape[0] == rows.size
            state = (self.state if every else self.state.take(stacked)).nudged(pull)
            moving, left, _ = BATCHED.iterate(state, limits)
            found = left <= limits
            nudged[:, state.nodes] = moving if found.all() else np.where(found[:, None], moving, state.moving)
        if not (self.strict and self.state is not None) and not found.all():
            missing = np.flatnonzero(~found)
            system = self.system.take(stacked[missing])
            if by.correction == "asymmetric":
                system = system.corrected(nudged[missing])
            system = system.replace(pull=pull.take(missing))
            # A state off the branch of the free one would be no small change of it, and its difference no slope.
            solution = (STOPPING if self.strict else FOLLOWING).solve(system, nudged[missing], limits[missing])
            nudged[missing], found[missing] = solution.phases, solution.residual <= limits[missing]
        plus, minus = self.phases.copy(), self.phases
        plus[rows] = nudged[: rows.size]
        if nudges.size > 1:
            minus = self.phases.copy()
            minus[rows] = nudged[rows.size :]
        return plus, minus, np.all(found.reshape(nudges.size, rows.size), axis=0)

    def _response(self, rows: IntArray) -> tuple[FloatArray, BoolArray]:
        """Return lambda = L^-T dC/dtheta of all samples, (R b, N), zero but for ``rows``, and where it was found."""
        response = np.zeros_like(self.phases)
        outputs = np.take(self.phases[rows], self.nodes, axis=1)
        response[rows[:, None], self.nodes] = -self.cost.force(outputs, self.target[rows])
        if self.state is not None:
            state = self.state.take(rows)
            moving, found = state.solve(np.take(response[rows], state.nodes, axis=1))
            response[rows[:, None], state.nodes] = moving
            return self._finite(response, rows, found)
        alone = linearise(self.system.take(rows), self.phases[rows])
        moving, found = alone.solve(np.take(response[rows], alone.nodes, axis=1), transposed=True)
        response[rows] = self.system.spread(moving)
        return self._finite(response, rows, found)

    @staticmethod
    def _finite(response: FloatArray, rows: IntArray, found: BoolArray) -> tuple[FloatArray, BoolArray]:
        """Return responses, zero where they were not found or are not finite."""
        found = found & np.all(np.isfinite(response[rows]), axis=1)
        response[rows[~found]] = 0.0
        return response, found

    def _one_by_one(
        self, rows: IntArray, share: FloatArray, names: Sequence[str], by: Propagation, frequencies: str,
        streams: Sequence[np.random.Generator],
    ) -> tuple[dict[str, FloatArray], BoolArray]:  # fmt: skip
        """Return the sums of the slopes that a method has for every sample, those of a network after the other."""
        problem = Problem(
            owner=by.method,
            network=self.network,
            objective=self.cost,
            shape=(rows.size,),
            system=self.system.take(rows),
            phases=self.phases[rows],
            nodes=self.nodes,
            target=self.target[rows],
            inputs=None,
            status=np.full(rows.size, Status.STABLE, dtype=object),
            wrt=tuple(names),
            frequencies=frequencies,
            turned=by.record.perturbs,
            correction=by.correction,
        )
        slopes = {name: np.zeros((rows.size, problem.width(name))) for name in names}
        found = np.zeros(rows.size, dtype=bool)
        for r in range(share.shape[0]):
            # What a method draws for a network comes from the stream of that network.
            mine = np.flatnonzero(rows // share.shape[1] == r)
            if mine.size:
                values, found[mine] = by.slopes(problem.take(mine), streams[r] if streams else None)
                for name in names:
                    slopes[name][mine] = problem.in_units(name, values[name])
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
    if used.all():
        return share
    kept = np.where(used.reshape(share.shape), share, 0.0)
    if np.array_equal(kept, share):
        return share
    total = np.sum(kept, axis=1, keepdims=True)
    return kept * (np.sum(share, axis=1, keepdims=True) / np.where(total > 0, total, 1.0))
