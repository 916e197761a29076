"""The mean field, judged by the complete graph whose forces it has, and by LAPACK where it is large."""

import numpy as np
import pytest
from own_terms import PATH, Tilt

import phasegrad as pg
from phasegrad.dynamics import build_system
from phasegrad.linearised import Verdict, stability
from phasegrad.terms import MeanField, check_term

SIZE, COUPLING = 11, 2.0
OMEGA = np.random.default_rng(0).normal(0, 0.3, SIZE)
BATCH = np.random.default_rng(1).uniform(-3, 3, (4, SIZE))
TARGET = [0.3, -0.2]


class Mixed(pg.terms.Term):
    """E = -K A B with A = sum a sin(theta), B = sum b sin(theta): a part of rank two, of one sign only if a = b."""

    every = pg.terms.Parameter("mixed", "network")
    fixes_gauge = True

    def __init__(self, first, second):
        self.first, self.second = (np.asarray(each, dtype=float) for each in (first, second))

    def grounded(self, graph, values):
        return np.ones(graph.size, dtype=bool)

    def _sums(self, phases):
        return (np.sum(each * np.sin(phases), axis=1, keepdims=True) for each in (self.first, self.second))

    def force(self, graph, values, phases):
        first, second = self._sums(phases)
        return values["mixed"] * np.cos(phases) * (self.first * second + self.second * first)

    def energy(self, graph, values, phases):
        return (values["mixed"] * self.energy_slopes(graph, values, phases)["mixed"])[:, 0]

    def energy_slopes(self, graph, values, phases):
        first, second = self._sums(phases)
        return {"mixed": -first * second}

    def force_slopes(self, graph, values, phases, response):
        one = {"mixed": np.ones((1, 1))}
        return {"mixed": np.sum(response * self.force(graph, one, phases), axis=1, keepdims=True)}

    def stiffness(self, graph, values, phases):
        first, second = self._sums(phases)
        diagonal = values["mixed"] * np.sin(phases) * (self.first * second + self.second * first)
        a, b = (each * np.cos(phases) for each in (self.first, self.second))
        return pg.terms.Stiffness(
            diagonal=diagonal, outer=(values["mixed"] * np.stack([a, b], axis=2), np.stack([b, a], axis=2))
        )

    def stiffest(self, graph, values):
        most = np.abs(values["mixed"]) * np.sum(np.abs(self.first) + np.abs(self.second)) ** 2
        ones = np.ones((1, graph.size))
        return pg.terms.Stiffness(diagonal=most * ones, outer=(most * ones[:, :, None], ones[:, :, None]))

    def capacity(self, graph, values):
        return self.stiffest(graph, values).diagonal


def both(**options):
    """The same forces twice: through the mean field, and across all edges."""
    roles = {"omega": OMEGA, "outputs": [3, 4], **options}
    return pg.networks.mean_field(SIZE, COUPLING, **roles), pg.networks.complete(
        SIZE, coupling=COUPLING / SIZE, **roles
    )


@pytest.mark.parametrize(
    "options", [{}, {"field_strength": 0.3}, {"inputs": [0, 1], "input_mode": "phase"}, {"reference": 5}]
)
def test_force_energy_and_laplacian_are_those_of_the_complete_graph(options):
    mine, theirs = both(**options)
    inputs = [0.4, -0.1] if mine.inputs else None
    for formula in (pg.dynamics.force, pg.dynamics.energy, pg.dynamics.laplacian):
        assert formula(mine, BATCH, inputs) == pytest.approx(formula(theirs, BATCH, inputs), abs=1e-13)
    states = [pg.find_equilibrium(each, inputs, eigenvalue=True) for each in (mine, theirs)]
    assert states[0].stable
    assert states[0].phases == pytest.approx(states[1].phases, abs=1e-12)
    assert states[0].smallest_eigenvalue == pytest.approx(states[1].smallest_eigenvalue, abs=1e-13)
    # The network is connected as it is, and a repr says why.
    assert mine.n_edges == 0
    assert "mean field" in repr(mine)


def test_the_term_agrees_with_itself_beside_edges_that_are_not_reciprocal():
    network = pg.Network([[0, 1], [1, 2], [0, 3]], 0.5, OMEGA[:4], coupling_reverse=0.2, global_coupling=1.5)
    check_term(MeanField(), network.graph, {"global_coupling": np.array([[1.5]])})
    state = pg.find_equilibrium(network)
    assert state.stable
    step, along = 1e-6, np.eye(4)[network.free]
    ahead, behind = (pg.dynamics.force(network, state.phases + sign * step * along) for sign in (1, -1))
    slope = -(ahead - behind).T[network.free] / (2 * step)
    assert pg.dynamics.laplacian(network, state.phases) == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize(
    "method",
    [
        pg.adjoint,
        pg.two_phase,
        pg.centred,
        pg.gradients.holomorphic,
        pg.gradients.finite_difference,
        pg.gradients.autograd,
    ],
)
def test_every_gradient_works(method):
    mine, _ = both()
    state = pg.find_equilibrium(mine)
    gradient = method(mine, state, pg.PhaseTargets(), TARGET, wrt=("omega", "global_coupling"))
    step = 1e-5
    costs = []
    for sign in (1, -1):
        moved = pg.find_equilibrium(mine.replace(global_coupling=COUPLING + sign * step))
        costs.append(float(pg.PhaseTargets().cost(moved.phases[[3, 4]], np.array(TARGET))))
    assert gradient["global_coupling"].shape == (1,)
    assert gradient["global_coupling"][0] == pytest.approx((costs[0] - costs[1]) / (2 * step), rel=2e-3)
    exact = pg.adjoint(mine, state, pg.PhaseTargets(), TARGET)["omega"]
    assert pg.gradients.cosine(gradient["omega"], exact) > 1 - 1e-5


