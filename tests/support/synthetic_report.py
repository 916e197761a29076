"""Made-up outcomes that look like real ones: data for every drawing, and whole reproductions."""

import numpy as np

from phasegrad_paper.reproduction import Reproduction
from phasegrad_paper.studies import Claim, Figure, Study, Table, Verdict
from phasegrad_paper.studies.conditions import COLUMNS, KEY
from phasegrad_paper.studies.measures import Measure, Quantity, Unit
from phasegrad_paper.studies.rules import above, at_least, at_most, every, within

SAMPLES = 55


def drawings(seeds: int, *, everyone: bool | None = None) -> dict[str, dict]:
    """Data for every drawing, of so many seeds; ``everyone`` makes all of them succeed or fail."""
    rng = np.random.default_rng(7)
    success = rng.random(seeds) < 0.5 if everyone is None else np.full(seeds, everyone)
    random = _accuracies(rng, success, 0.96, 0.04)
    spectral = _accuracies(rng, np.ones(seeds, bool), 0.976, 0.02)
    return {
        "schematic": {},
        "verification": _verification(rng),
        "ablation": {
            "arms": {
                "omega": _arm(rng, success, 0.943),
                "coupling": _arm(rng, success, 0.823),
                "both": _arm(rng, success, 0.922),
            }
        },
        "convergence": _convergence(rng, success),
        "spectral": {"random": random, "spectral": spectral},
        "starts": {"starts": starts(seeds, random)},
        "mechanism": {
            "panels": [
                _mechanism(rng, title, success) for title in ("/a i/, ω only", "/a i/, K only", "/o u/", "2+8+2", "FM")
            ]
        },
        "collapse": _collapse(rng, min(seeds, 24)),
        "beta-error": {
            "betas": [1e-1, 1e-2, 1e-3, 1e-4, 1e-8],
            "median_relative_error": {
                "two_phase": [2e-2, 2e-3, 2e-4, 2e-5, 3e-9],
                "centred": [4e-4, 4e-6, 4e-8, 1e-11, 1e-8],
                "complex_step": [3e-4, 3e-6, 3e-8, 3e-10, 0.0],
                "circle_4": [2e-7, 2e-11, 1e-13, 1e-12, 1e-8],
            },
            "slopes": {"two_phase": 1.0, "centred": 2.0, "complex_step": 2.0, "circle_4": 4.0},
        },
        "untrained": {
            "panels": [
                {"title": "ω only", "untrained": _blur(rng, random, 0.2), "trained": random},
                {"title": "K only", "untrained": random, "trained": random},
                {"title": "spectral start", "untrained": _blur(rng, spectral, 0.1), "trained": spectral},
            ]
        },
        "coupling-rates": {
            "rates": [0.001, 0.01, 0.1, 0.3, 0.5],
            "accuracy": [0.85, 0.843, 0.849, 0.796, 0.71],
            "loss": [0.0492, 0.0463, 0.0415, 0.0311, 0.0268],
            "omega_loss": 0.0469,
            "trivial_loss": 0.04,
        },
        "which-parameter": {
            "sizes": [7, 9, 11],
            "paper": 9,
            "panels": [
                {
                    "title": task,
                    "arms": {
                        "omega": [0.5, 0.48, 0.5],
                        "coupling_matched": [0.9] * 3,
                        "both_matched": [0.95, 1.0, 1.0],
                    },
                    "whole": {"coupling": 0.95, "both": 1.0},
                    "logistic": 0.99,
                }
                for task in ("/a i/", "/o u/")
            ],
        },
        "readout-map": {
            "betas": [0.01, 1.0, 100.0],
            "noises": [1e-4, 1e-2],
            "measured": [[0.43, 1.0, 0.998], [0.01, 0.45, 0.96]],
            "predicted": [[0.44, 1.0, 0.998], [0.0, 0.43, 0.95]],
        },
        "repair": {
            "arms": [
                {"title": "paper's pair, random start", "test": random},
                {"title": "paper's pair, spectral start", "test": spectral},
                {"title": "matched pair, random start", "test": _accuracies(rng, np.ones(seeds, bool), 0.99, 0.01)},
                {"title": "logistic regression", "test": [1.0] * seeds},
            ]
        },
    }


def starts(seeds: int, random: list[float]) -> dict[str, list[float]]:
    """Test accuracies by the start of the frequencies: the sign decides."""
    rng = np.random.default_rng(8)
    one, other = np.ones(seeds, bool), np.zeros(seeds, bool)
    signs = {"spectral": one, "anti-spectral": other, "outputs-positive": one, "outputs-negative": other}
    return {"random": random} | {name: _accuracies(rng, success, 0.976, 0.02) for name, success in signs.items()}


