"""One large sparse network: CPU seconds and memory by size, and ratios against SciPy's solvers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from phasegrad._validation import FloatArray
from phasegrad.equilibria import find_equilibrium
from phasegrad.gradients import adjoint, centred, relative_error, two_phase
from phasegrad.networks import Network, erdos_renyi, lattice, random_regular, small_world
from phasegrad.objectives import PhaseTargets
from phasegrad_bench._plain import coupling_matrix, settle_arrays, settle_sparse
from phasegrad_bench._timing import in_turn

FAMILIES = ("grid", "random regular 6", "Erdos-Renyi 10", "small world 6")
#: Families on which the diagonal is a preconditioner that a good user would choose.
EXPANDERS = FAMILIES[1:]
SIZES = (10_000, 100_000, 1_000_000)
_TARGET = (0.3, -0.3)
_WARM_UP = 2500


def build(family: str, n: int, seed: int = 0) -> Network:
    """Return a network of one family with normal frequencies, weak enough to lock."""
    side = round(n**0.5)
    n = side * side if family == "grid" else n
    omega = np.random.default_rng(seed).normal(0, 0.1 if family == "grid" else 0.3, n)
    options: dict[str, Any] = {"omega": omega, "outputs": (n // 3, n - 1)}
    if family == "grid":
        return lattice(side, side, **options)
    if family == "random regular 6":
        return random_regular(n, 6, seed=seed, **options)
    if family == "Erdos-Renyi 10":
        return erdos_renyi(n, 10, seed=seed, **options)
    return small_world(n, 6, 0.1, seed=seed, **options)


def sparse(sizes: tuple[int, ...] = SIZES, *, large: int = 300_000, plain: int = 400) -> dict[str, Any]:
    """Return rows by family and size, each measured in a process of its own, and the ratios against other ways.

    The exponent of a row is the growth of equilibrium and gradient together since the family's smallest size.
    """
    rows = []
    for family in FAMILIES:
        first: dict[str, Any] | None = None
        for n in sizes:
            command = [sys.executable, "-m", "phasegrad_bench._sparse", family, str(n)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            row = json.loads(done.stdout)
            first = first or row
            spent = [each["equilibrium_s"] + each["adjoint_s"] for each in (first, row)]
            grown = np.log(row["N"] / first["N"])
            row["exponent"] = float(np.log(spent[1] / spent[0]) / grown) if grown > 0 else None
            rows.append(row)
    return {"rows": rows, "ratios": ratios(large, plain), "nudged": nudged(min(100_000, max(sizes)))}


def measure(family: str, n: int) -> dict[str, Any]:
    """Return what building, the equilibrium and the adjoint gradient by all parameters take, compiled code loaded."""
    small = build(family, _WARM_UP)
    _gradient(small, find_equilibrium(small))
    start = time.process_time()
    network = build(family, n)
    built = time.process_time()
    equilibrium = find_equilibrium(network)
    solved = time.process_time()
    _gradient(network, equilibrium)
    ended = time.process_time()
    return {
        "family": family,
        "N": network.size,
        "build_s": built - start,
        "equilibrium_s": solved - built,
        "adjoint_s": ended - solved,
        "peak_mb": _peak_mb(),
        "residual": float(equilibrium.residual),
        "stable": bool(equilibrium.stable),
    }


def _peak_mb() -> float:
    """Return the most memory this process had; what `resource` says begins, on Linux, with what its parent had."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    own = [float(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return own[0] / 1024 if own else _peak_of_system()


def _peak_of_system() -> float:
    """Return the most memory this process had where there is no /proc, in MB; NaN on Windows, which does not tell."""
    try:
        import resource
    except ModuleNotFoundError:
        return float("nan")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def ratios(large: int, plain: int) -> dict[str, dict[str, float]]:
    """Return CPU seconds and ratios against Newton with SciPy's conjugate gradients, by family, and against fsolve."""
    others: dict[str, tuple[str, int, Callable[[Network], FloatArray]]] = {
        f"SciPy Newton + cg, {family}, N = {large:,}": (family, large, settle_sparse) for family in EXPANDERS
    }
    others[f"fsolve, random regular 6, N = {plain:,}"] = ("random regular 6", plain, _plain)
    return {name: _ratio(name, build(family, n), other) for name, (family, n, other) in others.items()}


def _ratio(name: str, network: Network, other: Callable[[Network], FloatArray]) -> dict[str, float]:
    found: dict[str, FloatArray] = {}

    def theirs() -> None:
        found["other"] = other(network)

    def ours() -> None:
        found["phasegrad"] = find_equilibrium(network).phases

    slow, fast = in_turn(theirs, ours, rounds=3)
    if np.max(np.abs(found["other"] - found["phasegrad"])) > 1e-6:
        raise AssertionError(f"{name} and the package disagree, so their times cannot be compared")
    return {"other_s": slow, "phasegrad_s": fast, "ratio": slow / fast}


def nudged(n: int) -> list[dict[str, Any]]:
    """Return the relative error of the two-phase and centred gradients at their default beta, by family."""
    rows = []
    for family in FAMILIES:
        network = build(family, n)
        equilibrium = find_equilibrium(network)
        question = (network, equilibrium, PhaseTargets(), _TARGET)
        exact = adjoint(*question).omega
        row: dict[str, Any] = {"family": family, "N": network.size}
        for method in (two_phase, centred):
            gradient = method(*question)
            row[method.__name__] = {"beta": gradient.beta, "error": relative_error(gradient.omega, exact)}
        rows.append(row)
    return rows


def _gradient(network: Network, equilibrium: Any) -> None:
    adjoint(network, equilibrium, PhaseTargets(), _TARGET, wrt=("omega", "coupling"))


def _plain(network: Network) -> FloatArray:
    """Return the equilibrium by fsolve with its numerical Jacobian."""
    zeros = np.zeros((3, network.size))
    return settle_arrays(coupling_matrix(network), network.omega - network.omega.mean(), *zeros, tolerance=1e-12)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
