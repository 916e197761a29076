"""Sections 3 to 5 and 7: the phase-gradient identity, its ingredients and its reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phasegrad_paper.studies import agreement
from phasegrad_paper.studies.measures import Measure, Quantity, Results, Unit, published
from phasegrad_paper.studies.piece import Piece
from phasegrad_paper.studies.rules import above, all_of, at_most, below, every
from phasegrad_paper.studies.study import Claim, Figure, Study, Table, check

SIZES = (6, 10, 15, 20, 30, 50, 100, 200)
#: Three oscillators fall apart with the paper's seed; finite differences on more than the largest take hours.
SMALLEST, LARGEST = 4, 2000
SERIES = ((1.0, 0.3, 0.15), (1.0, 0.0, -0.2))
SEEDS, PARAMETER_SEEDS = 10, 3
Rows = Callable[[Results], list[dict[str, Any]]]

_EPSILON = float(np.finfo(float).eps)
_NUDGE = "the square of the nudge of 1e-4"
_NUDGES = "ten times the square of the nudge of 1e-4"
_STEP = "rounding over a step of 1e-5"
_COSINES = {
    "cos_two_phase_fd": "two-phase, differences",
    "cos_autograd_two_phase": "PyTorch, two-phase",
    "cos_adjoint_fd": "adjoint, differences",
    "cos_autograd_adjoint": "PyTorch, adjoint",
}


def study(sizes: Sequence[int] = SIZES) -> Study:
    """Return the study on networks of these sizes; the paper's if left out."""

    def rows(*names: str) -> Rows:
        return lambda results: [results[f"{name}_{n}"] for name in names for n in sizes]

    sine, series = rows("sine"), rows(*(f"series{k}" for k in range(len(SERIES))))

    return Study(
        name="identity",
        title="The phase-gradient identity",
        question="Is the phase shift under a weak nudge the gradient?",
        protocol="Random networks of 6 to 200 oscillators (edge probability 0.6, mean coupling 5, frequencies of "
        "spread 0.3, seed 42), max(2, N // 4) outputs with targets within 0.3 of the free phases; nudge 1e-4; "
        "two-phase, adjoint, finite-difference and PyTorch gradients; ten seeds at N = 10; two odd series in place of "
        "the sine.",
        claims=(*_table_claims(sine), *_theory_claims(series)),
        checks=_checks(sine, series),
        plan=lambda seeds: _plan(sizes, seeds),
        tables=lambda results: _tables(results, sine(results), series(results)),
        figures=lambda results: _figures(results, sine(results)),
    )


def _plan(sizes: Sequence[int], seeds: int | None) -> dict[str, Piece]:
    count = {"seeds": min(seeds or SEEDS, SEEDS)}
    few = {"seeds": min(seeds or PARAMETER_SEEDS, PARAMETER_SEEDS)}
    pieces = {
        "seeds": Piece("seeds at N = 10", agreement.seed_rows, count, 0.3),
        "parameters": Piece("couplings and fields", agreement.parameters, few, 1.0),
        "raw": Piece("raw against centred", agreement.raw_against_centred, count, 0.2),
        "raw_vowels": Piece("raw against centred, 2+5+2", agreement.raw_on_vowel_networks, count, 0.1),
        "scatter": Piece("Figure 2a", agreement.scatter, {}, 0.1),
        "structure": Piece("Jacobian and Laplacian", agreement.structure, count, 0.1),
    }
    for n in sizes:
        weight = 0.1 + 2 * (n / 200) ** 3
        pieces[f"sine_{n}"] = Piece(f"Table 1, N = {n}", agreement.sine_row, {"n": n}, weight)
        for k, series in enumerate(SERIES):
            options = {"n": n, "coefficients": list(series)}
            pieces[f"series{k}_{n}"] = Piece(f"odd series, N = {n}", agreement.series_row, options, weight)
    return pieces


def _distance(column: str, rows: Rows, where: str) -> Quantity:
    """Return the largest 1 - cosine of a column, over the rows that have it."""
    words = f"largest 1 - cosine ({_COSINES[column]}, {where})"
    return Quantity.largest(words, lambda r: [1 - row[column] for row in rows(r) if row[column] is not None])


