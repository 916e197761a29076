"""The critical scale against closed forms, against bisection, and against a dense continuation with tiny steps."""

import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebroots, poly2cheb
from numpy.polynomial.polynomial import polymul
from scipy.optimize import brentq

import phasegrad as pg
from phasegrad.dynamics import build_system
from phasegrad.equilibria._critical import _Branch
from phasegrad.equilibria._path import convex_between
from phasegrad.solvers import FOLLOWING


def random_tree(n, seed):
    rng = np.random.default_rng(seed)
    parent = np.array([rng.integers(max(0, k - 5), k) for k in range(1, n)])
    edges = np.stack([parent, np.arange(1, n)], axis=1)
    return pg.Network(edges, rng.uniform(0.5, 2.0, n - 1), rng.normal(0, 0.05, n)), parent


@pytest.mark.parametrize("n", [2, 30, 1500])
def test_on_a_tree_it_is_the_edge_whose_flow_first_exceeds_its_coupling(n):
    network, parent = random_tree(n, seed=n)
    flow = network.omega - network.omega.mean()
    for k in range(n - 1, 0, -1):
        flow[parent[k - 1]] += flow[k]
    limits = network.coupling / np.abs(flow[network.edges[:, 1]])
    found = pg.critical_scale(network)
    assert abs(found.scale / limits.min() - 1) < 1e-6
    assert found.edges[0] == np.argmin(limits)
    assert found.locked <= found.scale
    assert found.equilibrium.stable


@pytest.mark.parametrize(
    "network",
    [
        pg.networks.random_network(12, seed=4),
        pg.networks.random_network(12, seed=4, interaction=pg.terms.OddSeries([1.0, 0.2])),
        pg.networks.lattice(20, 20, omega=np.random.default_rng(0).normal(0, 0.1, 400)),
        pg.networks.ring(5, omega=[0.1, 0.3, -0.2, 0, 0], field_strength=0.2),
    ],
)
def test_it_is_where_bisection_loses_the_state(network):
    found = pg.critical_scale(network)
    centre = network.omega.mean() if network.pinned else 0.0
    start = found.equilibrium.phases[0]
    low, high = 0.98 * found.scale, 1.02 * found.scale
    for _ in range(16):
        middle = (low + high) / 2
        state = pg.find_equilibrium(network.replace(omega=middle * (network.omega - centre)), start=start)
        near = np.abs(state.phases - start).max() < np.pi / 2
        low, high = (middle, high) if state.stable and near else (low, middle)
    assert abs(found.scale / low - 1) < 1e-5
    mode = np.linalg.eigh(pg.dynamics.laplacian(network, start))[1][:, 0]
    expected = np.zeros(network.size)
    expected[network.free] = mode / mode[np.argmax(np.abs(mode))]
    # Near the end the state moves along the mode whose eigenvalue vanishes, and little along the others.
    cosine = abs(found.mode @ expected) / np.linalg.norm(found.mode) / np.linalg.norm(expected)
    assert cosine > 0.98


def odd_series(rng, most=24):
    """Return random coefficients a_k of H, rising from zero: most have a shoulder or a summit before the highest."""
    coefficients = rng.normal(size=rng.integers(1, 1 + rng.choice([6, most])))
    coefficients /= np.arange(1, coefficients.size + 1) ** rng.uniform(0, 2)
    slope = coefficients @ np.arange(1, coefficients.size + 1)
    return coefficients if slope > 0 else -coefficients


def series(coefficients, angle, order=0):
    """Return H, or its derivative for ``order`` 1, at angles."""
    k = np.arange(1, len(coefficients) + 1)
    phi = np.multiply.outer(np.asarray(angle, dtype=float), k)
    return (np.sin(phi) if order == 0 else k * np.cos(phi)) @ coefficients


def summit(coefficients):
    """Return where H has its first maximum: H' = sum of k a_k T_k(cos phi) has its largest root in the cosine there."""
    roots = chebroots(np.concatenate([[0.0], np.arange(1, len(coefficients) + 1) * coefficients]))
    real = roots.real[(np.abs(roots.imag) < 1e-12) & (np.abs(roots.real) <= 1)]
    return np.arccos(real.max())


