"""The layer for PyTorch: states against NumPy's, gradients against differences, and life among other modules."""

import copy
import io
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import phasegrad as pg

torch = pytest.importorskip("torch")
nn = torch.nn
PhaseNetwork, SettlingWarning = pg.torch.PhaseNetwork, pg.torch.SettlingWarning
DOUBLE = torch.float64


pytestmark = pytest.mark.usefixtures("one_thread")


def driven(network, size=0.1):
    """Return the network with frequencies."""
    return network.replace(omega=size * np.random.default_rng(1).normal(size=network.omega.shape))


def networks():
    """Return networks of every kind that tensors tell apart."""
    frequency = {"input_mode": "frequency", "input_scale": 0.3, "field_strength": 1.0, "field_phase": 0.3}
    return {
        "one hidden layer": driven(pg.layers(4, pg.Dense(6), pg.Dense(3))),
        "two hidden layers, skip": driven(pg.layers(4, pg.Dense(5), pg.Dense(4, skip=[0]), pg.Dense(3))),
        "convolution": driven(pg.layers((1, 4, 4), pg.Convolution(2, 3, stride=2, padding=1), pg.Dense(2))),
        "convolution last": driven(pg.layers((1, 4, 4), pg.Convolution(2, 3))),
        "frequency inputs": driven(pg.layers(3, pg.Dense(4), pg.Dense(2), **frequency)),
        "pinned": driven(pg.layered(2, 5, 2, seed=3)),
        "any graph": driven(pg.networks.random_network(7, inputs=(1, 2), outputs=(5, 6), seed=0)),
    }


NETWORKS = networks()
KINDS = pytest.mark.parametrize("kind", NETWORKS)


def inputs_of(network, count=3, seed=0):
    return torch.tensor(np.random.default_rng(seed).uniform(-0.5, 0.5, (count, len(network.inputs))))


def wrapped(angle):
    return (angle + np.pi) % (2 * np.pi) - np.pi


def gradients(module, x, loss=lambda y: y.square().sum()):
    """Return gradients by inputs and parameters, by name."""
    x = x.detach().clone().requires_grad_()
    names, values = zip(*((n, p) for n, p in module.named_parameters() if p.requires_grad), strict=True)
    return dict(zip(("inputs", *names), torch.autograd.grad(loss(module(x)), (x, *values)), strict=True))


def uncompiled(monkeypatch, compiled):
    """Let tensors settle without compiled code, as on a GPU, unless it is wanted."""
    from phasegrad.tensors import _slopes
    from phasegrad.torch import _states

    if not compiled:
        for module in (_slopes, _states):
            monkeypatch.setattr(module, "compiles", lambda _: False)


class TestAgainstNumPy:
    @KINDS
    def test_outputs_are_those_of_find_equilibrium(self, kind):
        network = NETWORKS[kind]
        x = inputs_of(network, 6)
        y, info = PhaseNetwork(network, dtype=DOUBLE)(x, return_info=True, certify=True)
        state = pg.find_equilibrium(network, x.numpy())
        assert state.stable.all()
        assert info.settled.all()
        assert info.stable.all()
        assert info.residual.max() < 1e-11
        assert (info.sweeps > 0).all()
        expected = state.phases[:, list(network.outputs)]
        assert np.max(np.abs(wrapped(y.detach().flatten(1).numpy() - expected))) < 1e-9

    @KINDS
    def test_gradients_are_those_of_adjoint(self, kind):
        network = NETWORKS[kind]
        x = inputs_of(network)
        goal = np.random.default_rng(5).uniform(-0.3, 0.3, (3, len(network.outputs)))
        state = pg.find_equilibrium(network, x.numpy())
        names = tuple(network.parameters)
        exact = pg.adjoint(network, state, pg.PhaseTargets(), goal, wrt=names, frequencies="raw")
        target = torch.tensor(goal)
        found = gradients(
            PhaseNetwork(network, dtype=DOUBLE), x, lambda y: 0.5 * (y.flatten(1) - target).square().sum()
        )
        values = torch.tensor(state.phases[:, list(network.outputs)])
        torch_cost = 0.5 * (values - target).square().sum(1)
        assert np.allclose(pg.PhaseTargets().cost(values.numpy(), goal), torch_cost.numpy())
        for name in names:
            expected = getattr(exact, name).sum(axis=0)
            if name == "omega" and not network.clamps_inputs:
                # Data stands in for the frequencies of driven inputs, which adjoint counts as well.
                expected[list(network.inputs)] = 0.0
            assert np.max(np.abs(found[name].numpy() - expected)) < 1e-9

    @pytest.mark.parametrize("kind", ["one hidden layer", "convolution", "frequency inputs", "pinned"])
    def test_the_gradient_by_inputs_is_that_of_differences(self, kind):
        network = NETWORKS[kind]
        x = inputs_of(network, 2)
        found = gradients(PhaseNetwork(network, dtype=DOUBLE), x)["inputs"].numpy()
        step = 1e-5

        def cost(values):
            return np.sum(
                wrapped(pg.find_equilibrium(network, values).phases[..., list(network.outputs)]) ** 2, axis=-1
            )

        for k in range(x.shape[1]):
            ahead = step * (np.arange(x.shape[1]) == k)
            slope = (cost(x.numpy() + ahead) - cost(x.numpy() - ahead)) / (2 * step)
            assert found[:, k] == pytest.approx(slope, abs=1e-8)


