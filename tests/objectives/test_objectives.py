import numpy as np
import pytest
from hypothesis import given, strategies as st

import phasegrad as pg


def test_batches_have_one_cost_each():
    objective = pg.PhaseTargets()
    phases = np.zeros((4, 3, 2))
    assert objective.cost(phases, [1.0, 2.0]).shape == (4, 3)
    assert objective.hessian(phases, [1.0, 2.0]).shape == (4, 3, 2, 2)
    np.testing.assert_array_equal(objective.cost(phases, [1.0, 2.0]), 2.5)


def test_outputs_may_be_chosen_apart_from_the_networks():
    network = pg.networks.ring(5, outputs=[2])
    assert pg.PhaseTargets().nodes(network) == (2,)
    assert pg.PhaseTargets([3, 4]).nodes(network) == (3, 4)
    equilibrium = pg.find_equilibrium(network)
    gradient = pg.adjoint(network, equilibrium, pg.PhaseTargets([3, 4]), [0.1, 0.2])
    assert gradient.cost == pytest.approx(0.5 * (0.01 + 0.04))


@pytest.mark.parametrize(
    ("objective", "target", "message"),
    [
        (pg.PhaseTargets(), [0.1], "This network has no outputs"),
        (pg.PhaseTargets([0]), [0.1], "must be oscillators that move"),
        (pg.PhaseTargets([]), [], "at least one"),
        (pg.PhaseTargets([9]), [0.1], "names node 9"),
        (pg.PhaseTargets([1, 2]), [0.1], "one per output"),
        (pg.PhaseTargets([1]), [np.nan], "'target' parameter of PhaseTargets must be finite"),
    ],
)
def test_wrong_outputs_and_targets_are_refused(objective, target, message):
    network = pg.networks.ring(4)
    with pytest.raises(ValueError, match=message):
        pg.adjoint(network, pg.find_equilibrium(network), objective, target)


