"""Networks as tensors, held against the NumPy functions, which share no formula with them."""

import numpy as np
import pytest

import phasegrad as pg

torch = pytest.importorskip("torch")

from phasegrad.linearised import Verdict  # noqa: E402
from phasegrad.tensors import (  # noqa: E402
    Batch,
    Contrast,
    Schur,
    Structure,
    Weights,
    _certificates as certificates,
    aligned,
    conjugate,
    gathered,
    laplacians,
    nudge_steps,
    nudge_sweeps,
    refuses,
    scattered,
    settle,
    sweeps_and_steps,
    verdicts,
)
from phasegrad.tensors._structure import Index  # noqa: E402

SAMPLES = 5


pytestmark = pytest.mark.usefixtures("one_thread")


def _turned(network, seed=0):
    """Return the network with frequencies, so that nothing is zero by symmetry."""
    rng = np.random.default_rng(seed)
    return network.replace(omega=network.omega + 0.05 * rng.standard_normal(network.omega.size))


def _positive(network):
    return network.replace(coupling=np.abs(network.coupling))


NETWORKS = {
    "one hidden layer": lambda: _turned(pg.networks.signed_layers(6, 12, 3, rest=np.pi / 2, gain=0.5, seed=1)),
    "two, and a skip": lambda: _turned(
        pg.networks.signed_layers(6, (12, 9), 3, rest=np.pi / 2, gain=0.4, skip=True, seed=1)
    ),
    "the paper's layers": lambda: pg.layered(6, 5, 3, seed=0),
    "any graph": lambda: pg.networks.random_network(15, seed=2, inputs=[0, 1, 2, 3, 4, 5], reference=7),
    "a convolution": lambda: _turned(
        pg.layers((2, 5, 5), pg.Convolution(3, 3, stride=2, padding=1), pg.Dense(7), pg.Dense(3), field=2.0, seed=2)
    ),
    "convolutions": lambda: pg.layers(
        (1, 6, 6), pg.Convolution(3, 3, stride=2), pg.Convolution(2, 2, padding=1), pg.Dense(3, skip=(1,)), field=2.0
    ),
    "driven layers": lambda: _positive(
        pg.layers(4, pg.Dense(6), pg.Dense(3), gain=2.0, input_mode="frequency", input_scale=0.1)
    ),
}


def _batch(network, x, dtype=torch.float64):
    structure = Structure.of(network)
    parameters = {name: torch.tensor(np.array(each), dtype=dtype) for name, each in network.parameters.items()}
    return Batch.of(Weights(structure, parameters, turning=True), torch.tensor(x, dtype=dtype))


def _settled(network, x, tolerance=1e-12):
    batch = _batch(network, x)
    return batch, settle(batch, torch.full((len(x),), tolerance, dtype=torch.float64))


def _phases(batch, states):
    """Return phases (B, N) in the order of the network's nodes."""
    phases = np.zeros((batch.size, batch.structure.network.size))
    for group, state in zip(batch.structure.groups, states, strict=True):
        phases[:, group.nodes] = torch.atan2(state[1], state[0]).flatten(1).numpy()
    return phases


def _case(name):
    network = NETWORKS[name]()
    x = np.random.default_rng(3).uniform(-0.6, 0.6, (SAMPLES, len(network.inputs)))
    return network, x


class _Pulls:
    """The nudges of a cost, +beta and -beta."""

    def __init__(self, network, cost, y, beta):
        self.cost, self.goals = cost, torch.tensor(cost.check_target(y, network)).repeat(2, 1)
        self.beta = torch.cat((torch.full((SAMPLES, 1), beta), torch.full((SAMPLES, 1), -beta))).double()

    def __call__(self, states):
        return self.beta * self.cost.torch_force(torch.atan2(states[1], states[0]), self.goals)


