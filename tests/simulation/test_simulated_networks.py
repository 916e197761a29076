"""Batches of networks in time: every sample is what it is alone, bit for bit."""

import itertools

import numpy as np
import pytest
from random_networks import KINDS, inputs_for, make_network

import phasegrad as pg

MOMENTS = [0.0, 0.3, 1.0]
# "all terms" has those of the two others.
_APART = [kind for kind in KINDS if kind not in ("driven", "second harmonic")]


def relatives(network, number=3):
    """Networks of one graph whose every parameter differs."""
    rng = np.random.default_rng(5)
    return [
        network.replace(**{name: each * rng.uniform(0.8, 1.2, each.shape) for name, each in network.parameters.items()})
        for _ in range(number)
    ]


def alone(networks, times, *, start, inputs=None, **options):
    """The same run, one network at a time: phases (T, S, G, N) of starts (S, G, N) and inputs (S, G, n)."""
    runs = [
        pg.simulate(each, times, start=start[:, g], inputs=None if inputs is None else inputs[:, g], **options)
        for g, each in enumerate(networks)
    ]
    return np.stack([run.phases for run in runs], axis=2), np.stack([run.velocities for run in runs], axis=2)


@pytest.fixture(scope="module")
def networks():
    return relatives(pg.networks.ring(4, omega=[0.1, 0.2, 0.0, 0.3], inputs=[1]))


class TestSamples:
    @pytest.mark.parametrize("kind", [*_APART, "mean field", "signed"])
    def test_a_network_in_a_batch_is_the_network_alone(self, kind):
        if kind == "mean field":
            network = pg.networks.mean_field(5, 1.2, omega=[0.3, 0.1, -0.2, 0.4, 0.0])
        elif kind == "signed":  # sines with fields: compiled
            network = pg.networks.signed_layers(1, 2, 1, input_scale=0.7).replace(global_coupling=0.8)
        else:
            network = make_network(6, 2, kind=kind)
        networks = relatives(network, 2)
        start = np.random.default_rng(0).uniform(-2, 2, (2, 2, network.size))
        inputs = inputs_for(network, (2, 2), 3)
        body = {"inertia": np.linspace(0.5, 1.5, network.size), "damping": np.linspace(0.4, 1.1, network.size)}
        for method, more in itertools.product(("adaptive", "rk4", "heun"), ({}, body)):
            options = {"method": method, "start": start, "inputs": inputs, "tolerance": 1e-3, **more}
            run = pg.simulate(networks, MOMENTS, **options)
            phases, velocities = alone(networks, MOMENTS, **options)
            assert np.array_equal(run.phases, phases)
            assert np.array_equal(run.velocities, velocities)

    @pytest.mark.parametrize("kind", ["plain", "non-reciprocal", "clamped", "mean field"])
    def test_streams_of_noise_are_those_of_the_flat_batch(self, kind):
        network = pg.networks.mean_field(6, 1.2) if kind == "mean field" else make_network(6, 2, kind=kind)
        networks, inputs = relatives(network), inputs_for(network, (), 3)
        run = pg.simulate(networks, MOMENTS, start=np.zeros((2, 1, 6)), inputs=inputs, noise=0.1)
        for g, each in enumerate(networks):
            one = pg.simulate(each, MOMENTS, start=np.zeros((2, 3, 6)), inputs=inputs, noise=0.1)
            assert np.array_equal(run.phases[:, :, g], one.phases[:, :, g])
        first = pg.simulate(networks[:2], MOMENTS, start="random", inputs=inputs, noise=0.1, inertia=0.5)
        every = pg.simulate(networks, MOMENTS, start="random", inputs=inputs, noise=0.1, inertia=0.5)
        assert np.array_equal(first.phases, every.phases[:, :2])

    def test_functions_of_time_act_on_every_network(self):
        networks = relatives(pg.layered(2, 3, 1, seed=0))
        nudge = pg.Nudge(pg.PhaseTargets(), [[0.1], [0.2], [0.3]], 0.3)
        options = {"inputs": lambda time: [np.sin(time), 0.3], "start": "random", "tolerance": 1e-5}
        run = pg.simulate(networks, MOMENTS, nudge=lambda time: nudge if time > 0.2 else None, **options)
        for g, each in enumerate(networks):
            mine = pg.Nudge(pg.PhaseTargets(), nudge.target[g], 0.3)
            start = run.phases[0, g]
            one = pg.simulate(
                each, MOMENTS, nudge=lambda time, mine=mine: mine if time > 0.2 else None, **{**options, "start": start}
            )
            assert np.array_equal(run.phases[:, g], one.phases)

    def test_steps_are_those_of_each_sample(self):
        # A fast network does not shorten the steps of a slow one, compiled or not.
        for interaction in (pg.terms.Sine(), pg.terms.OddSeries((1.0, 0.2))):
            slow = pg.networks.ring(4, omega=[0.1, 0.2, 0.0, 0.3], interaction=interaction)
            fast = slow.replace(omega=[10.0, 0.2, -40.0, 0.3], coupling=9.0)
            run = pg.simulate([slow, fast], MOMENTS, method="rk4", tolerance=1e-4)
            for g, each in enumerate((slow, fast)):
                assert np.array_equal(run.phases[:, g], pg.simulate(each, MOMENTS, method="rk4", tolerance=1e-4).phases)


