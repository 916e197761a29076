"""Arms: one training condition over many seeds, from words that JSON can hold to a row of figures per seed.

Every training study is made of arms. Beside the scores that were published, an arm always carries its controls: the
untrained network, the decision by nearest target, the phases of the outputs, and what was skipped or unstable. This is
the only module of the studies that trains by the paper's protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from phasegrad import datasets
from phasegrad._validation import BoolArray, FloatArray
from phasegrad.datasets import Dataset
from phasegrad.equilibria import find_equilibrium
from phasegrad.initial import STARTS, STREAM
from phasegrad.networks import Network, layered, to_matrix
from phasegrad.objectives import ClassObjective, NearestTarget, PaperPair
from phasegrad.training import History, Plan, Shuffle, Training, TrainingState, train_whole
from phasegrad_paper.studies.piece import Piece

MARGIN = 0.2

_OBJECTIVES: dict[str, ClassObjective] = {"paper": PaperPair(MARGIN), "nearest": NearestTarget(MARGIN)}
_PROBE_SPLIT = 42  # the split whose first ten samples screen the multi-start candidates


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One condition; the defaults are the paper's main protocol as described."""

    task: str = "ai"  # vowels to tell apart, "ai" or "ou", or the modulated signals, "fm"
    hidden: int = 5
    coupling_scale: float = 2.0
    start: str = "random"  # initial frequencies, a key of `phasegrad.initial.STARTS`
    reference: int = 0  # the oscillator held at phase zero
    exchanged: bool = False  # whether the two outputs change roles after the start was chosen
    # As in `phasegrad.training.Plan`.
    learn: str = "omega"  # "coupling", or "both"
    epochs: int = 200
    rate: float = 0.001
    coupling_rate: float | None = None
    # The paper's two training loops: "main" starts every epoch from phase zero and draws one number from the shuffling
    # stream after every evaluation, for a spot check; "matched" carries the phases over, and draws nothing.
    loop: str = "main"
    spot_check: bool = True
    gradient: str = "two_phase"
    evaluate_every: int = 20
    objective: str = "paper"  # or "nearest"
    learnable: int | None = None  # how many of what ``learn`` names do learn, drawn at random; all if None
    validate: bool = False  # train on four fifths of the training part and score on its rest: test data has no part
    # Historical variants: all pairs coupled from the first update on; scaling by "all" rows; frequencies of the inputs
    # rounded to single precision.
    leak: bool = False
    scale_by: str = "train"
    single: bool = False
    intervention: str = ""  # what happens to the parameters between epochs: "floor" or "recentre"
    stages: tuple[tuple[int, float], ...] = ()  # (epochs, rate) of training that goes on
    seeds: int = 100
    # What else to return: the offset that separates the classes; the whole history; the condition number.
    detail: bool = False
    follow: bool = False
    condition: bool = False

    def historical(self, scale_by: str = "all") -> Arm:
        """Return this arm under the edge leak, and by default with scaling by all rows, as in several stored files.

        The stored FM runs multiplied single-precision features by the input scale in single precision.
        """
        return replace(self, leak=True, scale_by=scale_by, single=self.task == "fm")

    def piece(self, title: str, seeds: int | None = None) -> Piece:
        """Return this arm as a piece of work, on at most ``seeds`` seeds."""
        arm = replace(self, seeds=min(self.seeds, seeds or self.seeds))
        epochs = self.epochs + sum(more for more, _ in self.stages)
        slow = 8.0 if self.gradient == "finite_difference" else 1.0
        weight = 0.3 + arm.seeds * epochs / 10_000 * (3.0 if self.task == "fm" else self.hidden / 5) * slow
        return Piece(title, run_arm, asdict(arm), weight)