@pytest.mark.parametrize("name", NETWORKS)
class TestAgainstNumPy:
    def test_states_are_those_of_find_equilibrium(self, name):
        network, x = _case(name)
        batch, settled = _settled(network, x)
        equilibrium = pg.find_equilibrium(network, x)
        assert equilibrium.stable.all()
        apart = np.angle(np.exp(1j * (_phases(batch, settled.states) - equilibrium.phases)))
        assert np.abs(apart).max() < 1e-9
        assert float(settled.residual.max()) <= 1e-12
        assert (verdicts(batch, settled) == int(Verdict.STABLE)).all()

    def test_sweeps_never_raise_the_energy(self, name):
        network, x = _case(name)
        batch = _batch(network, x)
        states = batch.cold()
        before = pg.dynamics.energy(network, _phases(batch, states), x)
        for _ in range(6):
            batch.sweep(states)
            # The branch of a phase matters where frequencies act: count it from where it was.
            after = pg.dynamics.energy(network, _phases(batch, states), x)
            assert np.all(after <= before + 1e-12)
            before = after

    def test_laplacians_and_their_solves(self, name):
        network, x = _case(name)
        batch, settled = _settled(network, x)
        stiffness = batch.stiffness(settled.states, settled.fields)
        mine = laplacians(batch, settled.states, stiffness).numpy()
        order = np.concatenate([group.nodes for group in batch.structure.groups[1:]])
        place = np.searchsorted(network.free, order)
        theirs = pg.dynamics.laplacian(network, _phases(batch, settled.states), x)[:, place][:, :, place]
        assert np.abs(mine - theirs).max() < 1e-10
        right = [settled.states[0].new_zeros(())]
        generator = torch.Generator().manual_seed(1)
        right += [torch.randn(each.shape, generator=generator, dtype=each.dtype) for each in stiffness[1:]]
        expected = np.linalg.solve(mine, np.concatenate([each.flatten(1).numpy() for each in right[1:]], 1)[..., None])
        found, ok, falls, _ = conjugate(batch, settled.states, stiffness, right)
        answers = [found]
        if batch.structure.hidden is not None:
            answers.append(Schur(batch, settled.states, stiffness).solve(right))
        assert ok.all()
        assert not falls.any()
        for answer in answers:
            flat = np.concatenate([each.flatten(1).numpy() for each in answer[1:]], axis=1)
            assert np.abs(flat - expected[..., 0]).max() < 1e-9 * np.abs(expected).max()

    @pytest.mark.parametrize("beta", [1e-2])
    def test_gradients_are_those_of_centred_and_adjoint(self, name, beta):
        network, x = _case(name)
        batch, settled = _settled(network, x, 1e-13)
        cost, y = pg.objectives.PeriodicDistance(), np.arange(SAMPLES) % len(network.outputs)
        question = (network, pg.find_equilibrium(network, x, tolerance=1e-13), cost, y)
        names, share = tuple(network.parameters), torch.ones(SAMPLES, dtype=torch.float64)
        pull = _Pulls(network, cost, y, beta)
        nudged = nudge_sweeps(batch, settled, pull, 2, 300)
        plus, minus = zip(*(each.chunk(2, dim=1) for each in nudged.shifts), strict=True)
        centred = Contrast.between(batch, settled.states, list(plus), list(minus), 2 * beta)
        slope = -_Pulls(network, cost, y, 1.0)(torch.cat([gathered(batch.structure.outputs, settled.states)] * 2, 1))
        right = [batch.held.new_zeros(())]
        where, slope = batch.structure.outputs, slope[:SAMPLES]
        right += [scattered(where, slope, k, settled.states[k][0]) for k in batch.structure.moving]
        stiffness = batch.stiffness(settled.states, settled.fields)
        response, *_ = conjugate(batch, settled.states, stiffness, right)
        exact = Contrast.along(batch, settled.states, response)
        pairs = [(centred, pg.centred(*question, wrt=(*names, "inputs"), beta=beta, frequencies="raw"), 1e-9)]
        pairs.append((exact, pg.adjoint(*question, wrt=(*names, "inputs"), frequencies="raw"), 1e-9))
        for mine, theirs, tolerance in pairs:
            slopes = mine.slopes(names, share)
            for each in names:
                learns = network.term_of(each)[1].learnable(network.graph)
                expected = theirs[each].sum(axis=0)[learns]
                size = max(np.abs(expected).max(initial=0.0), 1e-3)
                assert np.abs(slopes[each].numpy()[learns] - expected).max(initial=0.0) < tolerance * size / beta
            assert np.abs(mine.by_inputs().numpy() - theirs.inputs).max() < tolerance / beta


