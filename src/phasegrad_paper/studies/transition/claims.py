"""The study of the transition to synchrony and of noise, both beside theory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from phasegrad.dynamics import laplacian
from phasegrad.equilibria import find_equilibrium
from phasegrad.networks import layered, ring
from phasegrad.simulation import simulate, transition
from phasegrad_paper.studies.measures import Measure, Quantity, Results, Unit
from phasegrad_paper.studies.piece import Piece
from phasegrad_paper.studies.rules import above, at_most
from phasegrad_paper.studies.study import Study, Table, check

SIZE = 100_000
FACTORS = (0.9, 1.1, 1.3, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0)
UNIMODAL = ("lorentzian", "gaussian", "uniform")
CENTRE, BIMODAL = 0.49, (1.6, 1.7, 1.75, 1.8, 1.85, 1.9, 2.1, 2.3)
_CRITICAL = {"lorentzian": 1.0, "gaussian": 0.5 * float(np.sqrt(8 / np.pi)), "uniform": 2 / float(np.pi)}
_WALKERS = 20_000


def synchrony(frequencies: str, couplings: Sequence[float], size: int, sweep: str, centre: float) -> dict[str, Any]:
    """Return the order parameter by coupling beside theory, and the processor time."""
    begin = time.process_time()
    found = transition(frequencies, list(couplings), size=size, sweep=sweep, centre=centre)
    seconds = time.process_time() - begin
    columns = {"down": found.down, "up": found.up, "theory": found.theory, "theory_up": found.theory_up}
    plain = {name: None if each is None else each.tolist() for name, each in columns.items()}
    return {"couplings": list(couplings), "size": size, "error": found.error, "cpu_seconds": seconds, **plain}


def diffusion(noise: float, span: float, walkers: int) -> dict[str, Any]:
    """Return the variance of the mean phase of a locked ring after a time, of many runs, beside 2 D t / N."""
    network = ring(4)
    run = simulate(network, [0.0, span], start=np.zeros((walkers, 4)), noise=noise)
    mean = run.phases[-1].mean(axis=-1)
    return _against(float(np.var(mean)), 2 * noise * span / network.size, walkers)


def locked_variance(noise: float, span: float, walkers: int) -> dict[str, Any]:
    """Return the variance of the angle between two oscillators of a locked network, beside D u^T L^+ u."""
    network = layered(2, 5, 2, seed=0)
    state = find_equilibrium(network, [0.5, -0.5])
    run = simulate(network, [0.0, span], start=np.tile(state.phases, (walkers, 1)), inputs=[0.5, -0.5], noise=noise)
    angle = run.phases[-1, :, 8] - run.phases[-1, :, 2]
    reduced = np.linalg.inv(laplacian(network, state.phases, [0.5, -0.5]))
    along = np.zeros(network.free.size)
    along[[7, 1]] = 1.0, -1.0
    return _against(float(np.var(angle)), float(noise * along @ reduced @ along), walkers)


def _against(measured: float, theory: float, number: int) -> dict[str, Any]:
    """Return a variance beside theory, in standard errors: normal numbers have a variance of 2 s^4 / n in theirs."""
    return {"measured": measured, "theory": theory, "errors": (measured - theory) / (theory * np.sqrt(2 / number))}


def _plan(seeds: int | None) -> dict[str, Piece]:
    del seeds
    pieces = {
        name: Piece(
            f"transition, {name}", synchrony,
            {"frequencies": name, "couplings": [_CRITICAL[name] * k for k in FACTORS], "size": SIZE, "sweep": "down",
             "centre": 0.0}, 20.0,
        )
        for name in UNIMODAL
    }  # fmt: skip
    both = {"frequencies": "bimodal", "couplings": list(BIMODAL), "size": SIZE // 5, "sweep": "both", "centre": CENTRE}
    pieces["bimodal"] = Piece("transition, bimodal", synchrony, both, 40.0)
    options = {"noise": 0.05, "span": 20.0, "walkers": _WALKERS}
    pieces["diffusion"] = Piece("transition, diffusion", diffusion, options, 5.0)
    pieces["locked"] = Piece(
        "transition, locked states", locked_variance, {**options, "noise": 1e-4, "span": 10.0}, 5.0
    )
    return pieces


def _error(name: str) -> Quantity:
    words = f"largest difference of r from theory, {name} frequencies"
    return Quantity(words, lambda results: Measure(results[name]["error"]), Unit.NUMBER)


def _errors(name: str, words: str) -> Quantity:
    return Quantity(words, lambda results: Measure(abs(results[name]["errors"])), Unit.NUMBER)


def _hysteresis(results: Results) -> Measure:
    return Measure(float(np.max(np.array(results["bimodal"]["down"]) - np.array(results["bimodal"]["up"]))))


def _tables(results: Results) -> list[Table]:
    found = []
    for name in UNIMODAL:
        if name in results:
            each = results[name]
            lines = zip(each["couplings"], each["down"], each["theory"], strict=True)
            rows = [[f"{k:.4f}", f"{r:.4f}", f"{t:.4f}", f"{abs(r - t):.4f}"] for k, r, t in lines]
            note = f"{each['size']} oscillators, {each['cpu_seconds']:.0f} s of processor time."
            title, columns = f"Order parameter, {name} frequencies", ("K", "r", "theory", "difference")
            found.append(Table(f"transition-{name}", title, columns, rows, note))
    if "bimodal" in results:
        each = results["bimodal"]
        lines = zip(*(each[name] for name in ("couplings", "down", "theory", "up", "theory_up")), strict=True)
        rows = [[f"{value:.4f}" for value in line] for line in lines]
        note = f"{each['size']} oscillators, two Lorentzians of half width 0.5 at +-{CENTRE:g}."
        ways = ("K", "r, coupling down", "theory", "r, coupling up", "theory")
        found.append(Table("transition-bimodal", "Order parameter, bimodal frequencies", ways, rows, note))
    rows = [
        [words, f"{results[name]['measured']:.4e}", f"{results[name]['theory']:.4e}", f"{results[name]['errors']:+.1f}"]
        for name, words in (
            ("diffusion", "variance of the mean phase of a locked ring of 4, 2 D t / N"),
            ("locked", "variance of an angle in a locked 2+5+2 network, D u^T L^-1 u"),
        )
        if name in results
    ]
    heads = ("quantity", "measured", "theory", "off by standard errors")
    return [*found, Table("transition-noise", f"Noise, {_WALKERS} runs", heads, rows)]


STUDY = Study(
    name="transition",
    title="The transition to synchrony, and noise",
    question="Do oscillators coupled all to all synchronise as Kuramoto's theory says, and diffuse as they should?",
    protocol="100,000 oscillators, their frequencies the quantiles of a distribution, coupling from high to low, "
    "each state from the one before; two peaks also from low to high; 20,000 runs with noise.",
    claims=(),
    checks=(
        *(
            check(f"transition-{name}", f"r(K) of {name} frequencies is Kuramoto's.", at_most(_error(name), 0.005))
            for name in UNIMODAL
        ),
        check(
            "transition-hysteresis", "Two peaks of frequencies synchronise at a higher coupling than they lose it.",
            above(Quantity("largest difference of r between the two ways", _hysteresis, Unit.NUMBER), 0.3),
        ),
        check(
            "transition-diffusion", "The phase of a locked network diffuses by 2 D t / N.",
            at_most(_errors("diffusion", "difference from 2 D t / N in standard errors"), 3.0),
        ),
        check(
            "transition-locked", "Angles of a locked network vary as an Ornstein-Uhlenbeck process does.",
            at_most(_errors("locked", "difference from D u^T L^-1 u in standard errors"), 3.0),
        ),
    ),
    plan=_plan,
    tables=_tables,
)  # fmt: skip
