"""Compiled steps of small networks with any interaction: they agree with the dense path, or say why not."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import phasegrad as pg
from phasegrad.dynamics import Pull, assemble
from phasegrad.linearised import DenseLaplacian, Edgewise, EdgewiseLaplacian, Verdict
from phasegrad.solvers import BATCHED, Newton
from phasegrad.training import prepare

pytestmark = pytest.mark.internal

BATCH = 7
SHARE = 0.1


class Steep(pg.terms.Interaction):
    """It reads an attribute of its class."""

    share = 0.1

    def value(self, phi):
        return np.sin(phi) + self.share * np.sin(3 * phi)

    def derivative(self, phi):
        return np.cos(phi) + 3 * self.share * np.cos(3 * phi)

    def potential(self, phi):
        return -np.cos(phi) - self.share / 3 * np.cos(3 * phi)


@dataclass(frozen=True)
class Bent(pg.terms.Interaction):
    """It reads a field, and is no finite series."""

    bend: float = 0.3

    def value(self, phi):
        return np.sin(phi) * np.exp(self.bend * (np.cos(phi) - 1))

    def derivative(self, phi):
        return (np.cos(phi) - self.bend * np.sin(phi) ** 2) * np.exp(self.bend * (np.cos(phi) - 1))

    def potential(self, phi):
        return -np.exp(self.bend * (np.cos(phi) - 1)) / self.bend


class Private(Steep):
    """It reads a private attribute of its object."""

    def __init__(self, share):
        self._share = share

    def value(self, phi):
        return np.sin(phi) + self._share * np.sin(3 * phi)

    def derivative(self, phi):
        return np.cos(phi) + 3 * self._share * np.cos(3 * phi)

    def potential(self, phi):
        return -np.cos(phi) - self._share / 3 * np.cos(3 * phi)

    def __repr__(self):
        return f"Private({self._share})"


class Unknown(Steep):
    """It calls a function that Numba does not know."""

    def value(self, phi):
        return triple(phi, self.share)


def triple(phi, share):
    return np.sin(phi) + share * np.sin(3 * phi)


class Quartic(pg.Cost):
    """A cost of which compiled code knows nothing."""

    def cost(self, phases, target):
        return np.sum((phases - target) ** 4 / 4 + (phases - target) ** 2 / 2, axis=-1)

    def force(self, phases, target):
        return (target - phases) ** 3 + (target - phases)

    def hessian(self, phases, target):
        return (3 * (phases - target) ** 2 + 1)[..., None] * np.eye(phases.shape[-1])


class Third(pg.terms.NodeField):
    """A field with an interaction of its own."""

    every = (pg.terms.Parameter("third_strength", least=0.0), pg.terms.Parameter("third_phase", default=0.0))
    interaction = pg.terms.OddSeries((0, 0, 1))


class Weakened(Third):
    """A field whose force is not that of its interaction, and so none of the sums that follow from that."""

    summed_contrast = pg.terms.Term.summed_contrast

    def force(self, graph, values, phases):
        return 0.5 * super().force(graph, values, phases)

    def energy(self, graph, values, phases):
        return 0.5 * super().energy(graph, values, phases)

    def stiffness(self, graph, values, phases):
        return pg.terms.Stiffness(diagonal=0.5 * super().stiffness(graph, values, phases).diagonal)

    def energy_slopes(self, graph, values, phases):
        return {name: 0.5 * slope for name, slope in super().energy_slopes(graph, values, phases).items()}

    def force_slopes(self, graph, values, phases, response):
        return {name: 0.5 * slope for name, slope in super().force_slopes(graph, values, phases, response).items()}

    def harmonics(self, values):
        return None


class Spring(pg.terms.Term):
    """A term of which compiled code knows nothing."""

    every = (pg.terms.Parameter("spring", least=0.0),)
    fixes_gauge = True

    def force(self, graph, values, phases):
        return -values["spring"] * np.sin(phases) * np.cos(phases) ** 2

    def energy(self, graph, values, phases):
        return -np.sum(values["spring"] * np.cos(phases) ** 3 / 3, axis=1)

    def stiffness(self, graph, values, phases):
        slope = np.cos(phases) ** 3 - 2 * np.sin(phases) ** 2 * np.cos(phases)
        return pg.terms.Stiffness(diagonal=values["spring"] * slope)

    def stiffest(self, graph, values):
        return pg.terms.Stiffness(diagonal=np.abs(values["spring"]))

    def capacity(self, graph, values):
        return np.abs(values["spring"])

    def energy_slopes(self, graph, values, phases):
        return {"spring": -(np.cos(phases) ** 3) / 3}

    def force_slopes(self, graph, values, phases, response):
        return {"spring": -response * np.sin(phases) * np.cos(phases) ** 2}

    def grounded(self, graph, values):
        return values["spring"] != 0


INTERACTIONS = [pg.terms.Sine(), pg.terms.OddSeries((1.0, 0.0, 0.05)), Steep(), Bent(), Bent(0.1), Private(0.1)]
NETWORKS = {
    "layered": {},
    "clamped": {"input_mode": "phase"},
    "field": {"field_strength": 0.5, "field_phase": np.linspace(-1, 1, 9)},
    "third": {"terms": [Third()], "third_strength": 0.3, "field_strength": 0.2},
    "weakened": {"terms": [Weakened()], "third_strength": 0.3, "field_strength": 0.2},
    "mean field": {"global_coupling": 0.5},
    "term": {"terms": [Spring()], "spring": 1.0},
}
COSTS = [None, pg.PhaseTargets(), pg.objectives.PeriodicDistance(), pg.CosineCrossEntropy(), Quartic()]


def states(interaction, options, *, seed=0):
    """Return a network's terms for compiled code, the system of a batch, and where to start."""
    stream = np.random.default_rng(seed)
    network = pg.layered(2, 5, 2, seed=seed, **options).replace(interaction=interaction)
    system = assemble(network, stream.uniform(-0.5, 0.5, (BATCH, 2)), BATCH)
    return Edgewise(network.graph, network.terms), system, system.place(stream.normal(0, 0.1, (BATCH, 9)))