def test_newtons_steps_and_sweeps_nudge_alike():
    network, x = _case("one hidden layer")
    batch = _batch(network, x)
    free, schur = sweeps_and_steps(batch, 6, 4)
    assert float(free.residual.max()) < 1e-12
    pull = _Pulls(network, pg.CosineCrossEntropy(), np.arange(SAMPLES) % 3, 1e-2)
    by_steps, by_sweeps = nudge_steps(batch, free, schur, pull, 2, 12), nudge_sweeps(batch, free, pull, 2, 60)
    for first, second in zip(by_steps.shifts[1:], by_sweeps.shifts[1:], strict=True):
        assert float((first - second).abs().max()) < 1e-9
        assert float(second.abs().max()) > 1e-5


def test_a_sample_does_not_depend_on_its_company():
    network, x = _case("convolutions")
    _, together = _settled(network, x)
    for k in range(SAMPLES):
        _, alone = _settled(network, x[k : k + 1])
        for first, second in zip(together.states, alone.states, strict=True):
            assert float((first[:, k : k + 1] - second).abs().max()) < 1e-11


def test_one_sample_that_is_no_number_touches_no_other():
    network, x = _case("convolutions")
    x[2] = np.nan
    batch, settled = _settled(network, x)
    lost = torch.tensor([False, False, True, False, False])
    assert torch.equal(~(settled.residual <= 1e-12), lost)
    assert torch.equal(verdicts(batch, settled) == int(Verdict.STABLE), ~lost)