class TestCostsThatCannotBeUsed:
    """In every method, under a nudge and in training: a sentence before anything is computed from them."""

    WRONG = [
        (lambda phases: np.full(phases.shape[:-1], np.nan), r"Own.cost must return finite numbers. Got nan for output"),
        (lambda phases: phases, r"Own.cost must return shape \(B,\) for output phases .*\(B, 2\). Got \(B, 2\)"),
        (lambda phases: 1.0, r"Own.cost must return shape \(B,\) .* Got \(\): keep the leading axes"),
        (lambda phases: 1j * phases[..., 0], r"Own.cost must return real numbers for real phases. Got complex"),
        (lambda phases: None, r"Own.cost must return an array of numbers. Got None"),
        (lambda phases: [[1.0], [1.0, 2.0]], r"Own.cost must return an array of numbers. Got \[\[1"),
    ]

    @pytest.mark.parametrize(("answer", "message"), WRONG)
    def test_wrong_answers_are_refused(self, answer, message):
        own = type("Own", (pg.Cost,), {"cost": lambda self, phases, target: answer(phases)})()
        network = pg.layered(2, 3, 2)
        equilibrium = pg.find_equilibrium(network, [[0.1, 0.2], [0.3, -0.2]])
        methods = (
            pg.adjoint,
            pg.two_phase,
            pg.centred,
            pg.gradients.holomorphic,
            pg.gradients.finite_difference,
            pg.gradients.autograd,
        )
        for method in (*methods, pg.gradients.suggest_beta, pg.check_gradients):
            with pytest.raises(ValueError, match=message):
                method(network, equilibrium, own, [0.1, 0.2])
        with pytest.raises(ValueError, match=message):
            pg.find_equilibrium(network, [0.1, 0.2], nudge=pg.Nudge(own, [0.1, 0.2], 0.1))
        with pytest.raises(ValueError, match=message):
            pg.train(network, (np.zeros((3, 2)), np.zeros((3, 2))), objective=own, learn="omega")

    @pytest.mark.parametrize(
        ("name", "answer", "message"),
        [
            ("force", lambda phases: phases[..., 0], r"Own.force must return shape \(B, 2\)"),
            ("force", lambda phases: phases * np.inf, r"Own.force must return finite numbers"),
            ("hessian", lambda phases: phases, r"Own.hessian must return shape \(B, 2, 2\)"),
            ("hessian", lambda phases: 1j * phases[..., None] * np.eye(2), r"Own.hessian must return real numbers"),
        ],
    )
    def test_wrong_forces_and_hessians_are_refused(self, name, answer, message):
        own = type("Own", (pg.PhaseTargets,), {name: lambda self, phases, target: answer(phases)})()
        network = pg.layered(2, 3, 2)
        with pytest.raises(ValueError, match=message):
            pg.adjoint(network, pg.find_equilibrium(network, [0.1, 0.2]), own, [0.1, 0.2])

    @pytest.mark.parametrize("factor", [-1.0, 0.5, 2.0])
    def test_a_force_that_is_not_the_slope_of_the_cost_is_refused(self, factor):
        class Own(pg.PhaseTargets):
            def force(self, phases, target):
                return factor * super().force(phases, target)

        network, target = pg.layered(2, 3, 2), np.full((5, 2), 0.3)
        message = "Own.force must be minus the slope of its cost. Got .* Leave 'force' out to use these"
        with pytest.raises(ValueError, match=message):
            pg.train(network, (np.zeros((5, 2)), target), objective=Own(), learn="omega")
        with pytest.raises(ValueError, match=message):
            pg.adjoint(network, pg.find_equilibrium(network, [0.1, 0.2]), Own(), [0.1, 0.2])

    def test_that_is_noticed_of_small_costs_as_well(self):
        """The sum of weighted costs has parts of any size: what counts is the force beside the cost."""

        class Own(pg.PhaseTargets):
            def cost(self, phases, target):
                return 1e-4 * super().cost(phases, target)

            def force(self, phases, target):
                return -1e-4 * super().force(phases, target)

        network = pg.layered(2, 3, 2)
        with pytest.raises(ValueError, match=r"Own\.force must be minus the slope of its cost"):
            pg.adjoint(network, pg.find_equilibrium(network, [0.1, 0.2]), Own(), [0.8, -0.9])

    def test_a_force_with_kinks_is_taken(self):
        class Hinge(pg.Cost):
            def cost(self, phases, target):
                return np.max(np.maximum(0, phases - target), axis=-1)

            def force(self, phases, target):
                gap = phases - target
                return -1.0 * (np.argmax(gap, axis=-1)[..., None] == np.arange(gap.shape[-1])) * (gap > 0)

        network, target = pg.layered(2, 3, 2), np.full((5, 2), 0.1)
        pg.train(network, (np.zeros((5, 2)), target), objective=Hinge(), learn="omega", epochs=1)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"bounds": {"omega": 3}}, "'bounds' of the plan must be a lower and a higher number for 'omega'. Got 3"),
            ({"bounds": {"omega": (1, 2, 3)}}, "a lower and a higher number"),
            ({"bounds": {"omega": ("a", "b")}}, "a lower and a higher number"),
            ({"bounds": None}, "'bounds' of the plan must be a mapping such as .* Got None"),
            ({"bounds": ("a", "b")}, "must be a mapping"),
            ({"accept": 0.1}, "'accept' of the plan must be two numbers.* Got 0.1"),
            ({"accept": (0.1,)}, "must be two numbers"),
            ({"accept": (0.1, 0.2, 0.3)}, "must be two numbers"),
            ({"record": 5}, "'record' parameter of the plan must be one of 'condition'.* Got 5"),
            ({"learn": [("omega",)]}, "'learn' of the plan must be names of parameters"),
            ({"learn": {"omega": -0.5}}, r"learn\['omega'\].* Got -0\.5"),
            ({"learning_rate": -1}, "'learning_rate' parameter of the plan must be a number, 0 or more. Got -1"),
            ({"objective": pg.CosineCrossEntropy}, r"must be a cost.*\(a class: call it\)"),
        ],
    )
    def test_plans_of_the_wrong_form_are_refused(self, options, message):
        with pytest.raises((ValueError, TypeError), match=message):
            pg.Plan(**options)

    @pytest.mark.parametrize("objective", [pg.PhaseTargets, None, "squares", lambda phases, target: 0.0])
    def test_what_is_no_cost_is_refused(self, objective):
        network = pg.layered(2, 3, 2)
        with pytest.raises(TypeError, match=r"adjoint takes a Network, then an Equilibrium, then an objective such as"):
            pg.adjoint(network, pg.find_equilibrium(network, [0.1, 0.2]), objective, [0.1, 0.2])
        with pytest.raises(TypeError, match=r"'nudge' parameter must be a Nudge\(objective, target, beta\)"):
            pg.find_equilibrium(network, [0.1, 0.2], nudge=pg.Nudge(objective, [0.1, 0.2], 0.1))

    @pytest.mark.parametrize("gradient", ["adjoint", "centred", "two_phase"])
    def test_a_force_that_is_not_finite_for_one_sample_costs_that_sample_alone(self, gradient):
        class Edge(pg.PhaseTargets):
            def force(self, phases, target):
                return np.where(phases[..., :1] > 0.11, np.nan, super().force(phases, target))

        network = pg.layered(2, 5, 2, seed=0)
        x = np.random.default_rng(0).uniform(-1, 1, (8, 2))
        beyond = pg.find_equilibrium(network, x).phases[:, network.outputs[0]] > 0.11
        assert beyond.sum() == 1
        options = {"learn": "omega", "epochs": 1, "batch_size": 8, "lock_floor": None, "gradient": gradient}
        whole = pg.train(network, (x, np.full((8, 2), 0.1)), objective=Edge(), **options)
        assert whole.history.skipped[0, -1] == 1
        rest = pg.train(network, (x[~beyond], np.full((7, 2), 0.1)), objective=Edge(), **options)
        np.testing.assert_allclose(whole.network.omega, rest.network.omega, atol=1e-6)

    def test_many_outputs_do_not_make_a_matrix_to_check_it(self):
        network = pg.networks.ring(5000, outputs=tuple(range(1, 5000)))

        class Own(pg.PhaseTargets):
            def hessian(self, phases, target):
                raise MemoryError

        gradient = pg.adjoint(network, pg.find_equilibrium(network), Own(), np.full(4999, 0.1))
        assert np.all(np.isfinite(gradient.omega))


