"""On a CUDA device: tensors agree with NumPy, graphs with what they record, and memory that runs out is a sentence.

`make test-gpu` runs these; they are left out elsewhere, and skipped where there is no such device.
"""

import numpy as np
import pytest

import phasegrad as pg

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no CUDA device here"),
]

DENSE = (pg.Dense(24), pg.Dense(3))
DEEP = (pg.Dense(12), pg.Dense(10), pg.Dense(3))
CONVOLUTIONAL = (pg.Convolution(3, 3, stride=2, padding=1), pg.Dense(3))
KINDS = {"dense": (16, DENSE), "deep": (16, DEEP), "convolution": ((1, 4, 4), CONVOLUTIONAL)}
EXACT = pg.training.Settling("batch", 1e-12)


def network_of(kind):
    shape, layers = KINDS[kind]
    return pg.layers(shape, *layers, gain=0.4, field=2.0, seed=3)


def samples(count=48, seed=0):
    stream = np.random.default_rng(seed)
    return stream.uniform(-1, 1, (count, 16)), stream.integers(0, 3, count)


def trained(kind, *, batch_size=48, epochs=1, gradient="centred", augmentation=None, **where):
    """Return a training by plain descent, whose steps are as exact as its gradients."""
    plan = pg.Plan.images(
        epochs=epochs, batch_size=batch_size, gradient=gradient, augmentation=augmentation, settling=EXACT, beta=0.01,
        optimizer="sgd", learning_rate=0.1,
    )  # fmt: skip
    return pg.train(network_of(kind), samples(), plan, **where)


def largest_difference(first, second):
    names = first.network.parameters
    return max(np.abs(first.network.parameters[k] - second.network.parameters[k]).max() for k in names)


def largest_move(result, kind):
    begin = network_of(kind).parameters
    return max(np.abs(values - begin[name]).max() for name, values in result.network.parameters.items())


@pytest.mark.parametrize("kind", KINDS)
def test_states_are_those_of_numpy(kind):
    network, (x, _) = network_of(kind), samples()
    expected = EXACT.equilibrium(network, x).phases[:, list(network.outputs)]
    layer = pg.torch.PhaseNetwork(network, dtype=torch.float64, device="cuda", tolerance=1e-12)
    found = layer(torch.tensor(x, device="cuda")).detach().cpu().numpy()
    turned = np.angle(np.exp(1j * (found - expected)))
    assert np.abs(turned).max() < 1e-9