def nudged(system, cost, beta=0.1):
    if cost is None:
        return system
    target = np.tile([1.0, 0.0], (BATCH, 1))
    return system.replace(pull=Pull(cost, np.array([7, 8]), target, np.full((BATCH, 1), beta)))


@pytest.mark.parametrize("interaction", INTERACTIONS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("options", NETWORKS.values(), ids=list(NETWORKS))
@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: type(cost).__name__)
def test_compiled_steps_find_the_states_of_the_dense_path(interaction, options, cost):
    rules, system, start = states(interaction, options)
    system, limits = nudged(system, cost), np.full(BATCH, 1e-12)
    assert rules.reason == ""
    state = EdgewiseLaplacian(system, start[:, system.graph.free], rules)
    moving, left, steps = BATCHED.iterate(state, limits)
    dense = Newton(algebra=DenseLaplacian).solve(system, start, limits)
    assert left.max() <= 1e-12
    assert np.abs(moving - dense.phases[:, system.graph.free]).max() < 1e-10
    assert np.abs(system.force(system.whole(moving))[:, system.graph.free]).max() < 2e-12
    assert steps.min() > 0
    verdicts = [each.definite().tolist() for each in (state.at(moving), state.at(moving.copy()))]
    expected = DenseLaplacian(system, moving)
    assert verdicts == [expected.definite().tolist()] * 2
    smallest, _ = expected.smallest()
    for floor in (smallest * 0.999, smallest * 1.001):
        assert state.at(moving).definite(floor).tolist() == expected.definite(floor).tolist()


@pytest.mark.parametrize("options", NETWORKS.values(), ids=list(NETWORKS))
@pytest.mark.parametrize("cost", [None, pg.CosineCrossEntropy(), Quartic()], ids=lambda cost: type(cost).__name__)
@pytest.mark.parametrize("polish", [False, True])
def test_a_sample_does_not_depend_on_the_other_samples(options, cost, polish):
    rules, system, start = states(Steep(), options)
    system = nudged(system, cost)
    whole = EdgewiseLaplacian(system, start[:, system.graph.free], rules)
    together = whole.stride(np.full(BATCH, 1e-12), 50, 1.0, 0.25, polish=polish)
    for row in range(BATCH):
        alone = whole.take(np.array([row])).stride(np.full(1, 1e-12), 50, 1.0, 0.25, polish=polish)
        assert [each.tolist() for each in alone] == [each[[row]].tolist() for each in together]


