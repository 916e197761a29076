"""Arms: one training condition over many seeds, from words that JSON can hold to a row of figures per seed.

Every training study is made of arms. Beside the scores that were published, an arm always carries its controls: the
untrained network, the decision by nearest target, the phases of the outputs, and what was skipped or unstable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from phasegrad import datasets
from phasegrad.datasets import Dataset
from phasegrad.equilibrium import find_equilibrium
from phasegrad.network import Network
from phasegrad.objectives import NearestTarget, PaperPair
from phasegrad.seeding import learnable_nodes, multi_start_seed, output_seed, spectral_seed
from phasegrad.studies.piece import Piece
from phasegrad.topologies import layered
from phasegrad.training import Protocol, TrainingResult, TrainingState, train_many
from phasegrad.validation import BoolArray, FloatArray

#: A run counts as a success if its accuracy exceeds this.
THRESHOLD = 0.6
MARGIN = 0.2

_OBJECTIVES = {"paper": PaperPair(MARGIN), "nearest": NearestTarget(MARGIN)}
_STREAM = 10_000  # the paper draws starts and learnable couplings from stream seed + 10000
_PROBE_SPLIT = 42  # the split whose first ten samples screen the multi-start candidates


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One condition; the defaults are the paper's main protocol as described.

    Parameters
    ----------
    task : {"ai", "ou", "fm"}
        Vowels to tell apart, or the modulated signals.
    hidden : int
        Hidden oscillators.
    coupling_scale : float
        Overall initial coupling.
    start : str
        Initial frequencies, a key of `STARTS`.
    reference : int
        The oscillator held at phase zero.
    exchanged : bool
        Whether the two outputs change roles after the start was chosen.
    learn, epochs, rate, coupling_rate, loop, gradient, spot_check, evaluate_every
        As in `phasegrad.training.Protocol`.
    objective : {"paper", "nearest"}
    learnable : int or None
        How many of the parameters named by ``learn`` learn, drawn at random; all if None.
    validate : bool
        Whether to train on the first four fifths of the training part and score on its rest: test data has no part.
    leak, scale_by
        The historical variants: all pairs coupled from the first update on; scaling by "all" rows.
    intervention : {"", "floor", "recentre"}
        What happens to the parameters between epochs; see `_intervene`.
    stages : tuple of (epochs, rate)
        Training that goes on after ``epochs`` at another rate.
    seeds : int
    detail : bool
        Whether to look at single samples: the offset that separates the classes, and the largest angle across an edge.
    follow : bool
        Whether to keep the whole history.
    condition : bool
        Whether to follow the condition number.
    """

    task: str = "ai"
    hidden: int = 5
    coupling_scale: float = 2.0
    start: str = "random"
    reference: int = 0
    exchanged: bool = False
    learn: str = "omega"
    epochs: int = 200
    rate: float = 0.001
    coupling_rate: float | None = None
    loop: str = "main"
    gradient: str = "two_phase"
    spot_check: bool | None = None
    evaluate_every: int = 20
    objective: str = "paper"
    learnable: int | None = None
    validate: bool = False
    leak: bool = False
    scale_by: str = "train"
    intervention: str = ""
    stages: tuple[tuple[int, float], ...] = field(default_factory=tuple)
    seeds: int = 100
    detail: bool = False
    follow: bool = False
    condition: bool = False

    def historical(self, scale_by: str = "all") -> Arm:
        """Return this arm under the edge leak, and by default with scaling by all rows, as in several stored files."""
        return replace(self, leak=True, scale_by=scale_by)

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
    data = [load(arm.task, arm.scale_by, seed) for seed in range(arm.seeds)]
    networks = [_network(arm, seed) for seed in range(arm.seeds)]
    if arm.validate:
        data = [_validation(part) for part in data]
    protocol = _protocol(arm)
    if arm.intervention:
        result, scores = _intervene(arm, networks, data, protocol)
    else:
        omega, coupling = _masks(arm, networks[0])
        result = train_many(
            networks, data, protocol, threads=1, condition=arm.condition, learn_omega=omega, learn_coupling=coupling
        )
        scores = result.history.test_accuracy
    figures: dict[str, Any] = _figures(result, networks, data, scores)
    if arm.follow:
        figures |= {"epochs": result.history.epoch.tolist(), "accuracy_history": scores.tolist()}
    if arm.condition and result.history.condition is not None:
        figures["condition_history"] = result.history.condition.tolist()
    if arm.stages:
        figures["stages"] = _go_on(arm, result, data)
    if arm.detail:
        figures |= _detail(networks, result.networks, data)
    return figures