class TestRandomVectors:
    """Certificates by a polynomial of a random vector."""

    def _judged(self, network, x, states=None):
        batch, settled = _settled(network, x)
        if states is not None:
            settled = settled._replace(states=states, fields=batch.fields(states))
        stiffness = batch.stiffness(settled.states, settled.fields)
        smallest = np.linalg.eigvalsh(laplacians(batch, settled.states, stiffness).numpy())[:, 0]
        return certificates._random_vector(batch, settled.states, stiffness), smallest

    @pytest.mark.parametrize("gain", [0.3, 1.0, 2.0, 4.0])
    def test_what_it_says_is_true(self, gain):
        network = pg.layers((1, 5, 5), pg.Convolution(3, 3), pg.Dense(6), pg.Dense(3), gain=gain, output_gain=gain)
        x = np.random.default_rng(0).uniform(-1, 1, (30, 25))
        batch = _batch(network, x)
        generator = torch.Generator().manual_seed(3)
        states = [batch.held]
        for base in batch.base[1:]:
            angle = torch.randn(base[0].shape, generator=generator, dtype=torch.float64)
            states.append(torch.stack((torch.cos(angle), torch.sin(angle))))
        for chosen in (None, states):
            (proved, refuted), smallest = self._judged(network, x, chosen)
            assert not (proved & refuted).any()
            assert np.all(smallest[proved.numpy()] > 0)
            assert np.all(smallest[refuted.numpy()] < 0)
            if gain == 0.3 and chosen is None:
                assert proved.all()
            if chosen is states and gain > 1:
                assert refuted.any()

    def test_an_eigenvalue_just_below_zero_is_never_proved(self):
        network = pg.layers(2, pg.Dense(4), pg.Dense(3), field=1.0, gain=0.5)
        batch, settled = _settled(network, np.zeros((1, 2)))
        stiffness = batch.stiffness(settled.states, settled.fields)
        smallest = float(np.linalg.eigvalsh(laplacians(batch, settled.states, stiffness).numpy())[0, 0])
        lowered = [stiffness[0], *(each - smallest - 1e-4 for each in stiffness[1:])]
        for _ in range(20):
            proved, _ = certificates._random_vector(batch, settled.states, lowered)
            assert not proved.any()

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_states_close_to_tipping_are_proved_and_not_refuted(self, dtype):
        """The largest eigenvalue of D^-1/2 B D^-1/2 is brought to 0.97, 0.985 and 0.995 by lowering D as a whole."""
        network = pg.layers(2, pg.Dense(40), pg.Dense(30), pg.Dense(3), field=1.0, gain=0.5)
        batch, settled = _settled(network, np.zeros((1, 2)))
        stiffness = batch.stiffness(settled.states, settled.fields)
        matrix = laplacians(batch, settled.states, stiffness)[0]
        diagonal = matrix.diagonal()
        couplings = torch.diag(diagonal) - matrix
        largest = float(torch.linalg.eigvalsh(couplings / torch.sqrt(diagonal[:, None] * diagonal))[-1])
        weights = Weights(batch.structure, {k: v.to(dtype) for k, v in batch.weights.parameters.items()}, turning=False)
        coarse = Batch(weights, [each.to(dtype) for each in batch.base], batch.held.to(dtype), batch.omegas)
        states = [each.to(dtype) for each in settled.states]
        for share in (0.97, 0.985, 0.995):
            lowered = [stiffness[0].to(dtype), *((each * largest / share).to(dtype) for each in stiffness[1:])]
            proved, refuted = certificates._random_vector(coarse, states, lowered)
            assert proved.all()
            assert not refuted.any()

    @pytest.mark.parametrize("reach", certificates._REACHES)
    def test_a_direction_that_is_luckier_than_the_stated_chance_proves_nothing(self, reach, monkeypatch):
        """Of a unit vector the part along any direction is below t with a probability below t sqrt(2 n / pi).

        Six oscillators pull on four with one strength each, so that N has the eigenvalues 1, -1 and else 0. The vector
        has twice the part along the first of them that is allowed to be missed with a chance of 1e-9 in all.
        """
        network = pg.layers(2, pg.Dense(6), pg.Dense(4), field=1.0)
        batch, settled = _settled(network.replace(coupling=np.ones(network.n_edges)), np.zeros((1, 2)))
        states = [torch.stack((torch.ones_like(each[0]), torch.zeros_like(each[0]))) for each in settled.states]
        stiffness = [states[0][0], torch.full((1, 6), 4.0).double(), torch.full((1, 4), 6.0).double()]
        small = 2 * 1e-9 / len(certificates._REACHES) * np.sqrt(np.pi / (2 * 10))
        still = torch.tensor([[1.0, -1.0, 0.0, 0.0, 0.0, 0.0]], dtype=torch.float64) / np.sqrt(2)
        vector = [still + small / np.sqrt(12), torch.full((1, 4), small / np.sqrt(8), dtype=torch.float64)]
        monkeypatch.setattr(certificates, "_drawn", lambda batch, like: [like[0], *vector])
        sure, _ = certificates._chebyshev(batch, states, stiffness, reach)
        assert not sure.any()

    def test_a_state_that_is_about_to_tip_is_not_refuted_by_rounding(self, monkeypatch):
        """N of a complete bipartite graph has the eigenvalue 1: no form is negative, not even along its eigenvector.

        In single precision both 7^-1/2 and 8548^-1/2 are rounded up, alike for all oscillators, so that no mean of many
        takes the error away.
        """
        wide, narrow = 8548, 7
        network = pg.layers(1, pg.Dense(wide), pg.Dense(narrow), field=1.0)
        parameters = {name: torch.ones(values.size) for name, values in network.parameters.items()}
        batch = Batch.of(Weights(Structure.of(network), parameters, turning=False), torch.zeros(1, 1))
        states = [torch.stack((torch.ones(1, size), torch.zeros(1, size))) for size in (1, wide, narrow)]
        stiffness = [states[0][0], torch.full((1, wide), float(narrow)), torch.full((1, narrow), float(wide))]
        along = [torch.full((1, size), (2 * size) ** -0.5) for size in (wide, narrow)]
        monkeypatch.setattr(certificates, "_drawn", lambda batch, like: [like[0], *along])
        proved, refuted = certificates._random_vector(batch, states, stiffness)
        assert not proved.any()
        assert not refuted.any()

    def test_directions_are_those_of_the_network_in_every_run(self):
        """Two equal runs must count alike, and no two networks need share a direction."""
        network, x = _case("convolutions")
        other = network.replace(coupling=network.coupling * 1.001)
        draws = []
        for each in (network, network, other):
            batch = _batch(each, x)
            draws.append(certificates._drawn(batch, [batch.held[0], *(part[0] for part in batch.base[1:])]))
        for first, second, third in list(zip(*draws, strict=True))[1:]:
            assert torch.equal(first, second)
            assert not torch.isclose(first, third).any()

    def test_the_callers_random_numbers_stay(self):
        torch.manual_seed(5)
        before = torch.random.get_rng_state()
        network, x = _case("convolutions")
        self._judged(network, x)
        assert torch.equal(before, torch.random.get_rng_state())