def test_steps_end_where_the_laplacian_is_not_positive_definite_or_turns_are_large():
    rules, system, start = states(Steep(), {})
    far = start[:, system.graph.free].copy()
    far[0] = np.pi * np.arange(far.shape[1])
    found = EdgewiseLaplacian(system, far, rules).stride(np.full(BATCH, 1e-12), 50, 1.0, 0.25, polish=False)
    assert found.steps[0] == 0
    assert found.moving[0].tolist() == far[0].tolist()
    assert found.left[1:].max() <= 1e-12
    short = EdgewiseLaplacian(system, far, rules).stride(np.full(BATCH, 1e-12), 50, 1e-6, 0.25, polish=False)
    assert short.steps.tolist() == [0] * BATCH
    # Newton goes on from there, as it would have without compiled code.
    moving, left, _ = Newton(polish=False).iterate(EdgewiseLaplacian(system, far, rules), np.full(BATCH, 1e-12))
    dense = Newton(algebra=DenseLaplacian, polish=False).solve(system, system.whole(far), np.full(BATCH, 1e-12))
    assert np.abs(moving - dense.phases[:, system.graph.free]).max() < 1e-9
    assert left.max() <= 1e-12


def test_a_step_that_leaves_more_force_than_it_may_is_not_taken():
    rules, system, start = states(Steep(), {})
    state = EdgewiseLaplacian(system, start[:, system.graph.free], rules)
    strict, loose = (state.stride(np.full(BATCH, 1e-12), 1, 1.0, share, polish=False) for share in (1e-9, 0.25))
    assert loose.steps.tolist() == [1] * BATCH
    assert strict.steps.tolist() == [0] * BATCH
    assert strict.moving.tolist() == state.moving.tolist()


def test_newton_takes_no_more_steps_than_it_may():
    rules, system, start = states(Steep(), {})
    state = EdgewiseLaplacian(system, start[:, system.graph.free], rules)
    for most in (1, 2):
        _, left, steps = Newton(max_steps=most, polish=False).iterate(state, np.full(BATCH, 1e-12))
        assert steps.tolist() == [most] * BATCH
        assert left.min() > 1e-12


def test_an_unstable_state_is_not_proved_stable():
    network = pg.networks.ring(5, interaction=Steep())
    system = assemble(network, None, 2)
    saddle = np.zeros((2, 4))
    saddle[1, 2] = np.pi
    state = EdgewiseLaplacian(system, saddle, Edgewise(network.graph, network.terms))
    found = state.stride(np.full(2, 1e-12), 50, 1.0, 0.25, polish=False)
    assert found.steps.tolist() == [0, 0]
    assert state.at(found.moving).definite().tolist() == [Verdict.STABLE, Verdict.UNPROVED]
    assert state.at(found.moving).definite(explain=True).tolist() == [Verdict.STABLE, Verdict.UNSTABLE]
    # What was proved of the states at which the steps ended says nothing about others.
    assert state.at(saddle[::-1].copy()).definite().tolist() == [Verdict.UNPROVED, Verdict.STABLE]


@pytest.mark.parametrize(
    ("interaction", "name"), [(Steep(), "newton (edgewise)"), (Unknown(), "newton (dense)")], ids=["known", "unknown"]
)
def test_newton_takes_compiled_steps_where_it_is_told_to(interaction, name):
    network, inputs = pg.layered(2, 5, 2, seed=0).replace(interaction=interaction), [0.4, -0.3]
    found = pg.find_equilibrium(network, inputs, solver=pg.solvers.Newton(algebra=EdgewiseLaplacian))
    expected = pg.find_equilibrium(network, inputs)
    assert found.stable
    assert str(found.solver) == name
    assert np.abs(found.phases - expected.phases).max() < 1e-10


def test_a_polished_state_is_more_exact():
    rules, system, start = states(Steep(), {})
    state = EdgewiseLaplacian(system, start[:, system.graph.free], rules)
    rough, polished = (state.stride(np.full(BATCH, 1e-4), 50, 1.0, 0.25, polish=each) for each in (False, True))
    assert (polished.steps == rough.steps + 1).all()
    assert (polished.left < 1e-3 * rough.left).all()