class TestShapes:
    @pytest.mark.parametrize(
        ("start", "inputs", "shape"),
        [
            ((), None, (3,)),
            ((3,), None, (3,)),
            ((5, 1), None, (5, 3)),
            ((5, 3), (3,), (5, 3)),
            ((), (1,), (3,)),
            ((5, 1, 1), (2, 1), (5, 2, 3)),
        ],
    )
    def test_networks_broadcast_with_starts_and_inputs(self, networks, start, inputs, shape):
        data = None if inputs is None else np.full((*inputs, 1), 0.1)
        run = pg.simulate(networks, MOMENTS, start=np.zeros((*start, 4)), inputs=data)
        assert run.phases.shape == (3, *shape, 4)
        assert run.turning.shape == shape
        assert run.locked.shape == run.local_order()[0].shape == (*shape, 4)
        assert run.locked_frequency.shape == run.time_to_lock().shape == run.winding()[0].shape == shape
        assert np.shape(run.as_dict()["phases"]) == run.phases.shape

    def test_a_list_of_one_is_an_axis(self, networks):
        run = pg.simulate(networks[:1], MOMENTS)
        assert run.phases.shape == (3, 1, 4)
        assert np.array_equal(run.phases[:, 0], pg.simulate(networks[0], MOMENTS).phases)

    def test_every_network_has_a_frame_of_its_own(self, networks):
        fast = [each.replace(omega=each.omega + 3.0 * k) for k, each in enumerate(networks)]
        runs = [pg.simulate(fast, MOMENTS, frame=frame, inertia=1.0) for frame in ("rotating", "laboratory")]
        mean = [each.omega.mean() for each in fast]
        assert runs[0].turning == pytest.approx(mean)
        assert not runs[1].turning.any()
        assert runs[1].velocities - runs[0].velocities == pytest.approx(np.broadcast_to(np.c_[mean], (3, 3, 4)))
        still = pg.simulate(networks, MOMENTS, inertia=1.0)
        assert runs[0].phases == pytest.approx(still.phases, abs=1e-8)

    def test_a_batch_shows_itself_and_goes_on(self, networks):
        run = pg.simulate(networks, MOMENTS, start=np.zeros((2, 1, 4)), tolerance=1e-11)
        assert repr(run).startswith("Trajectory(6 samples of 3 networks of 4 oscillators, 3 times from 0 to 1")
        assert run.networks == tuple(networks)
        assert run.network is networks[0]
        rest = pg.simulate(networks, [1.0, 2.0], start=run, tolerance=1e-11)
        whole = pg.simulate(networks, [0.0, 2.0], start=np.zeros((2, 1, 4)), tolerance=1e-11)
        assert rest.phases[-1] == pytest.approx(whole.phases[-1], abs=1e-9)
        state = pg.find_equilibrium(networks[1])
        settled = pg.simulate(networks, [0.0, 60.0]).phases[-1, 1]
        assert settled - settled[0] == pytest.approx(state.phases, abs=1e-7)

    def test_neighbours_are_those_of_each_network(self):
        both = pg.Network([[0, 1], [1, 2]], 1.0, np.zeros(3), global_coupling=0.5, signed=True)
        phases = [0.3, 1.0, -2.0]
        run = pg.simulate([both, both.replace(global_coupling=0.0)], [0.0], start=phases)
        local = run.local_order()[0]
        assert local[0] == pytest.approx(np.full(3, run.order_parameter()[0, 0]))
        assert local[1] == pytest.approx([1.0, np.abs(np.exp(0.3j) + np.exp(-2j)) / 2, 1.0])


class TestBadInput:
    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ([], r"simulate takes a Network or a list of them, at least one\. Got \[\]"),
            (3, r"simulate takes a Network or a list of them, at least one\. Got 3"),
            ([pg.networks.ring(3), "ring"], r"at least one\. Got 'ring' among them"),
        ],
    )
    def test_networks_are_asked_for(self, given, words):
        with pytest.raises(TypeError, match=words):
            pg.simulate(given, MOMENTS)

    @pytest.mark.parametrize(
        "other",
        [
            pg.networks.ring(5),
            pg.networks.complete(4),
            pg.networks.ring(4, inputs=[1]),
            pg.networks.ring(4, outputs=[1]),
            pg.networks.ring(4, field_strength=1.0),
            pg.networks.ring(4, interaction=pg.terms.OddSeries((1.0, 0.2))),
        ],
    )
    def test_other_graphs_are_refused(self, other):
        with pytest.raises(ValueError, match="Network 1 has another topology than network 0"):
            pg.simulate([pg.networks.ring(4), other], MOMENTS)

    def test_shapes_that_do_not_go_together_are_told(self):
        networks = relatives(pg.networks.ring(4, inputs=[1]))
        with pytest.raises(ValueError, match=r"of batch shape \(3,\) and a start of batch shape \(2,\) do not go"):
            pg.simulate(networks, MOMENTS, start=np.zeros((2, 4)))
        with pytest.raises(ValueError, match=r"Inputs of batch shape \(2,\) and networks of batch shape \(3,\) do not"):
            pg.simulate(networks, MOMENTS, inputs=np.zeros((2, 1)))