def _error(method: str, parameter: str = "", error: str = "one_minus_cosine") -> Quantity:
    """Return the largest error of a method against the adjoint gradient, by all parameters or by one."""

    def errors(results: Results) -> list[float]:
        rows = [row for row in results["parameters"] if row["method"] == method]
        return [row[error] for row in rows if parameter in ("", row["parameter"])]

    what = "1 - cosine" if error == "one_minus_cosine" else "relative error"
    return Quantity.largest(f"largest {what} ({method}, adjoint; {parameter or 'all parameters'})", errors)


def _structure(words: str, key: str) -> Quantity:
    return Quantity.largest(words, lambda results: results["structure"][key])


def _above_epsilon(words: str, rows: Rows) -> Quantity:
    words = f"number of residuals above machine epsilon ({words})"
    return Quantity.count(words, lambda results: [row["residual"] > _EPSILON for row in rows(results)])


def _stored(_results: Results) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = published("table1")["rows"]
    return rows


def _of_rows(rows: Rows, column: str) -> Callable[[Results], list[Any]]:
    return lambda results: [row[column] for row in rows(results)]


_SCATTER = Quantity(
    "1 - cosine (two-phase, adjoint, N = 15, nudge 1e-3)", lambda r: Measure(1 - r["scatter"]["cosine"]), Unit.SMALL
)
_EIGENVALUE = Quantity.smallest(
    "smallest eigenvalue over the tested equilibria", lambda r: r["structure"]["smallest_eigenvalue"], Unit.NUMBER
)
_TWISTED = Quantity(
    "smallest eigenvalue of a connected, symmetric ring of six with neighbours 120 degrees apart",
    lambda results: Measure(results["structure"]["counterexample"]),
)
_CENTRING = Quantity.largest(
    "largest relative error of centred minus its mean, against differences of raw frequencies",
    _of_rows(lambda results: results["raw"], "error_of_centred_minus_mean"),
)
_DIRECTIONS = Quantity.smallest(
    "smallest cosine of the two directions (learnable frequencies, 2+5+2)", lambda r: r["raw_vowels"], Unit.NUMBER
)
_MEAN_DIRECTION = Quantity.mean("mean of that cosine", lambda results: results["raw_vowels"], Unit.NUMBER)
_RAW_DIRECTION = Quantity.smallest(
    "smallest cosine of the two directions (N = 15)", _of_rows(lambda r: r["raw"], "cos_centred_raw"), Unit.NUMBER
)


def _table_claims(sine: Rows) -> tuple[Claim, ...]:
    """Return the claims about Table 1 and Figure 2."""
    here = Quantity.largest("largest residual of the same networks here", _of_rows(sine, "residual"))
    stored = Quantity.largest("largest residual of the published Table 1", _of_rows(_stored, "residual"))
    return (
        Claim(
            "identity-table", "Table 1", "cosine 1.000000 at eight sizes",
            "Two-phase and finite-difference gradients coincide on networks of 6 to 200 oscillators.",
            at_most(_distance("cos_two_phase_fd", sine, "all sizes"), 1e-8, _NUDGE),
            note="The stored column was made at nudge 1e-3, not the stated 1e-4.",
        ),
        Claim(
            "identity-autograd", "Table 1, section 5", "cosine 1.000000 at eight sizes",
            "A computationally independent PyTorch implementation gives the same gradient.",
            at_most(_distance("cos_autograd_two_phase", sine, "all sizes"), 1e-8, _NUDGE),
            note="Needs PyTorch: pip install '.[torch]'.",
        ),
        Claim(
            "identity-residuals", "Figure 2, caption", "8.4e-14 to 1.1e-16 in Table 1",
            "All equilibrium residuals are at or below machine epsilon.",
            at_most(here, _EPSILON, "machine epsilon"), own=at_most(stored, _EPSILON, "machine epsilon"),
            beside=(_above_epsilon("published", _stored), _above_epsilon("here", sine)),
        ),
        Claim(
            "identity-scatter", "Figure 2a", "cosine 1.000000, N = 15, nudge 1e-3",
            "Node by node, two-phase and analytical gradient fall on the diagonal.",
            at_most(_SCATTER, 5e-7, "six digits"),
        ),
        Claim(
            "identity-seeds", "Section 5", "> 0.999999", "Ten seeds at N = 10 all have cosines above 0.999999.",
            at_most(_distance("cos_two_phase_fd", lambda r: r["seeds"], "seeds at N = 10"), 1e-8, _NUDGE),
            note="No stored file goes with this claim; the protocol of Table 1 was used.",
        ),
        Claim(
            "identity-implicit", "Section 4.2, remark", "exact",
            "The implicit function theorem gives the same gradient, by the inverse of the Jacobian.",
            at_most(_distance("cos_adjoint_fd", sine, "all sizes"), 1e-12, _STEP),
        ),
    )  # fmt: skip