class TestGradients:
    @KINDS
    def test_gradcheck(self, kind):
        """By the inputs and by every parameter, those of clamped inputs included."""
        module = PhaseNetwork(NETWORKS[kind], dtype=DOUBLE, learn=NETWORKS[kind].parameters)
        names, values = zip(*module.named_parameters(), strict=True)
        x = inputs_of(NETWORKS[kind], 2).requires_grad_()

        def function(x, *values):
            return torch.func.functional_call(module, dict(zip(names, values, strict=True)), (x,))

        assert torch.autograd.gradcheck(function, (x, *values))

    @pytest.mark.parametrize("kind", ["one hidden layer", "two hidden layers, skip", "frequency inputs", "pinned"])
    @pytest.mark.parametrize(("gradient", "order"), [("two_phase", 1), ("centred", 2)])
    def test_nudges_agree_to_their_order(self, kind, gradient, order):
        network = NETWORKS[kind]
        x = inputs_of(network)
        exact = gradients(PhaseNetwork(network, dtype=DOUBLE), x)
        errors = []
        for beta in (0.04, 0.02):
            found = gradients(PhaseNetwork(network, dtype=DOUBLE, gradient=gradient, beta=beta), x)
            errors.append([float((found[name] - exact[name]).norm() / exact[name].norm()) for name in exact])
        assert np.max(errors[1]) < (0.2 if order == 1 else 0.01)
        assert np.log2(np.divide(*errors)) == pytest.approx(order, abs=0.3)

    @pytest.mark.parametrize("gradient", ["two_phase", "centred"])
    def test_the_nudge_does_not_depend_on_the_scale_of_the_loss(self, gradient):
        network = NETWORKS["one hidden layer"]
        module, x = PhaseNetwork(network, dtype=DOUBLE, gradient=gradient), inputs_of(network)
        first, second = (gradients(module, x, lambda y, c=c: c * y.square().sum()) for c in (1.0, 1e-20))
        for name in first:
            assert torch.allclose(1e20 * second[name], first[name], rtol=1e-6, atol=1e-12)

    @pytest.mark.parametrize("gradient", ["implicit", "two_phase", "centred"])
    @pytest.mark.parametrize("kind", ["one hidden layer", "two hidden layers, skip", "convolution"])
    def test_single_precision(self, kind, gradient):
        network = NETWORKS[kind]
        x = inputs_of(network, 8)
        exact, found = (
            gradients(PhaseNetwork(network, dtype=dtype, gradient=gradient), x.to(dtype))
            for dtype in (DOUBLE, torch.float32)
        )
        for name in exact:
            assert found[name].dtype == torch.float32
            error = float((found[name].double() - exact[name]).norm() / exact[name].norm())
            assert error < {"implicit": 2e-5, "centred": 5e-4, "two_phase": 5e-3}[gradient]

    def test_what_is_not_asked_for_has_none(self):
        module = PhaseNetwork(NETWORKS["one hidden layer"], dtype=DOUBLE, learn="coupling")
        x = inputs_of(NETWORKS["one hidden layer"])
        module(x).sum().backward()
        assert module.coupling.grad is not None
        assert [name for name, p in module.named_parameters() if p.requires_grad] == ["coupling"]
        assert module.omega.grad is None
        assert x.grad is None
        with torch.no_grad():
            assert not module(x).requires_grad

    def test_frequencies_of_zero_learn_on_request(self):
        network = pg.layers(3, pg.Dense(4), pg.Dense(2))
        assert not PhaseNetwork(network).omega.requires_grad
        module = PhaseNetwork(network, dtype=DOUBLE)
        module.omega.requires_grad_()
        found = gradients(module, inputs_of(network))["omega"]
        assert torch.all(found[:3] == 0)
        assert torch.all(found[3:] != 0)
        with torch.no_grad():
            module.omega.add_(0.1)
        state = pg.find_equilibrium(module.to_network(), inputs_of(network).numpy())
        assert module(inputs_of(network)).detach().numpy() == pytest.approx(state.phases[:, -2:], abs=1e-9)

    def test_a_gradient_of_a_gradient_is_refused(self):
        network = NETWORKS["one hidden layer"]
        module, x = PhaseNetwork(network, dtype=DOUBLE), inputs_of(network).requires_grad_()
        (slope,) = torch.autograd.grad(module(x).sum(), x, create_graph=True)
        with pytest.raises(NotImplementedError, match="can be differentiated once"):
            slope.sum().backward()

    def test_transforms_of_torch_func_are_refused(self):
        module = PhaseNetwork(NETWORKS["one hidden layer"], dtype=DOUBLE)
        with pytest.raises(NotImplementedError, match="functional_call with torch"):
            torch.func.vmap(module)(inputs_of(NETWORKS["one hidden layer"])[:, None])


