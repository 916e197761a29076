"""How well gradients agree: every computation of sections 3 to 5 and 7, from a few words to plain numbers.

The networks are random ones of the paper's kind, or its 2+5+2 network; each function states its protocol.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from phasegrad._validation import FloatArray
from phasegrad.dynamics import force, laplacian
from phasegrad.equilibria import Equilibrium, find_equilibrium
from phasegrad.gradients import (
    Gradient,
    GradientWarning,
    adjoint,
    autograd,
    centred,
    check_gradients,
    cosine,
    finite_difference,
    holomorphic,
    relative_error,
    two_phase,
)  # fmt: skip
from phasegrad.networks import Network, from_matrix, layered, random_network, ring, to_matrix
from phasegrad.objectives import PaperPair, PhaseTargets
from phasegrad.terms import Interaction, OddSeries, Sine
from phasegrad_paper.studies.arms import Arm, load, trained_networks

Question: TypeAlias = tuple[Network, Equilibrium, PhaseTargets, tuple[float, float]]

BETA = 1e-4
STEP = 1e-5
TARGET = (-0.2, 0.2)
ASYMMETRY_SIZE, ASYMMETRY_BETA = 15, 1e-3
FINITE_SIZE, FINITE_BETA = 15, 0.1
FIGURE_SIZE, FIGURE_BETA = 15, 1e-3
BETAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-8)
SAMPLES = 5
_STEP = 1e-6
_ORDER_NETWORKS = 20

has_torch = importlib.util.find_spec("torch") is not None


def sine_row(n: int, seed: int = 42) -> dict[str, Any]:
    """Return one row of Table 1.

    `random_network` with max(2, N // 4) outputs; targets are the free phases plus U(-0.3, 0.3) from a fresh stream with
    the same seed; nudge 1e-4; finite differences with step 1e-5.
    """
    return _row(n, seed, Sine())


def series_row(n: int, coefficients: Sequence[float]) -> dict[str, Any]:
    """Return the same row for an odd series in place of the sine: the universality claim of section 7."""
    return {"coefficients": list(coefficients), **_row(n, 42, OddSeries(tuple(coefficients)))}


def seed_rows(seeds: int) -> list[dict[str, Any]]:
    """Return one row per seed at N = 10."""
    return [{"seed": seed, **sine_row(10, seed)} for seed in range(seeds)]


def _row(n: int, seed: int, interaction: Interaction) -> dict[str, Any]:
    network = random_network(n, seed=seed, n_outputs=max(2, n // 4), interaction=interaction)
    equilibrium = find_equilibrium(network, eigenvalue=True)
    question = (network, equilibrium, PhaseTargets(), perturbed_target(network, equilibrium, seed))
    nudged = two_phase(*question, beta=BETA).omega
    exact = adjoint(*question).omega
    differences = finite_difference(*question, step=STEP).omega
    derived = autograd(*question).omega if has_torch else None
    assert equilibrium.smallest_eigenvalue is not None
    return {
        "N": n,
        "freq_params": n - 1,
        "cos_two_phase_fd": cosine(nudged, differences),
        "cos_autograd_two_phase": None if derived is None else cosine(derived, nudged),
        "cos_adjoint_fd": cosine(exact, differences),
        "cos_autograd_adjoint": None if derived is None else cosine(derived, exact),
        "residual": float(equilibrium.residual),
        "stable": bool(equilibrium.stable),
        "smallest_eigenvalue": float(equilibrium.smallest_eigenvalue),
    }


def perturbed_target(network: Network, equilibrium: Equilibrium, seed: int) -> FloatArray:
    """Return the free output phases plus U(-0.3, 0.3) from a fresh stream."""
    outputs = list(network.outputs)
    return equilibrium.phases[outputs] + np.random.default_rng(seed).uniform(-0.3, 0.3, len(outputs))


def scatter() -> dict[str, Any]:
    """Return the two gradients of Figure 2a, node by node."""
    network = random_network(FIGURE_SIZE, seed=42)
    question = _question(network)
    nudged, exact = two_phase(*question, beta=FIGURE_BETA).omega, adjoint(*question).omega
    return {
        "N": FIGURE_SIZE,
        "beta": FIGURE_BETA,
        "two_phase": nudged[network.free].tolist(),
        "adjoint": exact[network.free].tolist(),
        "cosine": cosine(nudged, exact),
    }


def structure(seeds: int) -> dict[str, Any]:
    """Return how the Jacobian of equilibria compares with a graph Laplacian, and a connected counterexample.

    The counterexample is a ring of six whose neighbours are 120 degrees apart: an equilibrium of a connected graph with
    symmetric coupling, whose effective weights are negative.
    """
    found: dict[str, Any] = {"asymmetry": [], "row_sum": [], "difference": [], "smallest_eigenvalue": []}
    for seed in range(seeds):
        network = random_network(10, seed=seed)
        equilibrium = find_equilibrium(network, eigenvalue=True)
        jacobian = _jacobian(network, equilibrium.phases)
        reduced = jacobian[np.ix_(network.free, network.free)]
        found["asymmetry"].append(float(np.max(np.abs(jacobian - jacobian.T))))
        found["row_sum"].append(float(np.max(np.abs(jacobian.sum(axis=1)))))
        found["difference"].append(float(np.max(np.abs(reduced + laplacian(network, equilibrium.phases)))))
        found["smallest_eigenvalue"].append(float(np.min(equilibrium.smallest_eigenvalue)))  # type: ignore[arg-type]
    twisted = ring(6).replace(omega=np.zeros(6))
    eigenvalues = np.linalg.eigvalsh(laplacian(twisted, 2 * np.pi / 3 * np.arange(6)))
    return found | {"counterexample": float(eigenvalues.min())}


def _jacobian(network: Network, phases: FloatArray) -> FloatArray:
    """Return the derivative of all forces by all phases, by central differences."""
    steps = _STEP * np.eye(network.size)
    return ((force(network, phases + steps) - force(network, phases - steps)) / (2 * _STEP)).T


def raw_against_centred(seeds: int) -> list[dict[str, float]]:
    """Return, per seed, how well the centred gradient minus its mean predicts what turning a raw frequency does."""
    rows = []
    for seed in range(seeds):
        question = _question(random_network(15, seed=seed))
        by_centred = adjoint(*question).omega
        turned = finite_difference(*question, frequencies="raw", step=STEP).omega
        error = relative_error(by_centred - by_centred.mean(), turned)
        rows.append({"seed": seed, "error_of_centred_minus_mean": error, "cos_centred_raw": cosine(by_centred, turned)})
    return rows


def raw_on_vowel_networks(seeds: int) -> list[float]:
    """Return the cosine between the gradient used in training and that of the raw frequencies that are trained."""
    values = []
    for question in _vowel_questions(seeds):
        learnable = slice(len(question[0].inputs), None)
        by_centred, raw = adjoint(*question).omega, adjoint(*question, frequencies="raw").omega
        values.append(cosine(by_centred[learnable], raw[learnable]))
    return values


def parameters(seeds: int) -> list[dict[str, Any]]:
    """Return the agreement with the adjoint gradient, per network, parameter and method: fields and clamped inputs too.

    Where data drives a network, the gradient by it is one more. Not tabulated in the paper, which gives the coupling
    formula only.
    """
    methods = ["adjoint", "two_phase", "centred", "holomorphic", "finite_difference", *["autograd"] * has_torch]
    rows: list[dict[str, Any]] = []
    for name, seed, network, inputs in _small_networks(seeds):
        question = (network, find_equilibrium(network, inputs), PhaseTargets(), TARGET)
        wrt = (*network.parameters, *["inputs"] * (inputs is not None))
        table = check_gradients(*question, wrt=wrt, methods=methods, step=STEP)
        first = table.methods.index("adjoint")
        for parameter in table.cosine:
            distance = 1 - table.cosine[parameter][:, first]
            for method, far, error in zip(
                table.methods, distance, table.relative_error[parameter][:, first], strict=True
            ):
                if method != "adjoint":
                    row = {"network": name, "seed": seed, "parameter": parameter, "method": method}
                    rows.append({**row, "one_minus_cosine": float(far), "relative_error": float(error)})
    return rows


def _small_networks(seeds: int) -> Iterator[tuple[str, int, Network, Any]]:
    for seed in range(seeds):
        rng = np.random.default_rng(seed + 3000)
        field: dict[str, Any] = {"field_strength": rng.uniform(0.2, 1.0, 10), "field_phase": rng.uniform(-1.0, 1.0, 10)}
        data = rng.uniform(-1.0, 1.0, (3, 2))
        yield "random", seed, random_network(10, seed=seed), None
        yield "random, field", seed, random_network(10, seed=seed, **field), None
        series = OddSeries((1.0, 0.3, 0.15))
        yield "series, field", seed, random_network(10, seed=seed, interaction=series, **field), None
        yield "2+5+2", seed, layered(2, 5, 2, seed=seed), data
        yield "2+5+2, clamped", seed, layered(2, 5, 2, seed=seed, input_mode="phase"), data


def asymmetric_cosines(asymmetry: float, seeds: int) -> list[float]:
    """Return, per seed, the cosine of two-phase and finite differences at one level of asymmetry: Table 2.

    `random_network(15)` with two outputs; targets are the free phases plus U(-0.3, 0.3) from stream seed + 2000; nudge
    1e-3 against finite differences with step 1e-5.
    """
    values = []
    for seed in range(seeds):
        network = asymmetric_network(asymmetry, seed)
        equilibrium = find_equilibrium(network)
        question = (network, equilibrium, PhaseTargets(), perturbed_target(network, equilibrium, seed + 2000))
        with warnings.catch_warnings():
            # That it is biased is what is measured here.
            warnings.simplefilter("ignore", GradientWarning)
            nudged = two_phase(*question, beta=ASYMMETRY_BETA).omega
        values.append(cosine(nudged, finite_difference(*question, step=STEP).omega))
    return values


def asymmetric_network(asymmetry: float, seed: int) -> Network:
    """Return a random network with every direction of every coupling multiplied by 1 + U(-a, a) on its own.

    The factors come from an N x N matrix of draws from stream seed + 1000.
    """
    network = random_network(ASYMMETRY_SIZE, seed=seed)
    matrix = to_matrix(network)
    draws = np.random.default_rng(seed + 1000).uniform(-asymmetry, asymmetry, matrix.shape)
    matrix = np.maximum(matrix + draws * np.abs(matrix), 0.0)
    # As in the paper, the reference is held by force and its own equation dropped.
    return from_matrix(matrix, omega=network.omega, outputs=network.outputs, grounded=True)


def finite_beta(seeds: int) -> dict[str, list[float]]:
    """Return, per seed, cosine and ratio of lengths of two-phase at nudge 0.1 and adjoint, `random_network(15)`."""
    cosines, scales = [], []
    for seed in range(seeds):
        question = _question(random_network(FINITE_SIZE, seed=seed))
        nudged, exact = two_phase(*question, beta=FINITE_BETA).omega, adjoint(*question).omega
        cosines.append(cosine(nudged, exact))
        scales.append(float(np.linalg.norm(nudged) / np.linalg.norm(exact)))
    return {"cosines": cosines, "scales": scales}


_NUDGED: dict[str, Callable[..., Gradient]] = {
    "two_phase": two_phase,
    "centred": centred,
    "complex_step": holomorphic,
    "circle_4": lambda *question, beta: holomorphic(*question, beta=beta, points=4),
}
#: Order of each method, and over how many of the nudges truncation stands clear of rounding.
ORDERS = {"two_phase": (1, 4), "centred": (2, 3), "complex_step": (2, 3), "circle_4": (4, 2)}


def beta_error() -> dict[str, Any]:
    """Return the median error against the adjoint gradient per method and nudge, and the fitted order of each method.

    `layered(2, 5, 2)`, seeds 0 to 19, one input U(-1, 1)^2 from stream seed + 4000, targets -0.2 and +0.2.
    """
    errors = {name: np.zeros((_ORDER_NETWORKS, len(BETAS))) for name in _NUDGED}
    for seed, question in enumerate(_vowel_questions(_ORDER_NETWORKS)):
        exact = adjoint(*question).omega
        for name, method in _NUDGED.items():
            for column, beta in enumerate(BETAS):
                errors[name][seed, column] = relative_error(method(*question, beta=beta).omega, exact)
    median = {name: np.median(values, axis=0) for name, values in errors.items()}
    slopes = {
        name: float(np.polyfit(np.log10(BETAS[:count]), np.log10(median[name][:count]), 1)[0])
        for name, (_, count) in ORDERS.items()
    }
    return {
        "betas": list(BETAS),
        "median_relative_error": {name: values.tolist() for name, values in median.items()},
        "slopes": slopes,
        "complex_step_at_1e-8": errors["complex_step"][:, BETAS.index(1e-8)].tolist(),
    }


def _question(network: Network, inputs: Any = None) -> Question:
    return network, find_equilibrium(network, inputs), PhaseTargets(), TARGET


def _vowel_questions(seeds: int) -> Iterator[Question]:
    for seed in range(seeds):
        yield _question(layered(2, 5, 2, seed=seed), np.random.default_rng(seed + 4000).uniform(-1, 1, 2))


def along_training(seeds: int) -> list[dict[str, float]]:
    """Return, per seed, the worst cosine of two-phase and adjoint over five samples before and after training."""
    rows = []
    before, after = trained_networks(Arm(learn="both", epochs=150, evaluate_every=150, seeds=seeds))
    for seed in range(seeds):
        data = load("ai", "train", seed)
        row = {}
        for name, network in (("untrained", before[seed]), ("trained", after[seed])):
            equilibrium = find_equilibrium(network, data.x_train[:SAMPLES])
            question = (network, equilibrium, PaperPair(), data.y_train[:SAMPLES])
            nudged, exact = two_phase(*question, beta=BETA).omega, adjoint(*question).omega
            row[name] = min(cosine(a, b) for a, b in zip(nudged, exact, strict=True))
            row[f"{name}_angle"] = float(np.max(equilibrium.largest_angle))
        rows.append(row)
    return rows