def _theory_claims(series: Rows) -> tuple[Claim, ...]:
    """Return the claims about the Jacobian, other parameters and other interactions."""
    return (
        Claim(
            "identity-symmetry", "Section 3.2, Proposition 1", "proved",
            "With symmetric coupling the Jacobian is symmetric: minus a weighted graph Laplacian.",
            all_of(
                at_most(_structure("largest asymmetry of the numerical Jacobian", "asymmetry"), 1e-7),
                at_most(_structure("largest sum of its rows", "row_sum"), 1e-7),
                at_most(_structure("largest distance from minus the Laplacian", "difference"), 1e-7),
            ),
        ),
        Claim(
            "identity-fiedler", "Section 3.2", "stated, by Fiedler's theorem",
            "For a connected graph with symmetric coupling the reduced Laplacian is positive definite.",
            above(_EIGENVALUE, 0), control=below(_TWISTED, 0),
            note="All angles across edges below 90 degrees are enough, as the paper's Assumption 1 says.",
        ),
        Claim(
            "identity-centring", "Section 4.2, remark", "stated",
            "The identity is for mean-centred frequencies; raw ones differ by a correction of rank one.",
            at_most(_CENTRING, 1e-8, _STEP), control=below(_DIRECTIONS, 0.99),
            controls=(_MEAN_DIRECTION, _RAW_DIRECTION),
            note="Training turns raw frequencies along the centred gradient, which descends if the cosine is positive.",
        ),
        Claim(
            "identity-coupling", "Section 4.2, remark", "formula",
            "The same two equilibria give the gradients of all coupling weights.",
            at_most(_error("two_phase", "coupling"), 1e-7, _NUDGES),
        ),
        Claim(
            "identity-universality", "Section 7.2, conclusion", "proved, not measured",
            "The identity extends to every odd coupling function with symmetric strengths.",
            at_most(_distance("cos_two_phase_fd", series, "two odd series"), 1e-8, _NUDGE),
            note="Tested on simulated networks; physical substrates are another claim.",
        ),
        Claim(
            "identity-theorem", "Abstract, Theorem 1", "proved",
            "Phase shift over nudge tends to minus the gradient of the loss by each oscillator's frequency.",
            at_most(_error("holomorphic", error="relative_error"), 1e-13, "rounding, for a complex nudge of 1e-8"),
        ),
    )  # fmt: skip


def _checks(sine: Rows, series: Rows) -> tuple[Claim, ...]:
    def rows(results: Results) -> list[dict[str, Any]]:
        return [*sine(results), *series(results), *results["seeds"]]

    where = "sine, odd series and seeds"
    stable = Quantity.count("number of stable equilibria", _of_rows(rows, "stable"))
    residual = Quantity.largest("largest residual", _of_rows(rows, "residual"))
    methods = {"centred": 1e-12, "holomorphic": 1e-13, "finite_difference": 1e-12, "autograd": 1e-12}
    exact, independent = (_distance(column, rows, where) for column in ("cos_adjoint_fd", "cos_autograd_adjoint"))
    return (
        check("identity-stable", "Every equilibrium is certified stable.", every(stable)),
        check("identity-solved", "Every equilibrium is solved to the solver's tolerance.", at_most(residual, 1e-12)),
        check(
            "identity-exact", "Adjoint gradients and finite differences agree for every interaction and seed.",
            at_most(exact, 1e-12, _STEP),
        ),
        check(
            "identity-independent", "PyTorch and adjoint gradients agree for every interaction and seed.",
            at_most(independent, 1e-12),
        ),
        check(
            "identity-all-two-phase", "Two-phase and adjoint gradients agree by every parameter.",
            at_most(_error("two_phase"), 1e-7, _NUDGES),
        ),
        *(
            check(
                f"identity-all-{method.replace('_', '-')}",
                f"The gradients {method} and adjoint agree by every parameter.", at_most(_error(method), bound),
            )
            for method, bound in methods.items()
        ),
    )  # fmt: skip