def highest(coefficients):
    return series(coefficients, summit(coefficients))


def two_oscillators(seed):
    """2 K H(d) = s (omega_1 - omega_0): lost at the first maximum of H."""
    rng = np.random.default_rng(seed)
    coefficients, coupling, omega = odd_series(rng), rng.uniform(0.2, 3), rng.normal(size=2)
    network = pg.Network([[0, 1]], coupling, omega, interaction=pg.terms.OddSeries(coefficients))
    return network, None, 2 * coupling * highest(coefficients) / abs(omega[1] - omega[0])


def tree(seed):
    """Every edge carries what lies behind it, and is lost where that reaches the first maximum of K H."""
    rng = np.random.default_rng(seed)
    coefficients, n = odd_series(rng) if seed % 2 else np.ones(1), rng.integers(3, 12)
    parent = np.array([0] * (n - 1) if seed % 4 > 1 else [rng.integers(k) for k in range(1, n)])
    coupling, omega = rng.uniform(0.5, 2, n - 1), rng.normal(size=n)
    flow = omega - omega.mean()
    for k in range(n - 1, 0, -1):
        flow[parent[k - 1]] += flow[k]
    edges = np.stack([parent, np.arange(1, n)], axis=1)
    network = pg.Network(edges, coupling, omega, interaction=pg.terms.OddSeries(coefficients))
    return network, None, np.min(coupling * highest(coefficients) / np.abs(flow[1:]))