def trained_networks(arm: Arm) -> tuple[list[Network], tuple[Network, ...]]:
    """Return the networks of every seed before and after training."""
    data = [load(arm.task, arm.scale_by, seed) for seed in range(arm.seeds)]
    networks = [_network(arm, seed) for seed in range(arm.seeds)]
    return networks, train_many(networks, data, _protocol(arm), threads=1).networks


def _protocol(arm: Arm) -> Protocol:
    return Protocol(
        learn=arm.learn, epochs=arm.epochs, learning_rate=arm.rate, coupling_rate=arm.coupling_rate, loop=arm.loop,
        gradient=arm.gradient, spot_check=arm.spot_check, evaluate_every=arm.evaluate_every,
        objective=_OBJECTIVES[arm.objective], edge_leak=arm.leak,
    )  # fmt: skip


def _figures(
    result: TrainingResult, networks: list[Network], data: list[Dataset], scores: FloatArray
) -> dict[str, list[Any]]:
    """Return one row of figures per seed: the published scores and the controls beside them."""
    history = result.history
    nearest = train_many(result.networks, data, epochs=0, objective=NearestTarget(MARGIN), threads=1).history
    moved = [
        float(np.mean(np.abs(after.coupling - before.coupling))) if after.n_edges == before.n_edges else None
        for after, before in zip(result.networks, networks, strict=True)
    ]
    columns = {
        "test": scores[:, -1],
        "best": scores.max(axis=1),
        "untrained": scores[:, 0],
        "train": history.train_accuracy[:, -1],
        "nearest": nearest.test_accuracy[:, 0],
        "train_loss": history.train_loss[:, -1],
        "untrained_loss": history.train_loss[:, 0],
        "separation": history.separation[:, -1],
        "untrained_separation": history.separation[:, 0],
        "common_phase": history.common_phase[:, -1],
        "skipped": history.skipped.sum(axis=1),
        "unstable": history.unstable.sum(axis=1),
        "test_skipped": history.test_skipped[:, -1],
    }
    majority = [float(np.mean(part.y_test == np.argmax(np.bincount(part.y_train)))) for part in data]
    return {name: values.tolist() for name, values in columns.items()} | {"majority": majority, "moved": moved}


def _go_on(arm: Arm, result: TrainingResult, data: list[Dataset]) -> dict[str, Any]:
    """Train the further stages and return success and separation along them, with the optimum of the separation."""
    epochs = [0, arm.epochs]
    accuracy = [result.history.test_accuracy[:, 0], result.history.test_accuracy[:, -1]]
    separation = [_separation(result.state.networks, data)]
    loss = [_loss(result.state.networks, data)]
    state = TrainingState(0, result.networks, result.state.streams, np.zeros_like(result.state.phases))
    for more, rate in arm.stages:
        later = train_many((), data, replace(result.protocol, epochs=more, learning_rate=rate), state=state, threads=1)
        state = TrainingState(0, later.networks, later.state.streams, np.zeros_like(later.state.phases))
        epochs.append(epochs[-1] + more)
        accuracy.append(later.history.test_accuracy[:, -1])
        separation.append(_separation(later.networks, data))
        loss.append(_loss(later.networks, data))
    counts = np.array([np.bincount(part.y_train, minlength=2) for part in data])
    return {
        "epochs": epochs,
        "accuracy": np.array(accuracy).T.tolist(),
        "separation": np.array(separation).T.tolist(),
        "loss": np.array(loss).T.tolist(),
        "optimum": (2 * MARGIN * (counts[:, 1] - counts[:, 0]) / counts.sum(axis=1)).tolist(),
        "surplus": (counts[:, 1] - counts[:, 0]).tolist(),
    }


def _intervene(
    arm: Arm, networks: list[Network], data: list[Dataset], protocol: Protocol
) -> tuple[TrainingResult, FloatArray]:
    """Train with an intervention and return the result and the test accuracy at epoch 0 and every evaluation after it.

    "floor" lifts every coupling there is to 1.5 after each epoch; "recentre" takes half the mean of the learnable
    frequencies away after every tenth. Both as published: the score is taken after the intervention.
    """
    every = {"floor": 1, "recentre": 10}[arm.intervention]
    learnable = slice(len(networks[0].inputs), None)
    scores, state, joined = [], None, None
    for epoch in range(every, arm.epochs + 1, every):
        result = train_many(networks, data, protocol, until=epoch, state=state, threads=1)
        if state is None or state.epoch % arm.evaluate_every == 0:
            scores.append(result.history.test_accuracy[:, 0])
        changed = []
        for network in result.networks:
            if arm.intervention == "floor":
                changed.append(network.replace(coupling=np.maximum(network.coupling, 1.5)))
            else:
                omega = network.omega.copy()
                omega[learnable] -= 0.5 * omega[learnable].mean()
                changed.append(network.replace(omega=omega))
        state = TrainingState(epoch, tuple(changed), result.state.streams, result.state.phases)
        joined = result.history if joined is None else joined.join(result.history)
    assert state is not None
    assert joined is not None
    last = train_many((), data, protocol, state=state, threads=1)
    scores.append(last.history.test_accuracy[:, 0])
    return TrainingResult(last.networks, joined, state, protocol), np.stack(scores, axis=1)


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


