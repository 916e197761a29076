import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import phasegrad as pg


def test_batches_have_one_cost_each():
    objective = pg.PhaseTargets()
    phases = np.zeros((4, 3, 2))
    assert objective.cost(phases, [1.0, 2.0]).shape == (4, 3)
    assert objective.hessian(phases, [1.0, 2.0]).shape == (4, 3, 2, 2)
    np.testing.assert_array_equal(objective.cost(phases, [1.0, 2.0]), 2.5)


def test_outputs_may_be_chosen_apart_from_the_networks():
    network = pg.ring(5, outputs=[2])
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
        (pg.PhaseTargets([1, 2]), [0.1], "one phase per output"),
        (pg.PhaseTargets([1]), [np.nan], "'target' parameter of PhaseTargets must be finite"),
    ],
)
def test_wrong_outputs_and_targets_are_refused(objective, target, message):
    network = pg.ring(4)
    with pytest.raises(ValueError, match=message):
        pg.adjoint(network, pg.find_equilibrium(network), objective, target)


class TestClasses:
    def test_the_papers_pair_decides_by_the_largest_cosine_with_ties_to_the_lower(self):
        pair = pg.PaperPair()
        assert pair.decide([[0.1, -0.3], [0.3, -0.1], [-0.2, 0.2]]).tolist() == [0, 1, 0]
        assert pair.decide([2 * np.pi, 0.5]).item() == 0  # a full turn away is as good as zero
        assert pair.table(2).tolist() == [[-0.2, 0.2], [0.2, -0.2]]

    @given(st.integers(2, 5), st.integers(0, 2**31))
    def test_the_nearest_target_is_the_most_negative_phase(self, n_outputs, seed):
        phases = np.random.default_rng(seed).uniform(-1, 1, (7, n_outputs))
        np.testing.assert_array_equal(pg.NearestTarget().decide(phases), np.argmin(phases, axis=1))

    def test_gradients_take_class_numbers(self):
        network = pg.layered(2, 5, 2, seed=0)
        equilibrium = pg.find_equilibrium(network, [[0.5, -0.5], [0.1, 0.2]])
        by_label = pg.two_phase(network, equilibrium, pg.PaperPair(0.3), [0, 1], beta=0.1)
        by_phase = pg.two_phase(network, equilibrium, pg.PhaseTargets(), [[-0.3, 0.3], [0.3, -0.3]], beta=0.1)
        np.testing.assert_array_equal(by_label.omega, by_phase.omega)
        assert pg.check_gradients(network, equilibrium, pg.NearestTarget(), [0, 1]).cosine["omega"].min() > 1 - 1e-8

    @pytest.mark.parametrize("labels", [[0, 2], [-1, 0], [0.5, 1.0], ["a", "b"]])
    def test_labels_outside_the_outputs_are_refused(self, labels):
        network = pg.layered(2, 5, 2)
        equilibrium = pg.find_equilibrium(network, np.zeros((2, 2)))
        with pytest.raises(ValueError, match="must be class numbers from 0 to 1"):
            pg.adjoint(network, equilibrium, pg.PaperPair(), labels)

    def test_a_margin_must_be_positive(self):
        with pytest.raises(ValueError, match="'margin' parameter of PaperPair"):
            pg.PaperPair(0)