def run_arm(**options: Any) -> dict[str, Any]:
    """Train every seed of an arm and return its figures, one list entry per seed."""
    arm = Arm(**{**options, "stages": tuple(tuple(stage) for stage in options["stages"])})
    networks, data = _set_up(arm)
    if arm.intervention:
        result, scores = _intervene(arm, networks, data)
    else:
        result = train_whole(networks, data, plan_of(arm), threads=1, mask=_masks(arm, networks[0]))
        scores = result.history.test_accuracy
    figures: dict[str, Any] = _figures(arm, result, networks, data, scores)
    if arm.follow:
        figures |= {"epochs": result.history.epoch.tolist(), "accuracy_history": scores.tolist()}
    if arm.condition:
        figures["condition_history"] = result.history.condition.tolist()
    if arm.stages:
        figures["stages"] = _go_on(arm, result, data)
    if arm.detail:
        figures |= _detail(networks, result.networks, data)
    return figures


def trained_networks(arm: Arm) -> tuple[list[Network], tuple[Network, ...]]:
    """Return the networks of every seed before and after training."""
    networks, data = _set_up(arm)
    return networks, train_whole(networks, data, plan_of(arm), threads=1).networks


def _set_up(arm: Arm) -> tuple[list[Network], list[Dataset]]:
    """Return the networks at their start and the data, one of each per seed."""
    data = [load(arm.task, arm.scale_by, seed) for seed in range(arm.seeds)]
    networks = [_network(arm, seed) for seed in range(arm.seeds)]
    if arm.single:
        data = [_in_single_precision(part, networks[0].input_scale) for part in data]
        networks = [network.replace(input_scale=1.0) for network in networks]
    if arm.leak:
        networks = [leaked(network) for network in networks]
    return networks, [_validation(part) for part in data] if arm.validate else data


@dataclass(frozen=True)
class SpotChecks(Shuffle):
    """The paper's main loop draws a sample from the shuffling stream after every evaluation, to check its gradient."""

    def after(self, stream: np.random.Generator, size: int, epoch: int, *, evaluated: bool) -> None:
        """Draw the number of a sample."""
        del epoch
        if evaluated:
            stream.integers(size)


def plan_of(arm: Arm) -> Plan:
    """Return the plan of an arm."""
    rates = {"omega": arm.rate, "coupling": arm.rate if arm.coupling_rate is None else arm.coupling_rate}
    main = arm.loop == "main"
    return Plan.paper(
        rates if arm.learn == "both" else {arm.learn: rates[arm.learn]},
        epochs=arm.epochs,
        gradient=arm.gradient,
        evaluate_every=arm.evaluate_every,
        objective=_OBJECTIVES[arm.objective],
        warm_start="epoch" if main else "run",
        shuffle=SpotChecks() if main and arm.spot_check else Shuffle(),
        record="condition" if arm.condition else (),
    )


def leaked(network: Network) -> Network:
    """Return the network on the complete graph, pairs that were not coupled having strength 0.

    The historical variant behind several published files: the bounds of couplings lift those to the lower bound after
    the first update, so that from then on every pair of oscillators is coupled.
    """
    i, j = np.triu_indices(network.size, k=1)
    return network.replace(edges=np.stack([i, j], axis=1), coupling=to_matrix(network)[i, j], signed=True)


def _figures(
    arm: Arm, result: Training, networks: list[Network], data: list[Dataset], scores: FloatArray
) -> dict[str, list[Any]]:
    """Return one row of figures per seed: the published scores and the controls beside them."""
    history = result.history
    nearest = scores[:, -1]
    if arm.objective != "nearest":
        nearest = _evaluate(result.networks, data, _OBJECTIVES["nearest"]).test_accuracy[:, 0]
    moved = [
        None if arm.leak else float(np.mean(np.abs(after.coupling - before.coupling)))
        for after, before in zip(result.networks, networks, strict=True)
    ]
    columns = {
        "test": scores[:, -1],
        "best": scores.max(axis=1),
        "untrained": scores[:, 0],
        "train": history.train_accuracy[:, -1],
        "nearest": nearest,
        "train_loss": history.train_loss[:, -1],
        "untrained_loss": history.train_loss[:, 0],
        "separation": history.separation[:, -1],
        "untrained_separation": history.separation[:, 0],
        "common_phase": history.common_phase[:, -1],
        "skipped": history.skipped.sum(axis=1),
        "unstable": history.train_unstable[:, 1:].sum(axis=1),
        "test_skipped": history.test_unsettled[:, -1] + history.test_unstable[:, -1],
    }
    majority = [float(np.mean(part.y_test == np.argmax(np.bincount(part.y_train)))) for part in data]
    return {name: values.tolist() for name, values in columns.items()} | {"majority": majority, "moved": moved}


