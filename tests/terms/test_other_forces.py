"""Phase lag and anisotropic coupling: two more ways in which neighbours pull, and all that networks do with them."""

import math

import networkx as nx
import numpy as np
import pytest
from random_networks import make_network
from scipy.integrate import solve_ivp
from scipy.optimize import approx_fprime

import phasegrad as pg
from phasegrad.gradients import relative_error
from phasegrad.linearised import SparseLaplacian
from phasegrad.terms import Anisotropy, Coupling, Field, PhaseLag, check_term

pytest.importorskip("torch")

KINDS = ("anisotropic", "lagging")


def layers(seed=0, **options):
    """Return the paper's network with a small random lag or anisotropy, as the options name them."""
    rng = np.random.default_rng(seed + 50)
    drawn = {name: scale * rng.uniform(0.5, 1.0, 14) for name, scale in options.items()}
    return pg.layered(2, 3, 2, seed=seed, **drawn)


def spread_values(network):
    return {name: values[None] for name, values in network.parameters.items()}


class TestFormulas:
    @pytest.mark.parametrize(
        "interaction", [pg.terms.Sine(), pg.terms.OddSeries((1.0, 0.3, -0.2))], ids=["sine", "series"]
    )
    @pytest.mark.parametrize("kind", KINDS)
    def test_force_and_laplacian_are_the_formula_and_its_slope(self, kind, interaction):
        network = make_network(7, 2, kind=kind).replace(interaction=interaction)
        rng = np.random.default_rng(1)
        matrix, H = pg.networks.to_matrix(network), interaction.value
        extra = np.zeros((7, 7))
        i, j = network.edges.T
        extra[i, j] = extra[j, i] = network.lag if kind == "lagging" else network.anisotropy
        for phases in rng.uniform(-3, 3, (3, 7)):
            across, along = phases[None, :] - phases[:, None], phases[None, :] + phases[:, None]
            pull = H(across - extra) if kind == "lagging" else H(across) + extra * H(along)
            expected = network.omega + np.sum(matrix * pull, axis=1)
            if kind == "lagging":
                expected = expected - expected[network.reference]
            np.testing.assert_allclose(pg.dynamics.force(network, phases), expected, atol=1e-12)
            steps = 1e-6 * np.eye(7)
            jacobian = (
                pg.dynamics.force(network, phases + steps) - pg.dynamics.force(network, phases - steps)
            ).T / 2e-6
            free = network.free
            # A central difference of step 1e-6 rounds at about 1e-10.
            np.testing.assert_allclose(pg.dynamics.laplacian(network, phases), -jacobian[np.ix_(free, free)], atol=1e-7)
            if kind == "anisotropic":
                slope = approx_fprime(phases, lambda theta: float(pg.dynamics.energy(network, theta)), 1e-6)
                np.testing.assert_allclose(pg.dynamics.force(network, phases), -slope, atol=1e-4)
                np.testing.assert_array_equal(
                    pg.dynamics.laplacian(network, phases, compressed=True).toarray(),
                    pg.dynamics.laplacian(network, phases),
                )

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_check_of_terms_finds_nothing_wrong_and_would(self, kind, monkeypatch):
        network = make_network(6, 1, kind=kind)
        (term,) = (each for each in network.terms if isinstance(each, Coupling))
        check_term(term, network.graph, spread_values(network))
        monkeypatch.setattr(type(term), "stiffness", Coupling.stiffness)
        with pytest.raises(ValueError, match="stiffness is not minus the slope"):
            check_term(term, network.graph, spread_values(network))

    def test_anisotropy_makes_two_axes_unlike(self):
        """E = -sum K [(1 - q) cos cos + (1 + q) sin sin]; at q = 1 a Hopfield network of activities sin theta."""
        network = pg.networks.complete(4, coupling=np.arange(1.0, 7.0), anisotropy=0.3)
        phases = np.random.default_rng(0).uniform(-3, 3, (5, 4))
        i, j = network.edges.T
        cos, sin = np.cos(phases), np.sin(phases)
        expected = -np.sum(network.coupling * (0.7 * cos[:, i] * cos[:, j] + 1.3 * sin[:, i] * sin[:, j]), axis=1)
        np.testing.assert_allclose(pg.dynamics.energy(network, phases), expected, atol=1e-12)
        hopfield = pg.dynamics.energy(network.replace(anisotropy=1.0), phases)
        np.testing.assert_allclose(
            hopfield, -np.einsum("bi,ij,bj->b", sin, pg.networks.to_matrix(network), sin), atol=1e-12
        )