class TestClasses:
    def test_the_papers_pair_decides_by_the_largest_cosine_with_ties_to_the_lower(self):
        pair = pg.objectives.PaperPair()
        assert pair.decide([[0.1, -0.3], [0.3, -0.1], [-0.2, 0.2]]).tolist() == [0, 1, 0]
        assert pair.decide([2 * np.pi, 0.5]).item() == 0  # a full turn away is as good as zero
        assert pair.table(2).tolist() == [[-0.2, 0.2], [0.2, -0.2]]

    @given(st.integers(2, 5), st.integers(0, 2**31))
    def test_the_nearest_target_is_the_most_negative_phase(self, n_outputs, seed):
        phases = np.random.default_rng(seed).uniform(-1, 1, (7, n_outputs))
        np.testing.assert_array_equal(pg.objectives.NearestTarget().decide(phases), np.argmin(phases, axis=1))

    def test_gradients_take_class_numbers(self):
        network = pg.layered(2, 5, 2, seed=0)
        equilibrium = pg.find_equilibrium(network, [[0.5, -0.5], [0.1, 0.2]])
        by_label = pg.two_phase(network, equilibrium, pg.objectives.PaperPair(0.3), [0, 1], beta=0.1)
        by_phase = pg.two_phase(network, equilibrium, pg.PhaseTargets(), [[-0.3, 0.3], [0.3, -0.3]], beta=0.1)
        np.testing.assert_array_equal(by_label.omega, by_phase.omega)
        assert (
            pg.check_gradients(network, equilibrium, pg.objectives.NearestTarget(), [0, 1]).cosine["omega"].min()
            > 1 - 1e-8
        )

    @pytest.mark.parametrize("labels", [[0, 2], [-1, 0], [0.5, 1.0], ["a", "b"]])
    def test_labels_outside_the_outputs_are_refused(self, labels):
        network = pg.layered(2, 5, 2)
        equilibrium = pg.find_equilibrium(network, np.zeros((2, 2)))
        with pytest.raises(ValueError, match="must be class numbers from 0 to 1"):
            pg.adjoint(network, equilibrium, pg.objectives.PaperPair(), labels)

    def test_a_margin_must_be_positive(self):
        with pytest.raises(ValueError, match="'margin' parameter of PaperPair"):
            pg.objectives.PaperPair(0)