def test_an_exact_update_is_that_of_numpy():
    plain = trained("dense", gradient="adjoint", engine="batch")
    device = trained("dense", gradient="adjoint", device="cuda", dtype="float64")
    assert largest_move(plain, "dense") > 1e-4
    assert largest_difference(plain, device) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_nudged_update_is_that_of_numpy(kind, dtype):
    """On a GPU nudged states are followed to a thousandth of the nudge, which single precision allows too."""
    plain, device = trained(kind, engine="batch"), trained(kind, device="cuda", dtype=dtype)
    assert largest_difference(plain, device) < 5e-3 * largest_move(plain, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_plays_what_was_recorded(kind, monkeypatch):
    from phasegrad.training import _torch

    options = {"device": "cuda", "dtype": "float64", "batch_size": 12, "epochs": 3}
    played = trained(kind, **options)

    def eager(step, _noise):
        if not step.calibrated:
            step._calibrate()
            step.calibrated = True
        step._update()

    monkeypatch.setattr(_torch.Step, "play", eager)
    assert largest_difference(played, trained(kind, **options)) < 1e-9


def test_scores_and_certificates_are_those_of_numpy():
    x, y = samples(200, seed=1)
    data = (*samples(), x, y)
    plan = pg.Plan.images(epochs=0, settling=EXACT)
    histories = [
        pg.train(network_of("deep"), data, plan, **where).history
        for where in ({"engine": "batch"}, {"device": "cuda", "dtype": "float64"})
    ]
    assert histories[0].test_accuracy == pytest.approx(histories[1].test_accuracy)
    assert histories[0].test_loss == pytest.approx(histories[1].test_loss, abs=1e-9)
    assert not np.any(histories[1].test_unsettled + histories[1].test_unstable)


def test_certificates_by_random_vectors_are_those_of_the_cpu():
    """They are for more oscillators than are factored, where no layer can be eliminated."""
    from phasegrad.linearised import Verdict
    from phasegrad.tensors import Batch, Structure, Weights, settle, verdicts

    network, (x, _) = pg.layers(16, pg.Dense(150), pg.Dense(150), pg.Dense(3), gain=0.4, field=2.0, seed=3), samples()
    for device in ("cpu", "cuda"):
        parameters = {name: torch.tensor(values.copy(), device=device) for name, values in network.parameters.items()}
        batch = Batch.of(Weights(Structure.of(network), parameters, turning=True), torch.tensor(x, device=device))
        settled = settle(batch, torch.full((len(x),), 1e-12, dtype=torch.float64, device=device))
        assert (verdicts(batch, settled) == int(Verdict.STABLE)).all()


@pytest.mark.parametrize("dtype", ["float32", "tf32", "float64"])
def test_a_convolution_learns(dtype):
    x, _ = samples(120, seed=2)
    y = (x[:, :8].sum(axis=1) > x[:, 8:].sum(axis=1)).astype(int)
    plan = pg.Plan.images(epochs=40, batch_size=20, learning_rate=0.02)
    result = pg.train(network_of("convolution"), (x, y), plan, device="cuda", dtype=dtype)
    assert result.history.train_accuracy[0, -1] > 0.9


def test_noise_is_drawn_there_and_repeats():
    plan = pg.Plan.images(epochs=2, batch_size=12, input_noise=0.5)

    def noisy(seed):
        return pg.train(network_of("dense"), samples(), plan, seed=seed, device="cuda", dtype="float64")

    assert largest_difference(noisy(0), noisy(0)) < 1e-12
    assert largest_difference(noisy(0), noisy(1)) > 1e-4


def test_a_bounded_norm_is_that_of_the_cpu():
    plan = pg.Plan.images(epochs=2, batch_size=12, gradient="adjoint", coupling_norm=0.1, settling=EXACT)
    results = [pg.train(network_of("deep"), samples(), plan, device=d, dtype="float64") for d in ("cpu", "cuda")]
    assert largest_difference(*results) < 1e-8


def test_moved_images_are_those_of_the_cpu(monkeypatch):
    from phasegrad.training import _torch

    monkeypatch.setattr(_torch, "_SWEEPS", 90)  # as many as all need: a GPU leaves out what did not settle in time
    options = {"batch_size": 12, "epochs": 2, "gradient": "adjoint", "augmentation": pg.datasets.Shifts(1)}
    results = [trained("dense", device=device, dtype="float64", **options) for device in ("cpu", "cuda")]
    assert largest_difference(*results) < 1e-8


@pytest.mark.parametrize(("gradient", "within"), [("implicit", 1e-8), ("centred", 1e-4)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_goes_forward_and_backward(kind, gradient, within):
    x = torch.tensor(samples(6)[0])
    slopes = []
    for device in ("cpu", "cuda"):
        layer = pg.torch.PhaseNetwork(network_of(kind), gradient=gradient, dtype=torch.float64, device=device)
        given = x.to(device).clone().requires_grad_()
        layer(given).square().sum().backward()
        slopes.append([given.grad.cpu(), layer.coupling.grad.cpu(), layer.field_phase.grad.cpu()])
    for first, second in zip(*slopes, strict=True):
        assert (first - second).abs().max() < within


def test_memory_that_runs_out_is_a_sentence():
    layer = pg.torch.PhaseNetwork(network_of("dense"), device="cuda")
    fits = torch.cuda.mem_get_info()[0] // (4 * 16)
    with pytest.raises(torch.cuda.OutOfMemoryError, match=r"A batch of .* would fit"):
        layer(torch.zeros(1, 16, device="cuda").expand(2 * fits, 16))


def test_the_estimator_trains_there():
    x, y = samples(60)
    options = {"epochs": 2, "random_state": 0}
    plain = pg.OscillatorClassifier(8, **options).fit(x, y)
    device = pg.OscillatorClassifier(8, device="cuda", dtype="float64", **options).fit(x, y)
    assert abs(plain.score(x, y) - device.score(x, y)) < 0.1


def test_the_study_computes_a_run(tmp_path):
    from phasegrad_paper.studies.images import Experiment, compute

    plan = {"epochs": 2, "batch_size": 50}
    tiny = Experiment("tiny", "tiny", "digits", (pg.Dense(20), pg.Dense(10)), plan=plan, gradients=True, seeds=1)
    (run,) = compute(tmp_path / "out.json", [tiny], device="cuda").runs
    assert run["device"] == torch.cuda.get_device_name()
    assert min(run["cosines"]["after"].values()) > 0.99


def test_a_device_that_is_not_there():
    with pytest.raises(ValueError, match="PyTorch has cpu, cuda:0"):
        trained("dense", device="cuda:99")