class TestLag:
    def test_two_oscillators_in_closed_form(self):
        """Sin d = (omega_1 - omega_0) / (2 K cos alpha), and both turn K sin(alpha) cos(d) below the mean."""
        network = pg.Network([[0, 1]], 1.5, [0.0, 1.0], lag=0.4)
        found = pg.find_equilibrium(network, eigenvalue=True)
        angle = math.asin(1.0 / (2 * 1.5 * math.cos(0.4)))
        assert found.stable
        assert found.phases[1] == pytest.approx(angle, abs=1e-13)
        assert found.drift == pytest.approx(-1.5 * math.sin(0.4) * math.cos(angle), abs=1e-12)
        assert found.smallest_eigenvalue == pytest.approx(2 * 1.5 * math.cos(0.4) * math.cos(angle), rel=1e-12)
        beyond = network.replace(omega=[0.0, 3.0 * math.cos(0.4) + 0.01])
        assert not pg.find_equilibrium(beyond).stable

    @pytest.mark.parametrize("lag", [0.0, 0.3, 1.2, 2.0])
    def test_states_of_a_ring(self, lag):
        """Winding q turns at -2 sin(lag) cos(2 pi q / n) and is stable where cos(lag) cos(2 pi q / n) > 0."""
        n = 9
        turns = np.arange(-4, 5)
        phases = 2 * np.pi * np.outer(turns, np.arange(n)) / n
        found = pg.find_equilibrium(pg.networks.ring(n, lag=lag), start=phases, solver="newton", eigenvalue=True)
        np.testing.assert_allclose(found.drift, -2 * math.sin(lag) * np.cos(2 * np.pi * turns / n), atol=1e-12)
        expected = math.cos(lag) * np.cos(2 * np.pi * turns / n)
        assert found.stable.tolist() == (expected > 0).tolist()
        ring = np.linalg.eigvalsh(nx.laplacian_matrix(nx.cycle_graph(n)).toarray())
        stable = expected > 0
        np.testing.assert_allclose(found.smallest_eigenvalue[stable], expected[stable] * ring[1], atol=1e-9)
        if 0 < lag < np.pi / 2:
            assert sorted(pg.find_equilibria(pg.networks.ring(n, lag=lag), starts=1).winding[:, 0].tolist()) == [
                -2,
                -1,
                0,
                1,
                2,
            ]

    def test_no_lag_is_coupling_as_it_was(self):
        plain, lagging = layers(), layers(lag=0.0)
        inputs = [[0.3, -0.4], [0.2, 0.9]]
        first, second = (pg.find_equilibrium(network, inputs, eigenvalue=True) for network in (plain, lagging))
        np.testing.assert_allclose(second.phases, first.phases, atol=1e-11)
        assert [type(term) for term in lagging.terms if term not in plain.terms] == [PhaseLag]
        question = (pg.PhaseTargets(), [0.1, -0.2])
        mine, theirs = (
            pg.adjoint(n, e, *question, wrt="coupling").coupling for n, e in ((lagging, second), (plain, first))
        )
        np.testing.assert_allclose(mine, theirs, atol=1e-10)

    def test_the_dynamics_turn_at_the_common_frequency(self):
        network = make_network(6, 5, kind="lagging").replace(interaction=pg.terms.Sine())
        found = pg.find_equilibrium(network, eigenvalue=True)
        assert found.stable
        matrix, lag = pg.networks.to_matrix(network), np.zeros((6, 6))
        i, j = network.edges.T
        lag[i, j] = lag[j, i] = network.lag

        def speed(_, phases):
            return network.omega + np.sum(matrix * np.sin(phases[None, :] - phases[:, None] - lag), axis=1)

        end = solve_ivp(speed, (0, 25 / float(found.smallest_eigenvalue)), found.phases + 0.05, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(speed(0, end.y[:, -1]), network.omega.mean() + found.drift, atol=1e-6)
        np.testing.assert_allclose(end.y[:, -1] - end.y[0, -1], found.phases - found.phases[0], atol=1e-6)

    def test_nudges_are_off_by_a_measured_bias_and_say_so(self):
        network = layers(1).replace(lag=np.random.default_rng(0).uniform(-1, 1, 14))
        question = (network, pg.find_equilibrium(network, [0.5, -0.5]), pg.PhaseTargets(), [-0.2, 0.2])
        exact = pg.adjoint(*question, wrt=("coupling", "lag"))
        for method in (pg.two_phase, pg.centred, pg.gradients.holomorphic):
            with pytest.warns(pg.gradients.GradientWarning, match="coupling is not reciprocal"):
                biased = method(*question, wrt=("coupling", "lag"))
            assert 1e-6 < relative_error(biased.lag, exact.lag) < 1

    @pytest.mark.parametrize(
        ("ask", "words"),
        [
            (lambda network: pg.dynamics.energy(network, np.zeros(7)), "has no energy: its coupling is not reciprocal"),
            (pg.critical_scale, "critical_scale needs reciprocal coupling"),
            (lambda network: pg.dynamics.laplacian(network, np.zeros(7), compressed=True), "reciprocal coupling"),
            (lambda network: pg.find_equilibrium(network, solver="sparse"), "needs reciprocal coupling"),
            (
                lambda network: pg.gradients.gradient_from_phases(network, np.zeros(7), np.zeros(7), 0.1),
                "needs reciprocal",
            ),
            (pg.circuits.Circuit, "needs reciprocal coupling"),
            (pg.torch.PhaseNetwork, "this one has phase lag"),
        ],
    )
    def test_what_needs_an_energy_says_so(self, ask, words):
        with pytest.raises(ValueError, match=words):
            ask(layers(lag=0.1))


class TestAnisotropy:
    def test_two_oscillators_in_closed_form(self):
        """Both at theta with sin 2 theta = -omega / (K q), near a quarter turn for positive q, up to omega = K q."""
        network = pg.Network([[0, 1]], 2.0, [0.3, 0.3], anisotropy=0.4)
        states = pg.find_equilibria(network, starts=20)
        theta = (math.pi + math.asin(0.3 / 0.8)) / 2
        np.testing.assert_allclose(np.sort(states.phases[:, 0]), [theta - math.pi, theta], atol=1e-11)
        np.testing.assert_allclose(states.phases[:, 1], states.phases[:, 0], atol=1e-11)
        # Moving together: 2 times -K q cos(2 theta); apart: 2 K.
        along = -2 * 0.8 * math.cos(2 * theta)
        np.testing.assert_allclose(states.equilibrium.smallest_eigenvalue, along, atol=1e-11)
        scale = pg.critical_scale(network, start=states.phases[0]).scale
        assert scale == pytest.approx(0.8 / 0.3, rel=1e-5)
        assert pg.find_equilibrium(network, start=[0.0, 0.0]).stable
        still = network.replace(omega=[0.0, 0.0])
        assert pg.find_equilibrium(still, start=[0.0, 0.0], solver="newton").status == pg.Status.UNSTABLE

    @pytest.mark.parametrize("seed", range(4))
    def test_certificates_are_right_by_eigenvalues(self, seed):
        rng = np.random.default_rng(seed)
        network = pg.networks.complete(
            6,
            coupling=rng.uniform(-1, 1, 15),
            omega=0.1 * rng.standard_normal(6),
            signed=True,
            anisotropy=rng.uniform(-1.5, 1.5, 15),
        )
        found = pg.find_equilibrium(network, start=rng.uniform(-3, 3, (8, 6)), solver="newton", eigenvalue=True)
        assert np.any(found.stable)
        for k in np.flatnonzero(found.converged):
            phases, (i, j) = found.phases[k], network.edges.T
            matrix = np.zeros((6, 6))
            for w, s, a, b in zip(
                network.coupling * np.cos(phases[j] - phases[i]),
                -network.coupling * network.anisotropy * np.cos(phases[i] + phases[j]),
                i,
                j,
                strict=True,
            ):
                matrix[np.ix_([a, b], [a, b])] += w * np.array([[1, -1], [-1, 1]]) + s
            smallest = np.linalg.eigvalsh(matrix)[0]
            assert found.smallest_eigenvalue[k] == pytest.approx(smallest, abs=1e-10)
            assert found.stable[k] == (smallest > 0)

    @pytest.mark.parametrize("size", [18, pytest.param(34, marks=pytest.mark.slow)])
    def test_large_networks_are_solved_and_certified_sparsely(self, size):
        rng = np.random.default_rng(0)
        n = size**2
        network = pg.networks.lattice(
            size, size, omega=0.05 * rng.standard_normal(n), outputs=(n // 2, n - 1), anisotropy=-0.2
        )
        fast, plain = (pg.find_equilibrium(network, solver=s, eigenvalue=True) for s in ("sparse", "newton"))
        assert fast.stable
        np.testing.assert_allclose(fast.phases, plain.phases, atol=1e-11)
        smallest = np.linalg.eigvalsh(pg.dynamics.laplacian(network, fast.phases))[0]
        assert fast.smallest_eigenvalue - fast.eigenvalue_error - 1e-9 <= smallest <= fast.smallest_eigenvalue + 1e-9
        # Of the other sign phase zero is a saddle: all weights of sums are negative there.
        saddle = network.replace(anisotropy=0.2, omega=np.zeros(n))
        assert (
            pg.find_equilibrium(saddle, solver=pg.solvers.Newton(algebra=SparseLaplacian, indefinite="stop"))
            .status.item()
            .name
            == "UNSTABLE"
        )
        question = (pg.PhaseTargets(), [0.3, -0.2])
        mine, theirs = (pg.adjoint(network, each, *question, wrt="anisotropy").anisotropy for each in (fast, plain))
        assert relative_error(mine, theirs) < 1e-6

    def test_shared_anisotropies_of_a_convolution_are_collected(self):
        layout = pg.networks.Layout([(1, 3, 3), (2, 2, 2)], [pg.networks.Link(0, 1, kernel=2)])
        rng = np.random.default_rng(0)
        network = pg.Network(
            layout,
            rng.uniform(0.5, 1.0, 8),
            0.0,
            anisotropy=-rng.uniform(0.1, 0.4, 8),
            field_strength=0.5,
            field_phase=0.3,
        )
        x, target = rng.uniform(-0.2, 0.2, 9), rng.uniform(-0.3, 0.3, 8)
        shared = pg.adjoint(network, pg.find_equilibrium(network, x), pg.PhaseTargets(), target, wrt="anisotropy")
        untied = network.untied()
        alone = pg.adjoint(untied, pg.find_equilibrium(untied, x), pg.PhaseTargets(), target, wrt="anisotropy")
        collected = np.bincount(network.graph.sharing.spread("edges", np.arange(8.0)).astype(int), alone.anisotropy, 8)
        np.testing.assert_allclose(shared.anisotropy, collected, atol=1e-10)

    def test_a_part_that_nothing_ties_to_the_frame_is_refused(self):
        """Where the coupling is zero the sum of two phases is held, and their difference is not."""
        edges = [[0, 1], [1, 2], [3, 4]]
        with pytest.raises(ValueError, match=r"disconnected.*from a field or a clamped input"):
            pg.Network(edges, 1.0, np.zeros(5), anisotropy=[0.2, 0.2, 0.0])
        with pytest.raises(ValueError, match="disconnected"):
            pg.Network(edges, [1.0, 1.0, 0.0], np.zeros(5), anisotropy=0.2, signed=True)
        assert pg.Network(edges, 1.0, np.zeros(5), anisotropy=[0.0, 0.2, 0.2]).size == 5


@pytest.mark.parametrize("name", ["anisotropy", "lag"])
def test_exact_gradients_agree_and_finite_differences_are_the_judge(name):
    network = layers(2, **{name: -0.4})
    equilibrium = pg.find_equilibrium(network, np.random.default_rng(0).uniform(-1, 1, (2, 2)))
    assert np.all(equilibrium.stable)
    methods = ["adjoint", "autograd", "finite_difference"]
    limits = {"adjoint": 1e-7, "autograd": 1e-7}
    if name == "anisotropy":
        methods += ["holomorphic", "centred", "two_phase"]
        limits |= {"holomorphic": 1e-7, "centred": 1e-6, "two_phase": 1e-3}
    table = pg.check_gradients(network, equilibrium, pg.PhaseTargets(), [-0.2, 0.3], methods=methods)
    judge = table.methods.index("finite_difference")
    for parameter in ("omega", "coupling", name):
        for method, limit in limits.items():
            assert table.relative_error[parameter][table.methods.index(method), judge] < limit, (parameter, method)


@pytest.mark.parametrize(("name", "gradient"), [("anisotropy", "centred"), ("lag", "adjoint")])
def test_it_is_learned(name, gradient):
    inputs = np.random.default_rng(3).uniform(-1, 1, (20, 2))
    teacher, network = layers(0, **{name: -0.5}), layers(0, **{name: -0.2})
    phases = pg.find_equilibrium(teacher, inputs).phases[:, list(teacher.outputs)]
    done = pg.train(
        network,
        (inputs, phases),
        learn=name,
        objective=pg.PhaseTargets(),
        epochs=25,
        learning_rate=0.03,
        batch_size=10,
        gradient=gradient,
    )
    assert done.history.train_loss[0, -1] < 0.05 * done.history.train_loss[0, 0]
    np.testing.assert_array_equal(done.network.coupling, network.coupling)


@pytest.mark.parametrize("name", ["anisotropy", "lag"])
def test_batches_may_be_split_and_files_keep_it(name, tmp_path):
    network = layers(1, **{name: -0.3})
    inputs = np.random.default_rng(0).uniform(-1, 1, (5, 2))
    whole = pg.find_equilibrium(network, inputs, solver="newton")
    wrt, target = tuple(network.parameters), np.array([0.1, -0.1])
    gradient = pg.adjoint(network, whole, pg.PhaseTargets(), target, wrt=wrt)
    for rows in (slice(0, 2), slice(2, 5)):
        part = pg.find_equilibrium(network, inputs[rows], solver="newton")
        np.testing.assert_array_equal(part.phases, whole.phases[rows])
        mine = pg.adjoint(network, part, pg.PhaseTargets(), target, wrt=wrt)
        for each in wrt:
            np.testing.assert_array_equal(mine[each], gradient[each][rows])
    model = pg.Model(network, pg.objectives.NearestTarget(), ("no", "yes"), ("a", "b"))
    model.save(tmp_path / "model.npz")
    assert pg.Model.load(tmp_path / "model.npz").network == network
    assert pg.from_networkx(pg.networks.to_networkx(network)) == network
    assert network.replace(**{name: None}) == pg.layered(2, 3, 2, seed=1)
    assert pg.layered(2, 3, 2, seed=1).replace(**{name: network.parameters[name]}) == network


def test_networkx_carries_both_beside_two_strengths():
    network = pg.networks.ring(5, lag=[0.1, 0.2, 0.3, 0.4, 0.5], coupling_reverse=[1, 2, 3, 4, 5])
    graph = pg.networks.to_networkx(network)
    assert graph.is_directed()
    assert pg.from_networkx(graph) == network
    graph.edges[0, 1]["lag"] = 0.9
    with pytest.raises(ValueError, match=r"two directions of the edge .* different values of 'lag'"):
        pg.from_networkx(graph)


def test_edges_given_the_other_way_around_are_the_same():
    edges = np.array([[0, 1], [1, 2], [0, 2]])
    for options in ({"lag": [0.1, 0.2, 0.3], "coupling_reverse": [1.0, 2.0, 3.0]}, {"anisotropy": [0.1, 0.2, 0.3]}):
        turned = dict(options)
        coupling = np.array([2.0, 1.0, 0.5])
        if "lag" in options:
            coupling, turned["coupling_reverse"] = np.array([1.0, 2.0, 3.0]), [2.0, 1.0, 0.5]
        first = pg.Network(edges, [2.0, 1.0, 0.5], [0.1, 0.0, -0.1], **options)
        assert pg.Network(edges[:, ::-1], coupling, [0.1, 0.0, -0.1], **turned) == first


def test_what_cannot_be_had_together_is_refused():
    with pytest.raises(
        ValueError, match="has 'lag' or 'anisotropy', not both: each of them changes how 'coupling' acts"
    ):
        pg.networks.ring(5, lag=0.1, anisotropy=0.1)
    with pytest.raises(ValueError, match="has 'coupling_reverse' or 'anisotropy', not both"):
        pg.networks.ring(5, coupling_reverse=2.0, anisotropy=0.1)
    with pytest.raises(ValueError, match="'anisotropy' parameter of Network is zero everywhere"):
        pg.networks.ring(5, anisotropy=0.0)
    with pytest.raises(ValueError, match=r"'lag' parameter of Network must have shape \(5,\)"):
        pg.networks.ring(5, lag=[0.1, 0.2])
    with pytest.raises(ValueError, match="must be positive"):
        pg.networks.ring(5, coupling=-1.0, lag=0.1)
    assert pg.networks.ring(5, lag=0.1, field_strength=0.3).terms[1:] == (PhaseLag(), Field())
    assert Anisotropy() in pg.networks.ring(5, anisotropy=0.3).terms


def test_engines_that_cannot_say_what_they_cannot():
    data, network = pg.datasets.xor(), pg.layered(2, 5, 2, anisotropy=-0.1)
    with pytest.raises(ValueError, match=r"The lanes train .*, not Anisotropy"):
        pg.train(network, data, pg.Plan.paper(), engine="lanes")
    with pytest.raises(ValueError, match="this one has anisotropic coupling"):
        pg.torch.PhaseNetwork(network)
    with pytest.raises(ValueError, match="no component for the parameter 'anisotropy'"):
        pg.circuits.Circuit(network)


def test_levels_of_hardware_are_those_of_strengths():
    kind = pg.hardware.Hardware(coupling_levels=3, coupling_range=(0.0, 2.0))
    network = pg.layered(2, 3, 2, anisotropy=-0.1)
    assert list(kind.ranges(network)) == ["coupling"]
    chip = pg.hardware.Hardware(coupling_mismatch=0.1).sample(network, 0)
    chip.program(dict(network.parameters))
    chip.run([[0.1, 0.2]])
    assert np.all(np.isfinite(chip.read()))


@pytest.mark.parametrize("step", [-1, 0, 1])
def test_coupling_that_lags_a_quarter_turn_is_not_proved_stable_by_rounding(step):
    # All weights of the state in phase are cos(pi/2), zero but for the last digit of the lag.
    lag = np.pi / 2 + step * np.spacing(np.pi / 2)
    for size in (3, 6):
        equilibrium = pg.find_equilibrium(pg.networks.ring(size, lag=lag), eigenvalue=True)
        assert equilibrium.status.item() is pg.Status.MARGINAL
        assert abs(equilibrium.smallest_eigenvalue) < 1e-14