class TestLostSamples:
    @pytest.mark.parametrize("kind", ["one hidden layer", "two hidden layers, skip", "pinned"])
    @pytest.mark.parametrize("gradient", ["implicit", "centred", "two_phase"])
    def test_a_bad_sample_touches_no_other(self, kind, gradient):
        network = NETWORKS[kind]
        module = PhaseNetwork(network, dtype=DOUBLE, gradient=gradient, unsettled="nan")
        good = inputs_of(network, 4)
        for bad in (torch.nan, torch.inf) if kind == "one hidden layer" else (torch.nan,):
            x = torch.cat((good[:2], torch.full_like(good[:1], bad), good[2:]))
            with pytest.warns(SettlingWarning, match="1 of 5 samples did not settle"):
                y, info = module(x, return_info=True, certify=True)
            assert info.settled.tolist() == info.stable.tolist() == [True, True, False, True, True]
            assert torch.isnan(y[2]).all()
            assert torch.allclose(y[info.settled], module(good), atol=1e-11, rtol=0)
            alone = gradients(module, good)
            for loss in (lambda y: y.square().nansum(), lambda y: y.square().sum()):
                with pytest.warns(SettlingWarning):
                    found = gradients(module, x, loss)
                assert torch.all(found["inputs"][2] == 0)
                found["inputs"] = found["inputs"][info.settled]
                for name in alone:
                    assert torch.allclose(found[name], alone[name], atol=1e-9, rtol=0), name

    @pytest.mark.parametrize("kind", ["one hidden layer", "two hidden layers, skip"])
    @pytest.mark.parametrize("output", ["phases", "cosines", "both"])
    def test_outputs_of_a_sample_that_did_not_settle(self, kind, output):
        x = inputs_of(NETWORKS[kind], 3)
        x[1, 0] = torch.nan
        answers = {}
        for unsettled in ("last", "zero", "nan"):
            module = PhaseNetwork(NETWORKS[kind], dtype=DOUBLE, output=output, unsettled=unsettled)
            with pytest.warns(SettlingWarning):
                answers[unsettled] = module(x).detach()
        assert answers["last"].isfinite().all()
        assert torch.all(answers["zero"][1] == 0)
        assert answers["nan"][1].isnan().all()
        for unsettled in ("zero", "nan"):
            assert torch.equal(answers[unsettled][[0, 2]], answers["last"][[0, 2]])

    @pytest.mark.parametrize("unsettled", ["last", "zero"])
    @pytest.mark.parametrize("gradient", ["implicit", "two_phase"])
    def test_no_parameter_of_any_layer_becomes_nan(self, unsettled, gradient):
        """The second sample has no equilibrium: oscillators are driven harder than any coupling can hold."""
        torch.manual_seed(0)
        network = NETWORKS["pinned"]
        layer = PhaseNetwork(network, unsettled=unsettled, gradient=gradient, output="both", most_sweeps=64)
        model = nn.Sequential(nn.Linear(2, 2), layer, nn.Linear(4, 3))
        with torch.no_grad():
            model[0].weight.copy_(torch.eye(2))
        x = torch.tensor([[0.1, -0.2], [40.0, -40.0], [0.2, 0.1]])
        with pytest.warns(SettlingWarning, match="1 of 3 samples"):
            nn.functional.cross_entropy(model(x), torch.tensor([0, 1, 2])).backward()
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                assert parameter.grad.isfinite().all(), name
        assert layer.info.settled.tolist() == [True, False, True]
        assert int(layer.unsettled_count) == 1
        assert layer.info.residual[1] > 1

    def test_calls_are_counted_and_the_count_is_no_state(self):
        module = PhaseNetwork(NETWORKS["one hidden layer"], dtype=DOUBLE)
        assert module.info is None
        x = inputs_of(NETWORKS["one hidden layer"])
        x[1:, 0] = torch.nan
        for _ in range(2):
            with pytest.warns(SettlingWarning):
                module(x)
        assert int(module.unsettled_count) == 4
        assert "unsettled_count" not in module.state_dict()
        assert copy.deepcopy(module).info is None
        module.unsettled_count.zero_()
        module(x[:1])
        assert int(module.unsettled_count) == 0

    def test_warnings_point_at_the_line_of_the_caller(self):
        module = PhaseNetwork(NETWORKS["one hidden layer"], dtype=DOUBLE, gradient="centred", beta=50.0)
        model = nn.Sequential(nn.Identity(), module)
        x = torch.cat((inputs_of(NETWORKS["one hidden layer"], 1), torch.full((1, 4), torch.nan, dtype=DOUBLE)))
        with pytest.warns(SettlingWarning) as forward:
            y = model(x)
        with pytest.warns(SettlingWarning) as backward:
            y.square().sum().backward()
        assert [each.filename for each in (*forward, *backward)] == [__file__, __file__]

    def test_a_sample_that_cannot_lock_is_one(self):
        module = PhaseNetwork(NETWORKS["pinned"], dtype=DOUBLE, most_sweeps=200)
        x = torch.tensor([[0.1, -0.2], [40.0, -40.0]], dtype=DOUBLE)
        with pytest.warns(SettlingWarning, match="1 of 2 samples"):
            y, info = module(x, return_info=True)
        assert info.settled.tolist() == [True, False]
        assert info.residual[1] > 1
        assert y.isfinite().all()

    def test_a_batch_in_which_nothing_settles(self):
        module = PhaseNetwork(NETWORKS["one hidden layer"], dtype=DOUBLE)
        x = torch.full((3, 4), torch.nan, dtype=DOUBLE, requires_grad=True)
        with pytest.warns(SettlingWarning, match="3 of 3 samples"):
            y = module(x)
        assert torch.all(y == 0)
        y.sum().backward()
        assert torch.all(x.grad == 0)
        assert torch.all(module.coupling.grad == 0)

    def test_nudged_states_that_are_not_found_are_counted(self):
        network = NETWORKS["one hidden layer"]
        x = inputs_of(network)
        module = PhaseNetwork(network, dtype=DOUBLE, gradient="centred", beta=50.0)
        y = module(x)
        with pytest.warns(SettlingWarning, match="No gradient was found for 3 of 3 samples.*smaller beta"):
            y.square().sum().backward()
        assert torch.all(module.coupling.grad == 0)

    def test_good_samples_are_no_news(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            gradients(PhaseNetwork(NETWORKS["convolution"]), inputs_of(NETWORKS["convolution"]).float())

    def test_a_certificate_of_a_large_network_leaves_random_numbers_alone(self):
        module = PhaseNetwork.layers(3, 200, 100, 2, dtype=DOUBLE)
        before = torch.get_rng_state()
        _, info = module(inputs_of(pg.layers(3, pg.Dense(2))), return_info=True, certify=True)
        assert info.stable.all()
        assert torch.equal(torch.get_rng_state(), before)

    def test_an_empty_batch(self):
        module = PhaseNetwork(NETWORKS["one hidden layer"], dtype=DOUBLE)
        y, info = module(torch.zeros(0, 4, dtype=DOUBLE), return_info=True, certify=True)
        assert y.shape == (0, 3)
        assert info.stable.shape == (0,)
        y.sum().backward()
        assert torch.all(module.coupling.grad == 0)


class TestFates:
    """No sample is refused that has a stable equilibrium, and none depends on the others in its batch."""

    NETWORK = pg.layers(6, pg.Dense(16), pg.Dense(4), gain=2.0, output_gain=2.0)
    STIFF = pg.layers(6, pg.Dense(16), pg.Dense(4), gain=3.0, output_gain=3.0)
    DEEP = pg.layers(6, pg.Dense(12), pg.Dense(9), pg.Dense(4), gain=1.5, output_gain=1.5)

    @staticmethod
    def samples():
        return torch.tensor(np.random.default_rng(0).uniform(-1, 1, (12000, 6)), dtype=torch.float32)

    @pytest.mark.parametrize("compiled", [True, False])
    def test_a_coarse_tolerance_does_not_stop_at_saddles(self, compiled, monkeypatch):
        """These three samples pass a saddle on their way, at which the forces are below the tolerance."""
        uncompiled(monkeypatch, compiled)
        x = self.samples()[[3097, 8948, 11875]]
        _, info = PhaseNetwork(self.STIFF, tolerance=1e-4)(x, return_info=True, certify=True)
        assert info.settled.all()
        assert info.stable.all()

    @pytest.mark.parametrize("compiled", [True, False])
    def test_a_sample_does_not_depend_on_the_others(self, compiled, monkeypatch):
        uncompiled(monkeypatch, compiled)
        module, x = PhaseNetwork(self.NETWORK, tolerance=1.1e-3), self.samples()[:6000]
        whole, info = module(x, return_info=True)
        assert info.settled.all()
        order = torch.randperm(60, generator=torch.Generator().manual_seed(0)) + 940
        for rows in (torch.tensor([965]), torch.tensor([3536]), order, *order.split(7)):
            part, other = module(x[rows], return_info=True)
            assert torch.equal(other.settled, info.settled[rows])
            assert torch.equal(other.sweeps, info.sweeps[rows])
            assert torch.allclose(part, whole[rows], atol=1e-5, rtol=0)

    @pytest.mark.parametrize("compiled", [True, False])
    @pytest.mark.parametrize("network", [STIFF, DEEP])
    def test_single_precision_settles_what_double_precision_proves(self, network, compiled, monkeypatch):
        uncompiled(monkeypatch, compiled)
        x = self.samples()[:300]
        exact = PhaseNetwork(network, dtype=DOUBLE)(x.double(), return_info=True, certify=True)[1]
        assert exact.stable.all()
        for tolerance in (None, 1e-4):
            assert PhaseNetwork(network, tolerance=tolerance)(x, return_info=True)[1].settled.all()

    def test_compiled_states_are_those_of_tensors(self, monkeypatch):
        module, x = PhaseNetwork(self.STIFF, dtype=DOUBLE), self.samples()[:40].double()
        fast = module(x).detach()
        uncompiled(monkeypatch, False)
        assert np.max(np.abs(wrapped((fast - module(x).detach()).numpy()))) < 1e-9

    @pytest.mark.parametrize("gradient", ["implicit", "centred", "two_phase"])
    def test_compiled_gradients_are_those_of_tensors(self, gradient, monkeypatch):
        module, x = PhaseNetwork(self.NETWORK, dtype=DOUBLE, gradient=gradient), self.samples()[:5].double()
        fast = gradients(module, x)
        uncompiled(monkeypatch, False)
        slow = gradients(module, x)
        for name in fast:
            assert torch.allclose(fast[name], slow[name], atol=1e-6 * float(slow[name].abs().max()), rtol=0), name


class TestShapes:
    def test_what_is_read_out(self):
        network = NETWORKS["convolution last"]
        x = inputs_of(network).float()
        phases, cosines, both = (PhaseNetwork(network, output=o)(x) for o in ("phases", "cosines", "both"))
        assert phases.shape == cosines.shape == (3, 2, 2, 2)
        assert torch.equal(cosines, phases.cos())
        assert both.shape == (3, 4, 2, 2)
        assert torch.equal(both, torch.cat((phases.cos(), phases.sin()), dim=1))
        assert PhaseNetwork(NETWORKS["pinned"], output="both")(torch.zeros(2, 2)).shape == (2, 4)

    def test_images_go_in_flat_or_in_shape(self):
        module = PhaseNetwork(NETWORKS["convolution"])
        x = inputs_of(NETWORKS["convolution"]).float()
        assert torch.equal(module(x), module(x.reshape(3, 1, 4, 4)))

    @pytest.mark.parametrize("gradient", ["implicit", "two_phase", "centred"])
    def test_a_batch_of_one_has_the_gradient_that_it_adds_to_a_larger_one(self, gradient):
        layer = pg.torch.PhaseNetwork.layers(4, 20, 3, gradient=gradient, dtype=torch.float64)
        x = torch.rand(2, 4, dtype=torch.float64)
        layer(x).square().sum().backward()
        both, layer.coupling.grad = layer.coupling.grad, None
        for row in x:
            layer(row[None]).square().sum().backward()
        torch.testing.assert_close(layer.coupling.grad, both, rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("leading", [(), (3,), (2, 3), (2, 0), (1, 2, 3)])
    @pytest.mark.parametrize("output", ["phases", "both"])
    def test_leading_axes_are_those_of_a_linear_layer(self, leading, output):
        network = NETWORKS["convolution last"]
        module = PhaseNetwork(network, output=output, dtype=DOUBLE)
        flat = inputs_of(network, int(np.prod(leading)))
        x = flat.reshape(*leading, 16).requires_grad_()
        y, info = module(x, return_info=True, certify=True)
        assert y.shape == (*leading, *((2, 2, 2) if output == "phases" else (4, 2, 2)))
        assert info.settled.shape == info.residual.shape == info.sweeps.shape == info.stable.shape == leading
        assert torch.equal(y.reshape(-1, *y.shape[-3:]), module(flat))
        assert torch.equal(y, module(x.unflatten(-1, (1, 4, 4))))
        y.sum().backward()
        assert x.grad.shape == x.shape

    def test_layers_takes_numbers_and_layers(self):
        options = {"seed": 4, "gain": 0.5, "output_gain": 0.2, "field": 2.0}
        module = PhaseNetwork.layers((1, 6, 6), pg.Convolution(2, 3), 5, output="cosines", **options)
        expected = pg.layers((1, 6, 6), pg.Convolution(2, 3), pg.Dense(5), **options)
        assert module.coupling.detach().numpy() == pytest.approx(expected.coupling, rel=1e-6)
        assert module.field_strength.detach().numpy() == pytest.approx(expected.parameters["field_strength"])
        assert module.output == "cosines"
        assert repr(module) == "PhaseNetwork(1x6x6 - 2x4x4 - 5, gradient='implicit', output='cosines')"
        assert "2 inputs, 9 oscillators, 2 outputs" in repr(PhaseNetwork(NETWORKS["pinned"], gradient="centred"))

    def test_fields_and_couplings_fall_from_layer_to_layer(self):
        module = PhaseNetwork.layers((1, 6, 6), pg.Convolution(40, 3), 40, 50, seed=1).requires_grad_(False)
        layout = module._network.graph.layout
        strengths = [module.field_strength[part].unique().tolist() for part in layout.node_values]
        assert strengths == [[0.0], [50.0], [10.0], [2.0]]
        for link, part, gain in zip(layout.links, layout.couplings, (50.0, 10.0, 0.4), strict=True):
            drawn = module.coupling[part].std() * layout.fan_in(link) ** 0.5
            assert float(drawn) == pytest.approx(gain, rel=0.15)  # a fifth of the field in the last layer

    def test_data_moves_every_layer_and_all_of_it_is_stable(self):
        module = PhaseNetwork.layers(64, 80, 40, 20, dtype=DOUBLE)
        x = torch.tensor(np.random.default_rng(0).uniform(-1, 1, (50, 64)))
        y, info = module(x, return_info=True, certify=True)
        assert info.stable.all()
        assert 0.03 < y.detach().std(0).mean().item() < 1.5


class TestAmongModules:
    @pytest.mark.parametrize("gradient", ["implicit", "centred"])
    def test_a_sequence_trains(self, gradient):
        torch.manual_seed(0)
        layer = PhaseNetwork.layers(4, 8, 3, gradient=gradient, output="both")
        model = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), layer, nn.Linear(6, 2))
        x = torch.randn(64, 6)
        y = (x[:, 0] > x[:, 1]).long()
        before = [p.detach().clone() for p in model.parameters()]
        optimiser = torch.optim.Adam(model.parameters(), lr=0.03)
        losses = []
        for _ in range(40):
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert losses[-1] < 0.2 < 0.6 < losses[0]
        moved = [not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)]
        assert sum(moved) == len(moved) - 1  # all but omega

    def test_state_dict_and_to_network(self):
        network = NETWORKS["one hidden layer"]
        module = PhaseNetwork(network, dtype=DOUBLE)
        assert module.to_network() == network
        with torch.no_grad():
            module.coupling.mul_(0.5)
        other = PhaseNetwork(network, dtype=DOUBLE)
        assert list(other.state_dict()) == ["coupling", "omega", "field_strength", "field_phase"]
        other.load_state_dict(module.state_dict())
        assert np.array_equal(other.to_network().coupling, 0.5 * network.coupling)
        x = inputs_of(network)
        assert torch.equal(other(x), module(x))
        with pytest.raises(RuntimeError, match="size mismatch for coupling"):
            PhaseNetwork(NETWORKS["pinned"]).load_state_dict({**module.state_dict()}, strict=False)

    def test_dtype_moves_with_to(self):
        module = PhaseNetwork(NETWORKS["one hidden layer"]).to(DOUBLE)
        assert module(inputs_of(NETWORKS["one hidden layer"])).dtype == DOUBLE
        assert PhaseNetwork(NETWORKS["one hidden layer"]).coupling.dtype == torch.get_default_dtype()

    def test_copies_work_and_are_their_own(self):
        network, file = NETWORKS["two hidden layers, skip"], io.BytesIO()
        module, x = PhaseNetwork(network, dtype=DOUBLE), inputs_of(network)
        y = module(x)
        torch.save(module, file)
        file.seek(0)
        for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), torch.load(file, weights_only=False)):
            assert torch.equal(other(x), y)
            with torch.no_grad():
                other.coupling.mul_(0.9)
            assert not torch.equal(other(x), y)
        assert torch.equal(module(x), y)

    @pytest.mark.slow
    def test_a_pickle_works_where_nothing_is_registered_yet(self, tmp_path):
        network = NETWORKS["pinned"]
        module, x = PhaseNetwork(network, dtype=DOUBLE), inputs_of(network)
        place = tmp_path / "module.pt"
        torch.save((module, x, module(x).detach()), place)
        code = (
            f"import torch; m, x, y = torch.load({str(place)!r}, weights_only=False); "
            "(m(x) - y).sum().backward(); print(torch.equal(m(x), y), bool(m.coupling.grad.any()))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["True", "True"]

    def test_the_graph_outlives_its_module(self):
        x = torch.zeros(2, 3, dtype=DOUBLE, requires_grad=True)
        y = PhaseNetwork(pg.layers(3, pg.Dense(7), pg.Dense(2), seed=9), dtype=DOUBLE)(x)
        y.sum().backward()
        assert x.grad.abs().sum() > 0

    def test_autocast_does_not_reach_inside(self):
        module = PhaseNetwork(NETWORKS["one hidden layer"])
        x = inputs_of(NETWORKS["one hidden layer"]).float()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(module(x), PhaseNetwork(NETWORKS["one hidden layer"])(x))
            y = module(x)
        assert torch.equal(y, module(x))

    @pytest.mark.parametrize("kind", ["one hidden layer", "convolution"])
    def test_autocast_hands_on_what_it_computed(self, kind):
        """A layer before leaves bfloat16, which is cast to the precision of this one; gradients pass back."""
        torch.manual_seed(0)
        network = NETWORKS[kind]
        width = len(network.inputs)
        before, module = nn.Linear(width, width), PhaseNetwork(network)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            between = before(inputs_of(network).float())
            y = module(between)
        assert between.dtype == torch.bfloat16
        assert y.dtype == torch.float32
        assert torch.equal(y, module(between.float()))
        y.square().sum().backward()
        assert before.weight.grad.isfinite().all()
        assert before.weight.grad.any()

    @pytest.mark.slow
    def test_two_processes_have_the_gradient_of_one(self, tmp_path):
        from process_functions import distributed_gradient

        network = NETWORKS["one hidden layer"]
        module, x = PhaseNetwork(network, dtype=DOUBLE), inputs_of(network, 6)
        module(x).square().mean().backward()
        torch.multiprocessing.spawn(distributed_gradient, (network, x, str(tmp_path)), nprocs=2)
        for rank in range(2):
            found = torch.load(tmp_path / f"{rank}.pt")
            for name, gradient in found.items():
                assert torch.allclose(gradient, module.get_parameter(name).grad, atol=1e-12, rtol=0), name
            assert set(found) == {"coupling", "omega", "field_strength", "field_phase"}


class TestCompiler:
    @pytest.mark.parametrize("gradient", ["implicit", "centred"])
    def test_one_graph(self, gradient):
        torch.compiler.reset()
        network = NETWORKS["convolution"]
        layer = PhaseNetwork(network, dtype=DOUBLE, gradient=gradient, output="cosines")
        model = nn.Sequential(nn.Linear(16, 16, dtype=DOUBLE), layer, nn.Linear(2, 2, dtype=DOUBLE))
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        for count in (3, 5):
            x = inputs_of(network, count)
            mine, theirs = gradients(compiled, x), gradients(model, x)
            assert len(mine) == 9
            for (_, first), (_, second) in zip(mine.items(), theirs.items(), strict=True):
                assert torch.allclose(first, second, atol=1e-12, rtol=0)

    def test_info_and_warnings_survive(self):
        torch.compiler.reset()
        module = PhaseNetwork(NETWORKS["one hidden layer"], dtype=DOUBLE)
        compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
        x = inputs_of(NETWORKS["one hidden layer"])
        x[1, 0] = torch.nan
        with pytest.warns(SettlingWarning, match="1 of 3"):
            _, info = compiled(x, return_info=True, certify=True)
        assert info.stable.tolist() == [True, False, True]

    def test_opcheck(self):
        from phasegrad.torch._operators import certify, settle, settle_backward

        network = NETWORKS["one hidden layer"]
        module, x = PhaseNetwork(network, dtype=DOUBLE), inputs_of(network, 2).requires_grad_()
        parameters = module.coupling, module.omega, module.field_strength, module.field_phase
        plain = module._topology, "implicit", 0.01, 0.0, 400
        torch.library.opcheck(settle, (x, *parameters, *plain))
        with torch.no_grad():
            y, *state, _, _ = settle(x, *parameters, *plain)
            torch.library.opcheck(certify, (x, *parameters, *state, plain[0]))
            given = torch.ones_like(y), x.detach(), *(p.detach() for p in parameters), *state, *plain[:3], [True] * 5
            torch.library.opcheck(settle_backward, given)


class TestRefusals:
    @pytest.mark.parametrize(
        ("x", "error", "words"),
        [
            (torch.zeros(3, 5), ValueError, r"takes inputs of shape \(..., 16\) or \(..., 1, 4, 4\). Got \(3, 5\)"),
            (torch.zeros(()), ValueError, r"Got \(\)"),
            (torch.zeros(2, 4, 4), ValueError, r"Got \(2, 4, 4\)"),
            (torch.zeros(2, 16, dtype=torch.long), TypeError, "float32 or float64. Got int64: use x.to"),
            (torch.zeros(2, 16, dtype=torch.bfloat16), TypeError, "float32 or float64. Got bfloat16"),
            (torch.zeros(2, 16, dtype=DOUBLE), TypeError, "parameters of float32 .* the same. Got float64"),
            (torch.zeros(2, 16, device="meta"), ValueError, "inputs lie on meta and the parameters .* on cpu"),
            (np.zeros((2, 16)), TypeError, "takes a tensor. Got ndarray"),
        ],
    )  # fmt: skip
    def test_inputs(self, x, error, words):
        with pytest.raises(error, match=words):
            PhaseNetwork(NETWORKS["convolution"])(x)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"gradient": "adjoint"}, "'gradient' parameter of PhaseNetwork must be one of 'implicit'"),
            ({"output": "sines"}, "'output' parameter of PhaseNetwork must be one of 'phases'"),
            ({"unsettled": "drop"}, "'unsettled' parameter of PhaseNetwork must be one of 'last'"),
            ({"beta": 0}, "'beta' parameter of PhaseNetwork must be a float greater than 0"),
            ({"tolerance": -1.0}, "'tolerance' parameter"),
            ({"most_sweeps": 0}, "'most_sweeps' parameter"),
            ({"learn": ["coupling", "weight"]}, "which are omega, coupling, field_strength, field_phase. Got 'weight'"),
        ],
    )  # fmt: skip
    def test_options(self, options, words):
        with pytest.raises(ValueError, match=words):
            PhaseNetwork(NETWORKS["one hidden layer"], **options)

    @pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
    def test_few_digits(self, kind):
        with pytest.raises(TypeError, match=r"must be of float32 or float64: .* too few digits"):
            PhaseNetwork(NETWORKS["pinned"], dtype=kind)
        with pytest.raises(TypeError, match="must be of float32 or float64"):
            PhaseNetwork(NETWORKS["pinned"]).to(kind)(torch.zeros(1, 2, dtype=kind))

    def test_networks(self):
        with pytest.raises(TypeError, match=r"PhaseNetwork takes a Network.*PhaseNetwork.layers\(784, 100, 10\)"):
            PhaseNetwork(784)
        with pytest.raises(ValueError, match="this one has no inputs"):
            PhaseNetwork(pg.networks.ring(4))
        with pytest.raises(ValueError, match="this one has no outputs"):
            PhaseNetwork(pg.Network([(0, 1)], 1.0, [0, 0], inputs=[0]))
        with pytest.raises(ValueError, match="PyTorch takes networks of sine coupling"):
            PhaseNetwork(NETWORKS["pinned"].replace(interaction=pg.terms.OddSeries((1.0, 0.2))))
        with pytest.raises(ValueError, match="fields or clamped inputs hold, and this network has neither"):
            PhaseNetwork.layers(3, 4, input_mode="frequency", field=0)
        with pytest.raises(ValueError, match="'size' parameter of Dense"):
            PhaseNetwork.layers(3, 0)

    def test_a_certificate_without_a_place_for_it(self):
        with pytest.raises(ValueError, match="ask for it with return_info=True as well"):
            PhaseNetwork(NETWORKS["pinned"])(torch.zeros(1, 2), certify=True)

    def test_couplings_that_the_network_does_not_allow(self):
        module = PhaseNetwork(NETWORKS["pinned"])
        with torch.no_grad():
            module.coupling.neg_()
        with pytest.raises(ValueError, match="signed=True"):
            module.to_network()

    @pytest.mark.parametrize(("count", "words"), [(64, "About 32 would fit"), (1, "One sample alone is too much")])
    def test_memory_that_runs_out_is_said_in_words(self, count, words, monkeypatch):
        from phasegrad.tensors import _memory
        from phasegrad.torch import _operators

        def full(*_):
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

        monkeypatch.setattr(_operators, "free_states", full)
        monkeypatch.setattr(_memory, "free_bytes", lambda _: 2**40)
        module = PhaseNetwork(NETWORKS["one hidden layer"])
        with pytest.raises(torch.cuda.OutOfMemoryError, match=f"A batch of {count} samples .* of cpu. {words}"):
            module(torch.zeros(count, 4))

    def test_how_many_samples_fit_follows_the_network(self, monkeypatch):
        from phasegrad.tensors import _memory
        from phasegrad.torch import _operators

        small, large = (PhaseNetwork.layers(4, n, 2)._structure for n in (10, 1000))
        each = [_memory.bytes_per_sample(s, 4, 0) for s in (small, large)]
        assert 50 < each[1] / each[0] < 100
        assert _memory.bytes_per_sample(large, 8, 2) > 2 * each[1]
        monkeypatch.setattr(
            _operators, "free_states", lambda *_: (_ for _ in ()).throw(torch.cuda.OutOfMemoryError(""))
        )
        monkeypatch.setattr(_memory, "free_bytes", lambda _: 20 * each[1])
        with pytest.raises(torch.cuda.OutOfMemoryError, match="About 16 would fit"):
            PhaseNetwork.layers(4, 1000, 2)(torch.zeros(100, 4))