def _tables(results: Results, rows: list[dict[str, Any]], series: list[dict[str, Any]]) -> list[Table]:
    known = {row["N"]: row for row in _stored(results)}
    methods = dict.fromkeys(row["method"] for row in results["parameters"])
    worst: dict[tuple[str, str], dict[str, float]] = {}
    for row in results["parameters"]:
        cells = worst.setdefault((row["network"], row["parameter"]), dict.fromkeys(methods, 0.0))
        cells[row["method"]] = max(cells[row["method"]], row["relative_error"])
    raw = [row["cos_centred_raw"] for row in results["raw"]]
    errors = [row["error_of_centred_minus_mean"] for row in results["raw"]]
    columns = (*_COSINES.values(), "residual", "stable")
    note = "Two-phase at nudge 1e-4, finite differences of step 1e-5. Negative values are rounding."
    return [
        Table(
            "table1", "Table 1: 1 - cosine between gradients of different methods",
            ("N", *columns, "two-phase (nudge 1e-3), differences: published", "residual, published"),
            [[row["N"], *_cells(row), *_published_cells(known.get(row["N"]))] for row in rows], note,
        ),
        Table(
            "identity-seeds", f"{len(results['seeds'])} seeds at N = 10: 1 - cosine", ("seed", *columns),
            [[row["seed"], *_cells(row)] for row in results["seeds"]], note,
        ),
        Table(
            "universality", "Universality: odd series in place of the sine, 1 - cosine",
            ("coefficients", "N", *columns),
            [[", ".join(f"{a:g}" for a in row["coefficients"]), row["N"], *_cells(row)] for row in series], note,
        ),
        Table(
            "parameters", "Every parameter: relative error against the adjoint gradient, worst seed",
            ("network", "parameter", *methods), [[*case, *cells.values()] for case, cells in worst.items()],
            "Two-phase and centred at nudge 1e-4, one complex step of 1e-8.",
        ),
        Table(
            "raw-against-centred", "Raw against centred frequencies, N = 15: what turning one raw frequency does",
            ("seeds", "largest error of centred minus mean", "mean cosine of centred and raw", "worst seed"),
            [[len(raw), max(errors), float(np.mean(raw)), min(raw)]],
        ),
    ]  # fmt: skip


def _cells(row: dict[str, Any]) -> list[Any]:
    distances = [None if row[column] is None else 1 - row[column] for column in _COSINES]
    return [*distances, row["residual"], row["stable"]]


def _published_cells(row: dict[str, Any] | None) -> list[Any]:
    return [None, None] if row is None else [1 - row["cos_two_phase_fd"], row["residual"]]


def _figures(results: Results, rows: list[dict[str, Any]]) -> list[Figure]:
    known = {row["N"]: row["residual"] for row in _stored(results)}
    residuals = {
        "N": [row["N"] for row in rows],
        "measured": [row["residual"] for row in rows],
        "published": [known.get(row["N"], np.nan) for row in rows],
    }
    return [
        Figure(
            "schematic",
            "The two-phase protocol on a 2+5+2 network: settle, nudge the outputs, read the gradient off the shift.",
            "Three panels: oscillators as clocks at rest, the same with nudged outputs and shifted hands, and bars of "
            "the gradient per oscillator with the exact values on top.",
            {},
        ),
        Figure(
            "verification",
            "(a) Two-phase against adjoint gradient, node by node, N = 15, nudge 1e-3; (b) residual of the equilibria "
            "of Table 1, published and measured, with machine epsilon.",
            "Left: points on the diagonal. Right: residuals against network size on a logarithmic axis around the line "
            "of machine epsilon.",
            {"scatter": results["scatter"], "residuals": residuals},
        ),
    ]


STUDY = study()