@pytest.mark.parametrize("averages", ["expansion", "langevin"])
def test_noise_finds_the_gradients_of_a_network_without_edges(averages):
    """Cold, it is that without noise: exact to order T, or to what walks of this length average out."""
    network = pg.networks.mean_field(4, 2.0, omega=[0.3, -0.1, 0.2, -0.4], outputs=[3])
    question = network, pg.find_equilibrium(network), pg.PhaseTargets(), [0.5]
    names = ("omega", "coupling", "global_coupling")
    found = pg.gradients.stochastic(*question, temperature=1e-5, averages=averages, steps=200, wrt=names, beta=0.05)
    exact = pg.adjoint(*question, wrt=names)
    assert found.coupling.shape == (0,)
    for name in ("omega", "global_coupling"):
        assert np.max(np.abs(found[name] - exact[name])) < (5e-3 if averages == "expansion" else 0.1)


def test_a_mean_field_learns():
    data = pg.datasets.vowels(["a", "i"], seed=0)
    network = pg.networks.mean_field(7, 6.0, inputs=[0, 1], outputs=[5, 6], reference=2)
    result = pg.train(network, data, pg.Plan.paper(("omega", "global_coupling"), epochs=3, learning_rate=0.02))
    assert result.history.train_loss[0, -1] < result.history.train_loss[0, 0]
    assert result.networks[0].global_coupling != network.global_coupling


@pytest.fixture(scope="module")
def network():
    omega = np.clip(np.random.default_rng(2).normal(0, 0.5, 1500), -1.6, 1.6)
    return pg.networks.mean_field(1500, 2.0, omega=omega, outputs=[3, 4])


@pytest.fixture(scope="module")
def state(network):
    return pg.find_equilibrium(network, eigenvalue=True)


class TestLarge:
    """Beyond 300 oscillators the low-rank part is used as it is, beyond 1000 by certificates too."""

    def test_states_balance_and_are_certified_as_by_lapack(self, network, state):
        assert state.stable
        assert np.max(np.abs(pg.dynamics.force(network, state.phases))) < 1e-12
        values = np.linalg.eigvalsh(pg.dynamics.laplacian(network, state.phases))
        assert state.smallest_eigenvalue == pytest.approx(values[0], rel=1e-6)
        assert state.smallest_eigenvalue - state.eigenvalue_error <= values[0] * (1 + 1e-9)

    def test_states_that_are_not_stable_are_refuted(self, network, state):
        system, _ = build_system(network, None)
        turned = state.phases.copy()
        turned[7] += np.pi
        found = stability(system, turned[None], explain=True)
        assert found.verdict.tolist() == [Verdict.UNSTABLE]
        # Two halves far apart: every oscillator alone is held, but not the angle between the halves.
        halves = np.where(np.arange(1500) % 2, 1.4, -1.4)
        assert np.all(np.diagonal(pg.dynamics.laplacian(network, halves)) > 0)
        assert np.linalg.eigvalsh(pg.dynamics.laplacian(network, halves))[0] < -0.1
        assert stability(system, halves[None], explain=True).verdict.tolist() == [Verdict.UNSTABLE]
        assert not stability(system, halves[None]).stable.any()
        near = np.where(np.arange(1500) % 2, 0.4, -0.4)
        assert stability(system, near[None]).stable.all()

    def test_random_starts_and_gradients_agree_with_dense_algebra(self, network, state):
        again = pg.find_equilibrium(network, start="random", seed=3)
        apart = again.phases - state.phases
        assert np.max(np.abs(np.exp(1j * apart) - 1)) < 1e-9
        wrt = ("omega", "global_coupling")
        sparse = pg.adjoint(network, state, pg.PhaseTargets(), TARGET, wrt=wrt)
        inverse = np.linalg.inv(pg.dynamics.laplacian(network, state.phases))
        slope = np.zeros(1500)
        slope[[3, 4]] = -pg.PhaseTargets().force(state.phases[[3, 4]], np.array(TARGET))
        response = np.zeros(1500)
        response[network.free] = inverse @ slope[network.free]
        assert sparse["omega"][1:] == pytest.approx(response[1:], abs=1e-9)
        pull = pg.dynamics.force(network, state.phases) - (network.omega - network.omega.mean())
        assert sparse["global_coupling"][0] == pytest.approx(response @ pull / 2.0, abs=1e-9)
        nudged = pg.centred(network, state, pg.PhaseTargets(), TARGET, wrt=wrt)
        assert pg.gradients.cosine(nudged["omega"], sparse["omega"]) > 1 - 1e-6

    def test_nobody_can_lock_against_all_others(self, network):
        found = pg.find_equilibrium(network.replace(global_coupling=0.8))
        assert not found.converged