# Studies that the findings on the page rest on; others have a number.
FOUND = ("identity", "spectral", "baselines", "which-parameter")


def findings_of(name: str, seeds: int) -> tuple[dict, tuple[Claim, ...]]:
    """Results and claims of a study that a finding rests on."""
    ones = [1.0] * seeds
    results = {
        "spectral": {start: {"test": test} for start, test in drawings(seeds)["starts"]["starts"].items()},
        "baselines": {"repaired_ai": {"test": ones}, "logistic_ai": ones},
    }
    figures = {
        "identity": {"identity-table": 1.4e-10, "identity-theorem": 4.5e-15},
        "which-parameter": {"which-headline": -0.108},
    }
    claims = tuple(
        Claim(key, "Table 1", "stated", f"The claim {key}.", at_most(Quantity(key, lambda _, v=value: Measure(v)), 1.0))
        for key, value in figures.get(name, {}).items()
    )
    return results.get(name, {}), claims


def reproduction(count: int = 3, seeds: int | None = None, everything: bool = False) -> Reproduction:
    """A reproduction of so many studies with every verdict; with ``everything``, every drawing is in it."""
    figures = drawings(seeds or 100) if everything else {"repair": drawings(3)["repair"]}
    decisive = [("starts", figures.pop("starts"))] if everything else []
    studies, outcomes = [], {}
    verdicts = list(Verdict) * 3
    for k in range(count):
        name = FOUND[k] if everything and k < len(FOUND) else f"study-{k}"
        results, found = findings_of(name, seeds or 100)
        claims = found + tuple(claim(f"{name}-{i}", verdicts[(3 * k + i) % len(Verdict)], i == 1) for i in range(3))
        shown = list(figures.items())[k::count] + (decisive if name == "spectral" else [])
        study = Study(
            name=name,
            title=f"Study number {k}: <ω> & K",
            question="Do frequencies learn what couplings cannot?",
            protocol="Vowels /a i/, 2+5+2 networks, seeds 0 to 99, 150 epochs at a learning rate of 0.001.",
            claims=claims,
            plan=lambda _: {},
            tables=lambda _, k=k: [
                _table(f"table-{k}"),
                *([_long_table(f"seeds-{k}")] if k % 2 == 0 else [_wide_table(f"arms-{k}")]),
            ],
            figures=lambda _, shown=shown: [
                Figure(drawing, f"What {drawing} shows, in words of the study.", f"Points of {drawing}.", data)
                for drawing, data in shown
            ],
            remarks=("The published file came from a variant in which absent edges were coupled with 0.01.",),
        )
        studies.append(study)
        outcomes[name] = study.assess(results)
    return Reproduction(tuple(studies), outcomes, seeds)


def claim(key: str, verdict: Verdict, controlled: bool = False) -> Claim:
    """A claim that gets this verdict, whatever the results."""
    rate = Quantity("share of converged seeds", lambda _: Measure(0.9435, 47), Unit.PERCENT)
    nothing = Quantity("mean of no seeds", lambda _: Measure.mean([]), Unit.PERCENT)
    wide = Quantity("lead of frequencies", lambda _: Measure(0.01, 20, -0.1, 0.12), Unit.POINTS, interval=True)
    still = Quantity("number of seeds that score as untrained", lambda _: Measure(0.92, 100), Unit.SHARE)
    stored = Quantity("number of stored values met", lambda _: Measure(1.0, 300), Unit.SHARE)
    own = None
    if verdict is Verdict.CONTRADICTED:
        own = at_least(Quantity("share in the published table", lambda _: Measure(0.5, 47), Unit.PERCENT), 0.9)
    rule, control, variant = {
        Verdict.REPRODUCED: (at_least(rate, 0.9), None, None),
        Verdict.CONTRADICTED: (at_least(rate, 0.9), None, None),
        Verdict.HISTORICAL: (within(rate, 0.005, of=0.97), None, every(stored)),
        Verdict.CONTROLLED: (at_least(rate, 0.9), above(still, 0.5), None),
        Verdict.NOT_REPRODUCED: (within(rate, 0.005, of=0.97, why="as printed"), None, None),
        Verdict.UNDECIDED: (within(wide, 0.06, why="half of what was claimed"), None, None),
        Verdict.NOT_MEASURED: (at_least(nothing, 0.5), None, None),
        Verdict.UNTESTABLE: (None, None, None),
    }[verdict]
    made = Claim(
        key,
        "Section 5.2, Table 3",
        "47 of 100 at 94.3 %; Welch p = 1.5e-10",
        "Training the frequencies converges as often as training the couplings, and ends more accurate.",
        rule,
        control,
        variant,
        own,
        controls=(still,) if controlled else (),
        note="Failed seeds lie far below, not at chance.",
    )
    assert made.judge({}).verdict is verdict
    return made


