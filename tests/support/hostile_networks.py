"""Networks whose certificates are hard: weights over decades, negative ones, states that nearly tip, hubs, deep trees.

`dense` and `large` draw state number k of a campaign. `python tests/hostile_networks.py 380 120 FILE` runs it, in about
20 minutes: it divides the processor time of every certificate by that of `eigvalsh` of the same matrix, or of one
sparse LU factorisation above 2,000 oscillators, and checks every verdict. ``docs/results/certificates.json`` is such a
file.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

import phasegrad as pg
from phasegrad._process import on_one_blas_thread
from phasegrad.dynamics import System, build_system
from phasegrad.linearised import Verdict, stability

SIZES, LARGE_SIZES = (50, 100, 200, 400, 700, 1001, 1200, 1500, 2000), (5_000, 10_000, 20_000, 50_000)


@dataclass(frozen=True)
class Hostile:
    """A state (1, N) of a network, and a name that says how it was drawn."""

    name: str
    network: pg.Network
    phases: np.ndarray

    @property
    def system(self) -> System:
        """The force balance of the network; nothing is kept from another one."""
        return build_system(self.network, None)[0]


def _decades(rng: np.random.Generator, count: int) -> np.ndarray:
    """Weights over zero, two or twelve decades."""
    span = rng.choice([0.0, 1.0, 6.0])
    return rng.uniform(0.5, 2.0, count) * 10.0 ** rng.uniform(-span, span, count)


def _with_few_negative(rng: np.random.Generator, weight: np.ndarray) -> np.ndarray:
    """The recipe that took 45 s at 1,200 oscillators: three weights turned around and made weak."""
    weight = weight.copy()
    weight[rng.choice(weight.size, min(3, weight.size), replace=False)] *= -(10.0 ** rng.uniform(-4, 0))
    return weight


def _few_cycles(rng: np.random.Generator, n: int, deep: bool) -> np.ndarray:
    """A random tree, deep or shallow, and five chords."""
    parents = [int(rng.integers(max(0, k - 3), k) if deep else rng.integers(k)) for k in range(1, n)]
    pairs = {(parent, k) for k, parent in enumerate(parents, start=1)}
    while len(pairs) < n + 4:
        i, j = sorted(rng.choice(n, 2, replace=False).tolist())
        pairs.add((i, j))
    return np.array(sorted(pairs))


def _wheel(n: int) -> np.ndarray:
    """A ring around a hub."""
    rim = np.arange(1, n)
    ring = np.sort(np.stack([rim, np.roll(rim, -1)], axis=1), axis=1)
    return np.unique(np.concatenate([np.stack([np.zeros_like(rim), rim], axis=1), ring]), axis=0)


def _three_hubs(n: int) -> np.ndarray:
    """Three nodes that all others are coupled to, and to nothing else."""
    return np.array([(hub, k) for hub in range(3) for k in range(3, n)])


def _signed(edges: np.ndarray, coupling: np.ndarray, n: int, **options) -> pg.Network:
    return pg.Network(edges, coupling, np.zeros(n), signed=True, **options)


def _tipping(rng: np.random.Generator, n: int, scale: float) -> pg.Network:
    """A ring with one negative weight, within a share of where it tips: 1 / k = sum of 1 / all others."""
    weight = rng.uniform(0.5, 2.0, n) * scale
    away = rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-16, -1)
    weight[n // 2] = 0.0
    with np.errstate(divide="ignore"):
        weight[n // 2] = -(1 + away) / np.sum(1 / np.delete(weight, n // 2))
    return pg.networks.ring(n, coupling=weight, signed=True, omega=np.zeros(n))


def _graph(rng: np.random.Generator, n: int, kind: str) -> np.ndarray:
    if kind == "ring":
        return pg.networks.ring(n).edges
    if kind in ("deep tree", "tree"):
        return _few_cycles(rng, n, kind == "deep tree")
    if kind == "wheel":
        return _wheel(n)
    if kind == "hubs":
        return _three_hubs(n)
    if kind == "mesh":
        side = int(np.sqrt(n))
        return pg.networks.lattice(side, n // side).edges
    if kind == "small world":
        return pg.networks.small_world(n, 4, 0.02, seed=int(rng.integers(2**31))).edges
    if kind == "expander":
        return pg.networks.random_regular(n, 4, seed=int(rng.integers(2**31))).edges
    if kind == "crowd":
        return pg.networks.erdos_renyi(n, min(60, n // 12), seed=int(rng.integers(2**31))).edges
    assert kind == "complete"
    return np.stack(np.triu_indices(n, 1), axis=1)


GRAPHS = ("ring", "deep tree", "tree", "wheel", "hubs", "mesh", "small world", "expander", "complete", "crowd")
SIGNS = ("few negative", "some negative", "weak negative", "turned", "positive")


def _state(rng: np.random.Generator, edges: np.ndarray, n: int, signs: str) -> tuple[np.ndarray, np.ndarray]:
    """Weights and phases of a kind."""
    weight, phases = _decades(rng, len(edges)), np.zeros(n)
    if signs == "few negative":
        weight = _with_few_negative(rng, weight)
    elif signs == "some negative":
        weight *= rng.choice([-1.0, 1.0], weight.size, p=[0.1, 0.9])
    elif signs == "weak negative":
        weight[rng.random(weight.size) < 0.05] *= -1e-3
    elif signs == "turned":
        phases = rng.choice([0.3, 1.0, 3.0]) * rng.standard_normal(n)
    return weight, phases


def dense(index: int, sizes: tuple[int, ...] = SIZES) -> Hostile:
    """Return state number ``index`` of up to 2,000 oscillators."""
    rng = np.random.default_rng([1, index])
    n = int(rng.choice(sizes))
    other = ("tipping", "one way", "mean field", "fields", "nearly one way")
    kind = [*GRAPHS, *other][index % (len(GRAPHS) + len(other))]
    signs = str(rng.choice(SIGNS))
    name = f"{kind}, {signs}, N = {n}"
    if kind == "tipping":
        return Hostile(f"tipping, N = {n}", _tipping(rng, n, 10.0 ** rng.uniform(-6, 6)), np.zeros((1, n)))
    if kind == "mean field":
        edges = _graph(rng, n, str(rng.choice(["ring", "expander", "tree"])))
        weight, phases = _state(rng, edges, n, signs)
        network = _signed(edges, weight, n, global_coupling=float(rng.choice([-1.0, 0.1, 2.0])))
        return Hostile(name, network, phases[None])
    edges = _graph(rng, n, kind if kind in GRAPHS else str(rng.choice(["ring", "expander", "wheel"])))
    n = int(edges.max()) + 1
    weight, phases = _state(rng, edges, n, signs)
    if kind == "fields":
        options = {"second_strength": rng.uniform(-0.5, 1.0, n), "second_phase": rng.uniform(-1, 1, n)}
        options |= {"field_strength": rng.uniform(-0.5, 1.0, n), "field_phase": rng.uniform(-1, 1, n)}
        return Hostile(name, _signed(edges, weight, n, **options), phases[None])
    if kind in ("one way", "nearly one way"):
        other_way = weight * (1 + 1e-9) if kind == "nearly one way" else rng.permutation(weight)
        return Hostile(name, _signed(edges, weight, n, coupling_reverse=other_way), phases[None])
    return Hostile(name, _signed(edges, weight, n), phases[None])


def large(index: int, sizes: tuple[int, ...] = LARGE_SIZES) -> Hostile:
    """Return state number ``index`` of a large sparse network."""
    rng = np.random.default_rng([2, index])
    n = int(rng.choice(sizes))
    kinds = ("ring", "deep tree", "tree", "wheel", "hubs", "mesh", "small world", "expander", "tipping", "mean field")
    kind = "crowd" if index % 40 == 0 else kinds[index % len(kinds)]
    n = min(n, {"crowd": 3_000, "expander": 5_000, "small world": 10_000}.get(kind, n))
    signs = str(rng.choice(SIGNS))
    if kind == "tipping":
        return Hostile(f"tipping, N = {n}", _tipping(rng, n, 10.0 ** rng.uniform(-6, 6)), np.zeros((1, n)))
    edges = _graph(rng, n, str(rng.choice(["ring", "tree"])) if kind == "mean field" else kind)
    n = int(edges.max()) + 1
    weight, phases = _state(rng, edges, n, signs)
    options = {"global_coupling": float(rng.choice([0.1, 2.0]))} if kind == "mean field" else {}
    return Hostile(f"{kind}, {signs}, N = {n}", _signed(edges, weight, n, **options), phases[None])


def judged_wrongly(case: Hostile, verdict: Verdict, values: np.ndarray | None) -> str:
    """Return what is wrong with a verdict on a matrix with these eigenvalues; empty where nothing is.

    Where they are too near to zero to have a sign, or too many, pivots tell: see `negative_pivots`. Verdicts that say
    less than is true (unproved, marginal within 1e-10 of the norm) are not wrong.
    """
    if values is None:
        least, norm = np.nan, np.nan
    else:
        least, norm = float(np.min(values.real)), float(np.max(np.abs(values)))
    nearly = 1e-10 * float(case.system.scales[1][0])
    if verdict is Verdict.MARGINAL and abs(least) > 1.01 * nearly + 1e-13 * norm:
        return f"marginal, but the smallest eigenvalue is {least}"
    if verdict not in (Verdict.STABLE, Verdict.UNSTABLE):
        return ""
    n, reciprocal = case.network.size, case.system.reciprocal
    full = case.network.n_edges > 20 * n or case.network.global_coupling is not None
    if reciprocal and not abs(least) > 1e-14 * n * norm and (n <= 400 or n > 2_000 or not full):
        stable = negative_pivots(case) == 0
    else:
        # Without reciprocity eigenvalues are more uncertain than that.
        slack = (1e-15 * n if reciprocal else 1e-9) * norm
        stable = least > (-slack if verdict is Verdict.STABLE else slack)
    return "" if stable == (verdict is Verdict.STABLE) else f"{verdict.name}, but the smallest eigenvalue is {least}"


def negative_pivots(case: Hostile) -> int:
    """Return how many pivots of the reduced Laplacian are negative.

    Up to 2,000 oscillators the matrix is made and eliminated with 64 bits of mantissa, from the nodes of least degree
    on; above that SciPy's factorisation of the matrix scaled to a unit diagonal decides.
    """
    network, phases = case.network, case.phases[0].astype(np.longdouble)
    if network.size > 2_000:
        return _negative_pivots_of_factors(case)
    i, j = network.edges.T
    weight = network.coupling.astype(np.longdouble) * np.cos(phases[j] - phases[i])
    matrix = np.zeros((network.size, network.size), dtype=np.longdouble)
    np.add.at(matrix, (i, j), -weight)
    np.add.at(matrix, (j, i), -weight)
    if network.global_coupling is not None:
        matrix -= network.global_coupling.item() / np.longdouble(network.size) * np.cos(phases[:, None] - phases)
        np.fill_diagonal(matrix, 0)
    np.fill_diagonal(matrix, -np.sum(matrix, axis=1))
    each = np.arange(network.size)
    if network.field_strength is not None:
        matrix[each, each] += network.field_strength * np.cos(network.field_phase - phases)
    if network.second_strength is not None:
        matrix[each, each] += 2 * network.second_strength * np.cos(2 * (network.second_phase - phases))
    free = network.free
    return _inertia(matrix[np.ix_(free, free)])


def _inertia(matrix: np.ndarray) -> int:
    """Return the number of negative pivots, eliminating the row with the fewest entries first."""
    matrix, entries, negative = matrix.copy(), matrix != 0, 0
    count = entries.sum(axis=1)
    for _ in range(len(matrix)):
        k = int(np.argmin(count))
        entries[:, k] = False
        near = np.flatnonzero(entries[k])
        pivot = matrix[k, k]
        negative += bool(pivot <= 0)
        block = np.ix_(near, near)
        if pivot != 0:
            matrix[block] -= np.outer(matrix[near, k], matrix[k, near]) / pivot
        entries[block] = True
        count[near] = entries[near].sum(axis=1)
        count[k] = len(matrix) + 1
    return negative


def _negative_pivots_of_factors(case: Hostile) -> int:
    """Return the same of L = A - U U^T by the factors of [[A, U], [U^T, 1]], scaled to a unit diagonal."""
    matrix, network, phases = sparse_matrix(case), case.network, case.phases[0]
    if network.global_coupling is not None:
        share = network.global_coupling.item() / network.size
        border = np.sqrt(share) * np.stack([np.cos(phases), np.sin(phases)], axis=1)[network.free]
        matrix = sparse.block_array([[matrix, border], [border.T, np.eye(2)]], format="csc")
    diagonal = matrix.diagonal()
    if np.any(diagonal <= 0):
        return 1
    scale = sparse.diags_array(1 / np.sqrt(diagonal))
    return int(np.sum(_factored(scale @ matrix @ scale, "COLAMD").U.diagonal() < 0))


def sparse_matrix(case: Hostile) -> sparse.csc_array:
    """Return the reduced Laplacian without what a mean field adds off its diagonal."""
    network, phases = case.network, case.phases[0]
    i, j = network.edges.T
    weight = network.coupling * np.cos(phases[j] - phases[i])
    n = network.size
    ends = (np.concatenate([i, j]), np.concatenate([j, i]))
    matrix = sparse.coo_array((np.concatenate([-weight, -weight]), ends), shape=(n, n)).tocsr()
    diagonal = -matrix.sum(axis=1)
    if network.global_coupling is not None:
        share = network.global_coupling.item() / n
        diagonal += share * (np.cos(phases) * np.cos(phases).sum() + np.sin(phases) * np.sin(phases).sum())
    free = network.free
    return sparse.csc_array((matrix + sparse.diags_array(diagonal)).tocsr()[free][:, free])


def _factored(matrix: sparse.csc_array, order: str) -> Any:
    options = {"permc_spec": order, "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    return splu(sparse.csc_array(matrix), **options)


def _cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least processor time of up to seven calls, fewer where they take long, and what the last returned."""
    best, total = np.inf, 0.0
    for _ in range(7):
        before = time.process_time()
        answer = work()
        taken = time.process_time() - before
        best, total = min(best, taken), total + taken
        if total > 0.2:
            break
    return best, answer