def _separation(networks: tuple[Network, ...], data: list[Dataset]) -> FloatArray:
    """Return the mean difference of the output phases over the training part, (R,)."""
    means = []
    for network, part in zip(networks, data, strict=True):
        outputs = find_equilibrium(network, part.x_train).phases[:, list(network.outputs)]
        means.append(float(np.mean(outputs[:, 0] - outputs[:, -1])))
    return np.array(means)


def _loss(networks: tuple[Network, ...], data: list[Dataset]) -> FloatArray:
    return train_many(networks, data, epochs=0, threads=1).history.train_loss[:, 0]


def _masks(arm: Arm, network: Network) -> tuple[BoolArray | None, BoolArray | None]:
    """Return which frequencies, (R, N), and which couplings, (R, E), learn; None where all do."""
    if arm.learnable is None:
        return None, None
    nodes = learnable_nodes(network) if arm.learn != "coupling" else np.empty(0, dtype=np.int64)
    edges = network.n_edges if arm.learn != "omega" else 0
    omega = np.zeros((arm.seeds, network.size), dtype=bool)
    coupling = np.zeros((arm.seeds, network.n_edges), dtype=bool)
    for seed in range(arm.seeds):
        stream = np.random.default_rng(seed + _STREAM)
        chosen = stream.choice(nodes.size + edges, arm.learnable, replace=False)
        omega[seed, nodes[chosen[chosen < nodes.size]]] = True
        coupling[seed, chosen[chosen >= nodes.size] - nodes.size] = True
    return omega, coupling


def _validation(data: Dataset) -> Dataset:
    """Return the training part alone, its last fifth in place of the test part."""
    cut = int(0.8 * len(data.y_train))
    return replace(
        data,
        x_train=data.x_train[:cut],
        y_train=data.y_train[:cut],
        x_test=data.x_train[cut:],
        y_test=data.y_train[cut:],
        train_rows=None,
        test_rows=None,
    )


@lru_cache(maxsize=1024)
def load(task: str, scale_by: str, seed: int) -> Dataset:
    """Return the data of one seed."""
    return datasets.fm(seed=seed) if task == "fm" else datasets.vowels(list(task), seed=seed, scale_by=scale_by)


def _network(arm: Arm, seed: int) -> Network:
    width = load(arm.task, arm.scale_by, seed).x_train.shape[1]
    network = layered(width, arm.hidden, 2, coupling_scale=arm.coupling_scale, seed=seed)
    network = STARTS[arm.start](network, arm, seed)
    if arm.exchanged:
        network = network.replace(outputs=network.outputs[::-1])
    return network.replace(reference=arm.reference) if arm.reference else network


def _multi_start(network: Network, arm: Arm, seed: int, by: str) -> Network:
    probe = load(arm.task, arm.scale_by, _PROBE_SPLIT).x_train[:10]
    return multi_start_seed(network, probe, by=by, seed=seed + _STREAM)


#: Initial frequencies by name.
STARTS: dict[str, Callable[[Network, Arm, int], Network]] = {
    "random": lambda network, _arm, _seed: network,
    "zero": lambda network, _arm, _seed: network.replace(omega=np.zeros(network.size)),
    "spectral": lambda network, _arm, _seed: spectral_seed(network),
    "negated": lambda network, _arm, _seed: spectral_seed(network, sign=-1),
    "outputs": lambda network, _arm, seed: output_seed(network, sign=-1, seed=seed + _STREAM),
    "outputs-reversed": lambda network, _arm, seed: output_seed(network, sign=1, seed=seed + _STREAM),
    "multi-start": lambda network, arm, seed: _multi_start(network, arm, seed, "absolute"),
    "multi-start-signed": lambda network, arm, seed: _multi_start(network, arm, seed, "signed"),
}