def _table(name: str) -> Table:
    return Table(
        name,
        "Accuracy by arm",
        ("arm", "converged", "rate", "mean", "p", "published"),
        [
            ["ω only", 47, "47 of 100", 0.943512, 1.53e-10, True],
            ["K only", 48, "48 of 100", 0.83, 1.0, False],
            ["<both> & more", 48, "48 of 100", 1.0, None, True],
        ],
        "Converged: running training accuracy above 60 % in the last epoch.",
    )


def _wide_table(name: str) -> Table:
    """As wide as the accuracy tables of the studies are, with the same headings."""
    rows = [
        [
            f"multi-start, absolute separation, as described, {k}",
            100,
            48.55,
            "39.2 to 57.6",
            46,
            "37 to 56",
            *[94.35] * 6,
        ]
        for k in range(4)
    ]
    return Table(name, "Arms with controls", COLUMNS, rows, "As described.", KEY)


def _long_table(name: str) -> Table:
    return Table(name, "Every seed", ("seed", "test"), [[seed, seed / 100] for seed in range(60)])


def _accuracies(rng, success, high: float, low: float) -> list[float]:
    near = np.where(success, high, low) + np.where(success, -1, 1) * rng.exponential(0.05, len(success))
    return (np.round(np.clip(near, 0, 1) * SAMPLES) / SAMPLES).tolist()


def _blur(rng, values, width: float) -> list[float]:
    pulled = 0.5 + 0.6 * (np.asarray(values) - 0.5) + rng.normal(0, width, len(values))
    return (np.round(np.clip(pulled, 0, 1) * SAMPLES) / SAMPLES).tolist()


def _arm(rng, success, high: float) -> dict:
    test = np.asarray(_accuracies(rng, success, min(1, high + 0.05), 0.03))
    middle = float(test[success].mean()) if success.any() else None
    return {
        "test": test.tolist(),
        "converged": success.tolist(),
        "mean": {"mean": float(test.mean()), "low": float(test.mean()) - 0.09, "high": float(test.mean()) + 0.09},
        "converged_mean": middle and {"mean": middle, "low": middle - 0.02, "high": middle + 0.02},
    }


def _verification(rng) -> dict:
    exact = rng.normal(0, 0.05, 14)
    return {
        "scatter": {"N": 15, "beta": 1e-3, "two_phase": (exact * 1.0002).tolist(), "adjoint": exact.tolist()},
        "residuals": {
            "N": [6, 10, 15, 20, 30, 50, 100, 200],
            "measured": [8.4e-14, 2.2e-16, 3.4e-14, 3.0e-15, 8.9e-16, 1.1e-16, 3.3e-16, 0.0],
            "published": [8.4e-14, 2.2e-16, 3.4e-14, 3.0e-15, 1.1e-15, 1.1e-16, 1.1e-16, 1.1e-16],
        },
    }


def _convergence(rng, success) -> dict:
    epochs = np.arange(0, 151, 10)
    approach = 1 - np.exp(-epochs / 60)
    start = np.where(success, 0.7, 0.22)[:, None] + rng.normal(0, 0.12, (len(success), 1))
    end = np.where(success, 0.95, 0.06)[:, None] + rng.normal(0, 0.03, (len(success), 1))
    condition = rng.normal(15.3, 1.8, (len(success), 1)) - 0.75 * approach
    accuracy = np.clip(start + (end - start) * approach, 0, 1)
    return {
        "epochs": epochs.tolist(),
        "accuracy": accuracy.tolist(),
        "condition": condition.tolist(),
        "converged": success.tolist(),
    }


def _mechanism(rng, title: str, success) -> dict:
    separation = np.where(success, 1, -1) * rng.exponential(0.016, len(success))
    return {
        "title": title,
        "separation": separation.tolist(),
        "accuracy": _accuracies(rng, success, 0.96, 0.04),
        "success": success.tolist(),
    }


def _collapse(rng, seeds: int) -> dict:
    epochs = np.array([200, 280, 580, 1180])
    optimum = rng.normal(0, 0.01, seeds)
    ends = np.array([10, 14, 13, 13]), np.array([24, 16, 13, 13]), np.array([0, 7, 13, 13])
    starts = {}
    for name, first, success in zip(("random", "spectral", "anti-spectral"), (0.0, 0.04, -0.04), ends, strict=True):
        distance = first + rng.normal(0, 0.01, (seeds, 1))
        starts[name] = {
            "epochs": epochs.tolist(),
            "success": np.minimum(success, seeds).tolist(),
            "n": seeds,
            "separation": (optimum[:, None] + distance * np.exp(-(epochs - 200) / 120)).tolist(),
        }
    return {"starts": starts, "optimum": optimum.tolist()}