@on_one_blas_thread
def measured(case: Hostile, *, check: bool = True, **options) -> dict:
    """Return time and verdict of one certificate, and the time of what it is compared with."""
    system = case.system
    certificate, found = _cpu(lambda: stability(case.system, case.phases, explain=True, **options))
    verdict, values = Verdict(int(found.verdict[0])), None
    if case.network.size <= 2_000:
        matrix = system.laplacian(case.phases)[0]
        symmetric = (matrix + matrix.T) / 2
        baseline, values = _cpu(lambda: np.linalg.eigvalsh(symmetric))
        if not system.reciprocal:
            values = np.linalg.eigvals(matrix)
    else:
        matrix = sparse_matrix(case)
        orders = ("MMD_AT_PLUS_A", "COLAMD")
        baseline = min(_cpu(partial(_factored, matrix, order))[0] for order in orders)
    wrong = judged_wrongly(case, verdict, values) if check else ""
    result = {"name": case.name, "ratio": certificate / baseline, "seconds": certificate, "verdict": verdict.name}
    return result | {"baseline": baseline, "wrong": wrong}


def summary(results: list[dict]) -> dict:
    """Return the figures of a campaign."""
    ratios, slowest = np.array([each["ratio"] for each in results]), sorted(results, key=lambda each: -each["ratio"])
    return {
        "states": len(results),
        "worst": float(ratios.max()),
        "percentile_95": float(np.percentile(ratios, 95)),
        "median": float(np.median(ratios)),
        "wrong": sum(bool(each["wrong"]) for each in results),
        "verdicts": dict(Counter(each["verdict"] for each in results)),
        "slowest": [{key: each[key] for key in ("name", "ratio")} for each in slowest[:5]],
    }


if __name__ == "__main__":
    counts = [int(word) for word in sys.argv[1:3]] or [380, 120]
    done: dict[str, list[dict]] = {"reciprocal": [], "one way": [], "large": []}
    # Compiled code is loaded before anything is measured: by a graph around hubs and one of many neighbours.
    for first in (large(14), dense(219)):
        measured(first, check=False)
    for draw, count in ((dense, counts[0]), (large, counts[1])):
        for index in range(count):
            case = draw(index)
            part = "large" if draw is large else "reciprocal" if case.network.reciprocal else "one way"
            done[part].append({"index": index, **measured(case)})
            print(part, json.dumps(done[part][-1]), flush=True)
    versions = {name: version(name) for name in ("phasegrad", "numpy", "scipy", "numba")}
    kept = {"kind": "phasegrad certificates", "format": 1, "versions": versions}
    kept |= {part: summary(results) for part, results in done.items() if results}
    print(json.dumps(kept, indent=1))
    if len(sys.argv) > 3:
        Path(sys.argv[3]).write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