class TestImport:
    def test_it_comes_when_asked_for(self):
        code = (
            "import sys, phasegrad as pg; print('torch' in dir(pg), 'torch' in sys.modules); "
            "pg.torch.PhaseNetwork; print('torch' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["True", "False", "True"]

    def test_without_pytorch_it_says_how_to_install_it(self):
        code = (
            "import sys; sys.modules['torch'] = None\n"
            "import phasegrad as pg\n"
            "assert 'torch' not in dir(pg)\n"
            "try:\n    pg.torch\nexcept ImportError as error:\n    print(error)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == (
            "phasegrad.torch needs PyTorch, which is not installed. Install what is missing from a clone of the "
            "repository: pip install '.[torch]'."
        )


def test_the_layer_learns_among_its_neighbours():
    from phasegrad_bench.layer import run

    mine, theirs = (run(kind, 0, epochs=2) for kind in ("phase", "linear + tanh"))
    assert mine["accuracy"] > theirs["accuracy"] - 0.05
    assert mine["unsettled"] == 0
    assert not mine["nan"]


def test_the_benchmark_compares_what_it_says():
    from phasegrad_bench._tensors import tensors

    figures = tensors(rounds=1, images=256, hidden=20)
    assert set(figures) == {"layer_over_bare", "centred_over_bare", "batch_over_torch"}
    # An epoch of so few images is shorter than what a busy machine adds to the trainings it is the difference of.
    assert min(figures["layer_over_bare"], figures["centred_over_bare"]) > 0
    assert np.isfinite(figures["batch_over_torch"])