class TestValues:
    def test_networkx_and_files_keep_the_strength(self, tmp_path):
        network = pg.Network([[0, 1], [1, 2]], 1.0, np.zeros(3), outputs=[2], global_coupling=0.7)
        assert pg.from_networkx(pg.networks.to_networkx(network)) == network
        model = pg.Model(network, pg.objectives.NearestTarget(), ["one"], [])
        model.save(tmp_path / "model.npz")
        assert pg.Model.load(tmp_path / "model.npz").network == network

    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda: pg.networks.mean_field(4, 0.0), "'global_coupling' parameter of Network must be positive. Got 0"),
            (lambda: pg.networks.mean_field(4, -1.0), "say signed=True"),
            (lambda: pg.networks.mean_field(4, [1.0, 2.0]), "'global_coupling' parameter of Network must have shape"),
            (lambda: pg.networks.mean_field(4, 0.0, signed=True), "The graph is disconnected"),
            (
                lambda: pg.dynamics.laplacian(pg.networks.mean_field(4), np.zeros(4), compressed=True),
                "has no zeros to leave out",
            ),
            (
                lambda: pg.critical_scale(pg.networks.mean_field(4)),
                "follows angles across edges, and a mean field has none",
            ),
        ],
    )
    def test_wrong_values_are_told_in_words(self, make, words):
        with pytest.raises(ValueError, match=words):
            make()

    def test_oscillators_may_repel_each_other(self):
        network = pg.networks.mean_field(5, -1.0, signed=True)
        run = pg.simulate(network, [0.0, 80.0], start="random", seed=2)
        assert run.order_parameter()[-1] < 1e-6

    def test_a_low_rank_that_is_not_two_factors_is_told(self):
        class Odd(Tilt):
            def stiffness(self, graph, values, phases):
                return pg.terms.Stiffness(outer=(np.zeros((1, 2, 1)),))

        with pytest.raises(ValueError, match="as 'outer', must return two arrays"):
            pg.Network([[0, 1], [1, 2]], 1.0, np.zeros(3), terms=[Odd()], tilt=0.1)

    @pytest.mark.parametrize(("strength", "expected"), [(0.4, Verdict.STABLE), (3.0, Verdict.UNSTABLE)])
    def test_a_low_rank_of_both_signs_proves_nothing_false(self, strength, expected):
        """The factors point apart, and their products sum to less than zero; one eigenvalue is positive yet."""
        n = 1_200
        first, second = np.random.default_rng(0).standard_normal((2, n)) / np.sqrt(n)
        second = second - (0.2 + first @ second) * first / (first @ first)
        assert first @ second < 0
        options = {"field_strength": np.ones(n), "terms": [Mixed(first, second)], "mixed": strength}
        system, _ = build_system(pg.networks.ring(n, coupling=1e-3, **options), None)
        phases = np.zeros((1, n))
        lowest = np.linalg.eigvalsh(system.laplacian(phases)[0])[0]
        assert (lowest > 0) == (expected == Verdict.STABLE)
        assert stability(system, phases, explain=True).verdict.tolist() == [expected]

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_a_low_rank_of_one_sign_is_taken_however_it_is_factored(self, sign):
        direction = [1.0, 0.5, -0.2]
        network = pg.Network(PATH, 1.0, np.zeros(3), terms=[Mixed(direction, direction)], mixed=sign)
        assert network.mixed.tolist() == [sign]

    def test_a_low_rank_that_is_not_symmetric_is_told(self):
        class Lopsided(Mixed):
            """The right slope along the two directions that are tried, by a matrix that is not symmetric."""

            def stiffness(self, graph, values, phases):
                along = np.random.default_rng(0).uniform(-1, 1, (2, 2, graph.size))[1]
                across = np.cross(along, np.ones(3))
                right = super().stiffness(graph, values, phases)
                left_factor, right_factor = right.outer
                left_factor = np.concatenate([left_factor, np.ones((2, 3, 1))], axis=2)
                right_factor = np.concatenate([right_factor, across[:, :, None]], axis=2)
                return right._replace(outer=(left_factor, right_factor))

        with pytest.raises(ValueError, match=r"as 'outer', must return factors A and B with a symmetric A B\^T"):
            pg.Network(PATH, 1.0, np.zeros(3), terms=[Lopsided([1.0, 0.5, 0.2], [1.0, 0.5, 0.2])], mixed=1.0)