def test_verdicts_count_eigenvalues_from_a_floor():
    network, x = _case("one hidden layer")
    batch, settled = _settled(network, x)
    matrices = laplacians(batch, settled.states, batch.stiffness(settled.states, settled.fields)).numpy()
    smallest = np.linalg.eigvalsh(matrices)[:, 0]
    for share in (0.99, 1.01):
        verdict = verdicts(batch, settled, float(share * smallest[0]))
        assert bool(verdict[0] == int(Verdict.STABLE)) == (share < 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_eigenvalue_of_exactly_zero_is_neither_proved_nor_refuted(dtype):
    """At rest a hidden and an output oscillator have the Laplacian [[2, -1], [-1, 1 + field]], singular at -1/2."""
    found, settled = [], None
    for field in (-0.25, -0.5, -0.75):
        network = pg.networks.signed_layers(1, 1, 1).replace(
            coupling=[0.5, 1.0], field_strength=[0.0, 0.5, field], field_phase=np.zeros(3)
        )
        batch = _batch(network, np.zeros((1, 1)), dtype)
        states = [torch.stack((torch.ones_like(each[0]), torch.zeros_like(each[0]))) for each in batch.cold()]
        fields = batch.fields(states)
        matrix = laplacians(batch, states, batch.stiffness(states, fields))[0]
        assert matrix.tolist() == [[2.0, -1.0], [-1.0, 1.0 + field]]
        settled = settled or settle(batch, torch.full((1,), 1e-6, dtype=dtype))
        found.append(Verdict(int(verdicts(batch, settled._replace(states=states, fields=fields))[0])))
    assert found == [Verdict.STABLE, Verdict.UNPROVED, Verdict.UNSTABLE]


CERTIFICATES = {"eliminated": (6,), "factored": (6, 5), "by a random vector": (6, 5)}


def _smallest(network, batch, states):
    """Return the smallest eigenvalue of every sample's Laplacian at the phases of its state, by NumPy."""
    phases = _phases(batch, [each.double() for each in states])
    return np.linalg.eigvalsh(pg.dynamics.laplacian(network, phases, phases[:, list(network.inputs)]))[:, 0]


class TestSinglePrecision:
    """Proofs about states in single precision, judged by double precision."""

    def _case(self, kind, monkeypatch, first=1.0, rest=1.0):
        if kind == "by a random vector":
            monkeypatch.setattr(certificates, "_DENSE", 0)
        network = pg.layers(40, *(pg.Dense(size) for size in CERTIFICATES[kind]), pg.Dense(2), gain=0.5, seed=3)
        scale = np.full(network.n_edges, rest)
        scale[:240] = first
        rounded = {name: np.float64(np.float32(each)) for name, each in network.parameters.items()}
        network = network.replace(**rounded, input_phase=0.0, input_scale=1.0)
        network = network.replace(coupling=np.float64(np.float32(scale * network.coupling)))
        x = np.random.default_rng(4).uniform(-2, 2, (200, 40))
        return network, _batch(network, x, torch.float32)

    @pytest.mark.parametrize("kind", CERTIFICATES)
    def test_nothing_is_proved_of_a_stiffness_that_rounding_hides(self, kind, monkeypatch):
        """An oscillator nearly across a strong field has a stiffness of the size of that field's rounding error."""
        network, batch = self._case(kind, monkeypatch, first=1000.0, rest=1e-3)
        settled = settle(batch, torch.full((200,), 1e9))
        phase = torch.atan2(settled.fields[1][1], settled.fields[1][0]).double()
        turn = np.pi / 2 - 1e-7 * np.random.default_rng(5).uniform(-1, 3, 200)
        phase[:, 0] += torch.tensor(turn)
        states = list(settled.states)
        states[1] = torch.stack((torch.cos(phase), torch.sin(phase))).float()
        smallest = _smallest(network, batch, states)
        found = verdicts(batch, settled._replace(states=states, fields=batch.fields(states))).numpy()
        assert (smallest < 0).sum() > 30
        assert not (found == int(Verdict.STABLE))[smallest <= 0].any()
        assert not (found == int(Verdict.UNSTABLE))[smallest >= 0].any()

    @pytest.mark.parametrize("kind", CERTIFICATES)
    def test_ordinary_states_are_proved(self, kind, monkeypatch):
        network, batch = self._case(kind, monkeypatch)
        settled = settle(batch, torch.full((200,), 1e-5))
        smallest = _smallest(network, batch, settled.states)
        assert (smallest > 1e-3).sum() > 150
        assert (verdicts(batch, settled).numpy() == int(Verdict.STABLE))[smallest > 1e-3].all()


def test_an_index_takes_and_puts_runs_and_any_places():
    values = torch.arange(10.0)
    for places in (slice(2, 5), np.array([7, 1, 3]), np.arange(10)):
        index = Index(places)
        total = torch.zeros(10)
        index.put(total, index.take(values))
        chosen = np.arange(10)[places]
        assert index.take(values).tolist() == values[chosen].tolist()
        assert total.sum() == values[chosen].sum()


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (pg.networks.ring(4, interaction=pg.terms.OddSeries((1.0, 0.2)), outputs=[2]), "OddSeries"),
        (pg.networks.ring(4, coupling_reverse=0.5, outputs=[2]), "non-reciprocal"),
        (pg.networks.ring(4, second_strength=0.5, outputs=[2]), "sine coupling, sine fields and frequencies"),
        (pg.networks.random_regular(20_000, 3, outputs=[9999]), "use the NumPy functions"),
    ],
)
def test_what_tensors_cannot_do_is_refused_in_words(network, words):
    with pytest.raises(ValueError, match=words):
        Structure.of(network)