def _evaluate(networks: Sequence[Network], data: Sequence[Dataset], objective: ClassObjective) -> History:
    """Return the scores of networks as they are."""
    return train_whole(networks, data, Plan.paper(epochs=0, objective=objective), threads=1).history


def _go_on(arm: Arm, result: Training, data: list[Dataset]) -> dict[str, Any]:
    """Train the further stages and return success and separation along them, with the optimum of the separation."""
    counts = np.array([np.bincount(part.y_train, minlength=2) for part in data])
    seen = [replace(part, x_test=part.x_train, y_test=part.y_train, test_rows=part.train_rows) for part in data]
    epochs = [0, arm.epochs]
    accuracy = [result.history.test_accuracy[:, 0], result.history.test_accuracy[:, -1]]
    on_training_part = [_evaluate(result.networks, seen, _OBJECTIVES[arm.objective])]
    for more, rate in arm.stages:
        plan = plan_of(replace(arm, epochs=more, rate=rate))
        result = train_whole(result.networks, data, plan, state=result.state.begin(plan), threads=1)
        epochs.append(epochs[-1] + more)
        accuracy.append(result.history.test_accuracy[:, -1])
        on_training_part.append(_evaluate(result.networks, seen, _OBJECTIVES[arm.objective]))
    return {
        "epochs": epochs,
        "accuracy": np.array(accuracy).T.tolist(),
        "separation": np.array([part.separation[:, 0] for part in on_training_part]).T.tolist(),
        "loss": np.array([part.train_loss[:, 0] for part in on_training_part]).T.tolist(),
        "optimum": (2 * MARGIN * (counts[:, 1] - counts[:, 0]) / counts.sum(axis=1)).tolist(),
        "surplus": (counts[:, 1] - counts[:, 0]).tolist(),
    }


def _intervene(arm: Arm, networks: list[Network], data: list[Dataset]) -> tuple[Training, FloatArray]:
    """Train with an intervention and return the result and the test accuracy at epoch 0 and every evaluation after it.

    "floor" lifts every coupling there is to 1.5 after each epoch; "recentre" takes half the mean of the learnable
    frequencies away after every tenth. Both as published: the score is taken after the intervention.
    """
    plan, every = plan_of(arm), {"floor": 1, "recentre": 10}[arm.intervention]
    scores: list[FloatArray] = []
    state: TrainingState | None = None
    joined: History | None = None
    for epoch in range(every, arm.epochs + 1, every):
        result = train_whole(networks, data, plan, until=epoch, state=state, threads=1)
        if state is None or state.epoch % arm.evaluate_every == 0:
            scores.append(result.history.test_accuracy[:, 0])
        state = _INTERVENTIONS[arm.intervention](result.state, len(networks[0].inputs))
        joined = result.history if joined is None else joined.join(result.history)
    last = train_whole(networks, data, plan, state=state, threads=1)
    scores.append(last.history.test_accuracy[:, 0])
    assert joined is not None
    return replace(last, history=joined), np.stack(scores, axis=1)


def _recentre(state: TrainingState, inputs: int) -> TrainingState:
    omega = state.parameters["omega"].copy()
    omega[:, inputs:] -= 0.5 * omega[:, inputs:].mean(axis=1, keepdims=True)
    return state.replace(omega=omega)


_INTERVENTIONS: dict[str, Callable[[TrainingState, int], TrainingState]] = {
    "floor": lambda state, _inputs: state.replace(coupling=np.maximum(state.parameters["coupling"], 1.5)),
    "recentre": _recentre,
}