def loop(seed):
    """What enters a ring at one place and leaves m edges on: K H(a) + K H(m a / (n - m)) = s P, with m < n / 2.

    A single edge may go past its maximum until the sum has its own; of several in a row none may, since the
    oscillators between them would not hold: there the state loses its stability without a fold.
    """
    rng = np.random.default_rng(seed)
    n, coupling, power = int(rng.integers(3, 10)), rng.uniform(0.5, 2), rng.uniform(0.2, 2)
    m = int(rng.integers(1, (n + 1) // 2)) if n > 2 else 1
    share = m / (n - m)
    omega = np.zeros(n)
    omega[[0, m]] = power, -power

    def slope(a):
        return np.cos(a) + (share * np.cos(share * a) if m == 1 else 0.0)

    a = brentq(slope, 0.5, 3.0)
    return pg.networks.ring(n, coupling=coupling, omega=omega), None, coupling * (np.sin(a) + np.sin(share * a)) / power


def bipolar(seed):
    """Two groups of n / 2, each against the other: K n / 2 H(d) = s omega, lost at the first maximum of H."""
    rng = np.random.default_rng(seed)
    half, coupling, omega = int(rng.integers(1, 5)), rng.uniform(0.1, 2), rng.uniform(0.1, 2)
    coefficients = np.ones(1) if seed % 2 else np.array([1.0, rng.uniform(-0.4, 0.4)])
    speeds = rng.permutation(np.repeat([omega, -omega], half))
    network = pg.networks.complete(
        2 * half, coupling=coupling, omega=speeds, interaction=pg.terms.OddSeries(coefficients)
    )
    return network, None, coupling * half * highest(coefficients) / omega


def in_field(seed):
    """One oscillator, held by a field and a second harmonic: h H(d) = s omega."""
    rng = np.random.default_rng(seed)
    first, second, omega = rng.uniform(0.2, 2), rng.uniform(0, 1), rng.normal()
    network = pg.Network([], [], [omega], field_strength=first, second_strength=second)
    return network, None, highest(np.array([first, second])) / abs(omega)


def random_case(seed):
    """A random graph, with an odd series, a field or both; every third followed from a given state."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    edges = np.array([(rng.integers(k), k) for k in range(1, n)] + [(i, j) for j in range(n) for i in range(j)
                     if rng.random() < 0.4])  # fmt: skip
    edges = np.unique(edges, axis=0)
    # The steps of the judge are short beside the waves of six harmonics, not of 24.
    coefficients = odd_series(rng, most=6) if seed % 2 else np.ones(1)
    options = {"interaction": pg.terms.OddSeries(coefficients)}
    if rng.random() < 0.4:
        options |= {"field_strength": rng.uniform(0.1, 1, n)}
    signed = rng.random() < 0.3
    coupling = rng.uniform(0.3, 2, len(edges)) * (np.where(rng.random(len(edges)) < 0.2, -1, 1) if signed else 1)
    network = pg.Network(edges, coupling, rng.normal(0, 0.3, n), signed=signed, **options)
    given = seed % 3 == 0 or np.linalg.eigvalsh(pg.dynamics.laplacian(network, np.zeros(n)))[0] < 1e-3
    if not given:
        return network, None, traced_end(network, coefficients, np.zeros(n), 0.0)
    for _ in range(200):
        state = pg.find_equilibrium(network, start=rng.uniform(-np.pi, np.pi, n), eigenvalue=True)
        if state.stable and state.smallest_eigenvalue > 1e-3:
            return network, state, traced_end(network, coefficients, state.phases, 1.0)
        network = network.replace(omega=0.9 * network.omega)
    raise AssertionError(f"no stable state with seed {seed}")


def traced_end(network, coefficients, phases, scale, step=0.005):
    """Return the factor at which the smallest eigenvalue passes zero, by pseudo-arclength steps with dense matrices."""
    n, (i, j) = network.size, network.edges.T
    field = np.zeros(n) if network.field_strength is None else network.field_strength
    free = np.arange(1, n) if network.pinned else np.arange(n)
    drive = network.omega - (network.omega.mean() if network.pinned else 0.0)

    def force(theta, s):
        pull = network.coupling * series(coefficients, theta[j] - theta[i])
        total = s * drive - field * series(coefficients, theta)
        np.add.at(total, i, pull)
        np.add.at(total, j, -pull)
        return total[free]

    def matrix(theta):
        weight = network.coupling * series(coefficients, theta[j] - theta[i], 1)
        full = np.diag(field * series(coefficients, theta, 1))
        np.add.at(full, (i, i), weight)
        np.add.at(full, (j, j), weight)
        np.add.at(full, (i, j), -weight)
        np.add.at(full, (j, i), -weight)
        return full[np.ix_(free, free)]

    def stepped(point, tangent, length):
        at = point + length * tangent
        for _ in range(20):
            theta = np.zeros(n)
            theta[free] = at[:-1]
            left = np.append(force(theta, at[-1]), length - tangent @ (at - point))
            jacobian = np.vstack([np.column_stack([-matrix(theta), drive[free]]), -tangent])
            at = at - np.linalg.solve(jacobian, left)
            if np.max(np.abs(left)) < 1e-13:
                break
        theta = np.zeros(n)
        theta[free] = at[:-1]
        return at, theta

    def smallest(length):
        return np.linalg.eigvalsh(matrix(stepped(point, tangent, length)[1]))[0]

    point, tangent = np.append(phases[free] - (phases[0] if network.pinned else 0.0), scale), np.eye(free.size + 1)[-1]
    theta = np.zeros(n)
    theta[free] = point[:-1]
    while True:
        ahead = np.linalg.svd(np.column_stack([-matrix(theta), drive[free]]))[2][-1]
        tangent = ahead * np.sign(ahead @ tangent)
        after, theta = stepped(point, tangent, step)
        if np.linalg.eigvalsh(matrix(theta))[0] <= 0:
            return stepped(point, tangent, brentq(smallest, 0.0, step, xtol=1e-14))[0][-1]
        point = after


KINDS = {two_oscillators: 275, tree: 50, loop: 25, bipolar: 20, in_field: 20, random_case: 70}


def check_case(kind, seed):
    network, start, expected = kind(seed)
    found = pg.critical_scale(network, start=start)
    # The default precision. Just above the end nothing was found, just below it a stable state.
    assert abs(found.scale / expected - 1) <= 1e-6, (kind.__name__, seed)
    assert found.equilibrium.stable
    assert found.locked <= found.scale <= found.locked * (1 + 2e-6)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_branch_ends_where_it_does(kind):
    for seed in range(0, KINDS[kind], 10):
        check_case(kind, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_branch_ends_where_it_does_in_all_cases(kind):
    """Every tenth case is in the normal run."""
    assert sum(KINDS.values()) == 460
    for seed in range(KINDS[kind]):
        if seed % 10:
            check_case(kind, seed)


@pytest.mark.parametrize("dip", [1e-2, 1e-4, 1e-6, -1e-6, -1e-4, -1e-2])
def test_a_shoulder_is_passed_and_a_summit_is_not(dip):
    """H' = ((x - x0)^2 + dip) (x + c) in x = cos phi nearly vanishes at x0, or does so just before it."""
    x0 = 0.6
    c = 2 * x0 / (1 + 2 * (x0**2 + dip))
    slope = poly2cheb(polymul([x0**2 + dip, -2 * x0, 1.0], [c, 1.0]))
    assert abs(slope[0]) < 1e-15
    coefficients = slope[1:] / np.arange(1, 4)
    network = pg.Network([[0, 1]], 0.5, [-0.5, 0.5], interaction=pg.terms.OddSeries(coefficients))
    end = np.arccos(-c if dip > 0 else x0 + np.sqrt(-dip))
    assert pg.critical_scale(network).scale == pytest.approx(series(coefficients, end), rel=1e-6)


@pytest.mark.parametrize("precision", [1e-2, 1e-4, 1e-9, 1e-12])
def test_the_precision_is_kept(precision):
    network = pg.networks.ring(5, coupling=1.3, omega=[0.7, -0.7, 0, 0, 0])
    a = brentq(lambda a: np.cos(a) + 0.25 * np.cos(0.25 * a), 0.5, 3.0, xtol=1e-15)
    expected = 1.3 * (np.sin(a) + np.sin(0.25 * a)) / 0.7
    assert abs(pg.critical_scale(network, precision=precision).scale / expected - 1) < precision


def test_a_given_state_is_followed_and_no_other():
    """On a ring, the state that winds once is lost before the one that does not."""
    omega = 0.1 * np.random.default_rng(0).normal(size=9)
    network = pg.networks.ring(9, omega=omega)
    straight = pg.find_equilibrium(network)
    winding = pg.find_equilibrium(network, start=2 * np.pi * np.arange(9) / 9)
    ends = [traced_end(network, np.ones(1), state.phases, 1.0) for state in (straight, winding)]
    assert ends[1] < 0.6 * ends[0]
    for state, end in zip((straight, winding), ends, strict=True):
        for start in (state, state.phases, state.phases + 2.0, state.phases + 1e-3 * omega):
            assert pg.critical_scale(network, start=start).scale == pytest.approx(end, rel=1e-6)
    assert pg.critical_scale(network).scale == pytest.approx(ends[0], rel=1e-6)


def test_a_state_that_is_not_stable_is_not_followed():
    network = pg.networks.ring(6, omega=[0.1, 0, 0, -0.1, 0, 0])
    opposite = pg.find_equilibrium(network, start=[0, 0, np.pi, 0, 0, 0], solver=FOLLOWING)
    assert opposite.status == pg.Status.UNSTABLE
    for start in (opposite, [0, 0, 3.0, 0, 0, 0], np.pi * np.arange(6)):
        with pytest.raises(ValueError, match=r"'start' parameter.*stable equilibrium.*find_equilibrium"):
            pg.critical_scale(network, start=start)
    frustrated = pg.Network([[0, 1], [1, 2]], [1.0, -1.0], [0.1, 0.2, -0.3], signed=True)
    with pytest.raises(ValueError, match=r"Without frequencies.*start=find_equilibrium"):
        pg.critical_scale(frustrated)
    found = pg.critical_scale(frustrated, start=pg.find_equilibrium(frustrated))
    assert found.scale == pytest.approx(1 / 0.3, rel=1e-6)


@pytest.mark.parametrize("strength", [1e-300, 1e-20, 1e20, 1e49])
def test_frequencies_of_any_size_can_be_scaled(strength):
    omega = np.random.default_rng(3).normal(size=400)
    plain, other = (pg.critical_scale(pg.networks.lattice(20, 20, omega=k * omega)).scale for k in (1.0, strength))
    assert other * strength == pytest.approx(plain, rel=1e-9)


class TestConvexWays:
    """What counts as one branch: the Laplacian is positive definite all the way."""

    def test_a_proof_holds_at_every_point_of_the_way(self):
        proved = 0
        for seed in range(60):
            rng = np.random.default_rng(seed)
            network = pg.networks.complete(6, omega=rng.normal(size=6), interaction=pg.terms.OddSeries(odd_series(rng)))
            if seed % 2:
                network = network.replace(field_strength=rng.uniform(0.2, 1, 6))
            first = rng.normal(0, 0.3, 6)
            last = first + rng.normal(0, 0.4, 6)
            ways = first + np.linspace(0, 1, 200)[:, None] * (last - first)
            smallest = np.linalg.eigvalsh(pg.dynamics.laplacian(network, ways))[:, 0].min()
            if convex_between(build_system(network, None)[0], first[None], last[None]):
                proved += 1
                assert smallest > 0
            else:
                # Only where it is close: a sixteenth of the way changes no weight by much.
                assert smallest < 0.5
        assert 10 < proved < 50

    def test_two_states_of_one_network_are_not_joined(self):
        network = pg.networks.ring(9, omega=0.05 * np.random.default_rng(0).normal(size=9))
        states = [pg.find_equilibrium(network, start=2 * np.pi * q * np.arange(9) / 9) for q in (-1, 0, 1)]
        system = build_system(network, None)[0]
        for i in range(3):
            for j in range(3):
                ends = [system.place(states[k].phases[None]) for k in (i, j)]
                assert convex_between(system, *ends) == (i == j)


def test_a_state_far_from_where_it_was_expected_does_not_count():
    """Two oscillators at half their critical scale: expected where the branch leads it counts, expected near 0 not."""
    system, _ = build_system(pg.Network([[0, 1]], 2.0, [-0.5, 0.5]), None)
    for expected, counts in (
        (lambda branch: branch._predicted(2.0), True),
        (lambda branch: 1e-3 * branch.tangent, False),
    ):
        branch = _Branch(system, 1e-6)
        branch.begin_at_rest()
        assert branch._advance(2.0, expected(branch)) is counts
        assert branch.locked == (2.0 if counts else 0.0)


def test_nothing_to_lose_and_nothing_to_keep():
    assert pg.critical_scale(pg.networks.ring(5)).scale == np.inf
    assert "inf" in str(pg.critical_scale(pg.networks.ring(5)))
    assert "1 edge gives way" in str(pg.critical_scale(pg.networks.ring(5, omega=[1, 0, 0, 0, -1])))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pg.critical_scale(pg.networks.ring(4, inputs=[1]), [[0.1], [0.2]]), "one sample of inputs"),
        (lambda: pg.critical_scale(pg.Network([[0, 1]], 1.0, [0, 1], coupling_reverse=[2.0])), "reciprocal"),
        (lambda: pg.critical_scale(pg.networks.ring(4), precision=1.0), "'precision' parameter of critical_scale"),
        (lambda: pg.critical_scale(pg.networks.ring(4), start=[0.0, 0.0]), "'start' parameter.*length 4"),
        (lambda: pg.critical_scale(pg.networks.ring(4), start=np.zeros((2, 4))), r"one state, shape \(4,\)"),
        (lambda: pg.critical_scale(pg.networks.ring(4), start=np.zeros(4) + 1j), "must be a real state"),
    ],
)
def test_wrong_requests_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_harmonic_that_hides_between_two_samples_is_seen():
    """Of 126 waves in a turn one ends every 0.0499 radians, at nearly the distance of two samples of a sine."""
    harmonic, waves = 126, 9
    coefficients = np.zeros(harmonic)
    coefficients[[0, -1]] = 1.0, 0.02
    network = pg.Network([[0, 1]], 1.0, [0.0, 0.0], interaction=pg.terms.OddSeries(coefficients))
    system = build_system(network, None)[0]
    last = np.array([[0.0, waves * 2 * np.pi / harmonic]])
    halfway = np.array([[0.0, np.pi / harmonic]])
    assert pg.dynamics.laplacian(network, last[0])[0, 0] > 3
    assert pg.dynamics.laplacian(network, halfway[0])[0, 0] < -1
    assert not convex_between(system, np.zeros((1, 2)), last)
    assert convex_between(system, last, last + np.array([[0.0, 0.2 / harmonic]]))