def test_what_they_can_do_is_not_refused():
    assert refuses(pg.layered(2, 5, 2)) == ""


def test_a_schur_complement_that_is_exactly_singular_ends_no_batch():
    """Its Cholesky factor has a zero on the diagonal, whose inverse LAPACK refuses for all samples."""
    network = pg.networks.signed_layers(1, 1, 1, seed=0).replace(
        coupling=[0.5, 1.0], field_strength=[0.0, 0.5, -0.5], field_phase=0.0
    )
    batch = _batch(network, [[0.0], [0.7]], torch.float32)
    settled = settle(batch, torch.full((2,), 1e-5))
    assert all(torch.isfinite(state).all() for state in settled.states)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("omega", [None, 0.0, 0.3])
def test_a_field_that_vanishes_leaves_no_state_and_no_nan(dtype, omega):
    """The oscillator beside it is aligned as if it were alone."""
    field = torch.tensor([[[0.0, 3.0]], [[0.0, 4.0]]], dtype=dtype)
    turning = None if omega is None else torch.full((1, 2), omega, dtype=dtype)
    states = aligned(field, turning)
    assert torch.equal(states[:, 0, 0], torch.zeros(2, dtype=dtype))
    lead = (omega or 0.0) / 5.0
    phase = torch.atan2(states[1, 0, 1], states[0, 0, 1]).item()
    assert phase == pytest.approx(np.arctan2(4.0, 3.0) + np.arcsin(lead), abs=1e-6)