def _detail(before: list[Network], after: tuple[Network, ...], data: list[Dataset]) -> dict[str, list[float]]:
    """Return what single samples show, untrained and trained.

    The offset m is the midpoint of the two classes' mean common output phase on the training part; taking it away from
    both outputs is one number's worth of correction. ``offset_test`` is the test accuracy after it.
    """
    columns: dict[str, list[float]] = {}
    for prefix, networks in (("untrained_", before), ("", after)):
        for network, part in zip(networks, data, strict=True):
            outputs = list(network.outputs)
            train = find_equilibrium(network, part.x_train)
            test = find_equilibrium(network, part.x_test)
            common = train.phases[:, outputs].mean(axis=1)
            middle = float(np.mean([common[part.y_train == label].mean() for label in (0, 1)]))
            decided = PaperPair(MARGIN).decide(test.phases[:, outputs] - middle)
            row = {
                "offset": middle,
                "offset_test": float(np.mean((decided == part.y_test) & test.converged)),
                "sign_of_common": float(np.mean((common > 0) == (part.y_train == 1))),
                "largest_angle": float(max(train.largest_angle.max(), test.largest_angle.max())),
                "stable": float(np.mean(np.concatenate([train.stable, test.stable]))),
            }
            for name, value in row.items():
                columns.setdefault(prefix + name, []).append(value)
    return columns


def _masks(arm: Arm, network: Network) -> dict[str, BoolArray] | None:
    """Return which frequencies, (R, N), and which couplings, (R, E), learn; None where all do."""
    if arm.learnable is None:
        return None
    nodes = network.learnable if arm.learn != "coupling" else np.empty(0, dtype=np.int64)
    edges = network.n_edges if arm.learn != "omega" else 0
    masks = {"omega": np.zeros((arm.seeds, network.size), dtype=bool)}
    masks["coupling"] = np.zeros((arm.seeds, network.n_edges), dtype=bool)
    for seed in range(arm.seeds):
        stream = np.random.default_rng(seed + STREAM)
        chosen = stream.choice(nodes.size + edges, arm.learnable, replace=False)
        masks["omega"][seed, nodes[chosen[chosen < nodes.size]]] = True
        masks["coupling"][seed, chosen[chosen >= nodes.size] - nodes.size] = True
    return masks if arm.learn == "both" else {arm.learn: masks[arm.learn]}


def _validation(data: Dataset) -> Dataset:
    """Return the training part alone, its last fifth in place of the test part."""
    x, y, cut = data.x_train, data.y_train, int(0.8 * len(data.y_train))
    seen = replace(data, x_train=x[:cut], y_train=y[:cut], train_rows=None)
    return replace(seen, x_test=x[cut:], y_test=y[cut:], test_rows=None)


def _in_single_precision(data: Dataset, scale: float) -> Dataset:
    """Return the data times the input scale, rounded to single precision, for networks whose own scale is 1."""
    train, test = ((np.float32(scale) * part.astype(np.float32)).astype(float) for part in (data.x_train, data.x_test))
    return replace(data, x_train=train, x_test=test)


@lru_cache(maxsize=1024)
def load(task: str, scale_by: str, seed: int) -> Dataset:
    """Return the data of one seed."""
    return datasets.fm(seed=seed) if task == "fm" else datasets.vowels(list(task), seed=seed, scale_by=scale_by)


def _network(arm: Arm, seed: int) -> Network:
    width = load(arm.task, arm.scale_by, seed).x_train.shape[1]
    network = layered(width, arm.hidden, 2, coupling_scale=arm.coupling_scale, seed=seed)
    network = STARTS[arm.start](network, load(arm.task, arm.scale_by, _PROBE_SPLIT).x_train[:10], seed)
    if arm.exchanged:
        network = network.replace(outputs=network.outputs[::-1])
    return network.replace(reference=arm.reference) if arm.reference else network