def test_globals_are_read_anew():
    """Compiled code keeps the values that global variables had; the methods of an interaction do not."""

    class Global(Steep):
        def value(self, phi):
            return np.sin(phi) + SHARE * np.sin(3 * phi)

        def derivative(self, phi):
            return np.cos(phi) + 3 * SHARE * np.cos(3 * phi)

        def potential(self, phi):
            return -np.cos(phi) - SHARE / 3 * np.cos(3 * phi)

    found = []
    for share in (0.1, 0.2):
        globals()["SHARE"] = share
        rules, _, _ = states(Global(), {})
        found.append(rules.compiled[0](np.array([0.5]))[0].item())
    assert found == pytest.approx([np.sin(0.5) + share * np.sin(1.5) for share in (0.1, 0.2)], abs=1e-14)


@pytest.mark.parametrize("solver", ["auto", "batch"])
@pytest.mark.parametrize(
    "plan",
    [pg.Plan.paper(), pg.Plan.classifier(learn="coupling", batch_size=3)],
    ids=["paper", "batch"],
)
def test_training_agrees_with_an_interaction_that_runs_as_python(plan, solver):
    settings = plan.replace(
        epochs=3, settling=pg.training.Settling(solver, 1e-13), objective=pg.objectives.OutputDifferences()
    )
    data = pg.datasets.xor()
    trained = {
        kind: pg.train(pg.layered(2, 5, 2, seed=1).replace(interaction=kind()), data, settings, engine="batch")
        for kind in (Steep, Unknown)
    }
    one, other = (each.network.parameters for each in trained.values())
    for name, values in one.items():
        # Adam divides by the size of a slope: where that nearly vanishes, the rounding of states shows.
        assert np.abs(values - other[name]).max() < 1e-7, name


@pytest.mark.parametrize("learn", ["omega", "coupling"])
def test_what_is_kept_between_updates_is_that_of_the_parameters_at_hand(learn):
    network, data = pg.layered(2, 5, 2, seed=1).replace(interaction=Steep()), pg.datasets.xor()
    plan = pg.Plan.paper({learn: 0.1})
    engine = prepare([network], [data], plan, engine="batch")
    engine.train(np.arange(4)[None, None], np.ones(1), [np.random.default_rng(0)])
    (group,) = engine.groups
    now = {name: values[0] for name, values in engine.progress.parameters.items()}
    assert not np.array_equal(now[learn], network.parameters[learn])
    capacity = assemble(network.replace(**now), None, 1, workspace=group.workspace).capacity
    assert capacity.tolist() == assemble(network.replace(**now), None, 1).capacity.tolist()


def test_the_engine_says_why_an_interaction_runs_as_python():
    network, data = pg.layered(2, 5, 2, seed=1), pg.datasets.xor()
    engines = [
        prepare([network.replace(interaction=each)], [data], pg.Plan.paper(), engine="batch")
        for each in (Steep(), Unknown())
    ]
    assert engines[0].uncompiled == ""
    assert "Unknown runs as Python" in engines[1].uncompiled
    assert "triple" in engines[1].uncompiled


def test_networks_train_where_numba_must_not_compile():
    code = """
import numpy as np, phasegrad as pg
from phasegrad.training import prepare
network = pg.layered(2, 5, 2, seed=1).replace(interaction=pg.terms.OddSeries((1.0, 0.0, 0.05)))
print(prepare([network], [pg.datasets.xor()], pg.Plan.paper(), engine="batch").uncompiled)
print(pg.train(network, pg.datasets.xor(), pg.Plan.paper(epochs=2), engine="batch").network.omega.tolist())
"""
    answers = []
    for disabled in ("0", "1"):
        surroundings = {**os.environ, "NUMBA_DISABLE_JIT": disabled}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=surroundings, timeout=120
        )
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout.split("\n"))
    assert answers[0][0] == ""
    assert "NUMBA_DISABLE_JIT" in answers[1][0]
    assert np.abs(np.subtract(*(json.loads(answer[1]) for answer in answers))).max() < 1e-9
