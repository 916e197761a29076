import dataclasses
import re

import numpy as np
import pytest

import phasegrad as pg

PATH = [[0, 1], [1, 2]]
SLOPE = np.linspace(-0.1, 0.1, 5)


def test_edges_are_stored_sorted_with_everything_that_belongs_to_them():
    network = pg.Network([[2, 1], [0, 1]], [5.0, 7.0], [0, 0, 0], coupling_reverse=[50.0, 70.0])
    assert network.edges.tolist() == [[0, 1], [1, 2]]
    assert network.coupling.tolist() == [7.0, 50.0]
    assert network.coupling_reverse.tolist() == [70.0, 5.0]


def test_a_network_is_frozen_and_its_arrays_are_read_only():
    omega = np.zeros(3)
    network = pg.Network(PATH, 1.0, omega)
    omega[0] = 1.0
    assert network.omega[0] == 0.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        network.omega = omega
    with pytest.raises(ValueError, match="read-only"):
        network.coupling[0] = 2.0


def test_replace_makes_the_next_network_and_leaves_the_first():
    network = pg.Network(PATH, 1.0, [0, 0, 0])
    changed = network.replace(omega=[1, 2, 3])
    assert changed.omega.tolist() == [1, 2, 3]
    assert network.omega.tolist() == [0, 0, 0]
    assert changed != network
    assert changed.replace(omega=network.omega) == network
    with pytest.raises(TypeError, match="no field 'omegas'"):
        network.replace(omegas=[1, 2, 3])


def test_the_gauge_follows_from_fields_and_clamps():
    pinned = pg.Network(PATH, 1.0, [0, 0, 0], reference=1)
    assert pinned.pinned
    assert pinned.held.tolist() == [1]
    assert pinned.free.tolist() == [0, 2]
    field = pinned.replace(field_strength=[0, 0, 1.0])
    assert not field.pinned
    assert field.held.size == 0
    clamped = pinned.replace(inputs=[0, 2], input_mode="phase")
    assert clamped.held.tolist() == [0, 2]
    assert clamped.free.tolist() == [1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_with_their_place(bad):
    with pytest.raises(ValueError, match=r"'omega' parameter of Network must be finite. Got .* at index \[1\]"):
        pg.Network(PATH, 1.0, [0, bad, 0])
    with pytest.raises(ValueError, match="'coupling' parameter of Network must be finite"):
        pg.Network(PATH, [1.0, bad], [0, 0, 0])
    with pytest.raises(ValueError, match="'field_strength' parameter of Network must be finite"):
        pg.Network(PATH, 1.0, [0, 0, 0], field_strength=[bad, 1, 1])


@pytest.mark.parametrize(
    ("edges", "coupling", "message"),
    [
        ([[0, 1], [1, 1]], 1.0, "Oscillator 1 is coupled to itself"),
        ([[0, 1], [1, 2], [1, 0]], 1.0, r"edge \(0, 1\) is given twice"),
        ([[0, 1], [1, 3]], 1.0, "names node 3, but the network has nodes 0 to 2"),
        ([[0, 1], [1, -1]], 1.0, "names node -1"),
        ([[0.0, 1.0]], 1.0, "must be an array of node numbers"),
        ([[0, 1], [1]], 1.0, "must be an array of node numbers"),
        ([0, 1], 1.0, r"shape \(E, 2\)"),
        (PATH, [1.0, -1.0], r"edge \(1, 2\) must be positive. Got -1"),
        (PATH, [0.0, 1.0], r"edge \(0, 1\) must be positive. Got 0"),
        (PATH, [1.0, 1.0, 1.0], r"must have shape \(2,\)"),
        (PATH, "strong", "must be an array of real numbers"),
    ],
)
def test_wrong_edges_are_refused(edges, coupling, message):
    with pytest.raises(ValueError, match=message):
        pg.Network(edges, coupling, [0, 0, 0])


def test_negative_couplings_are_allowed_when_asked_for():
    assert pg.Network(PATH, [1.0, -1.0], [0, 0, 0], signed=True).coupling[1] == -1.0
    with pytest.raises(ValueError, match="negative strengths need signed=True"):
        pg.Network(PATH, 1.0, [0, 0, 0], field_strength=[1, -1, 0])


def test_one_way_coupling_is_allowed_but_an_edge_that_does_nothing_is_not():
    one_way = pg.Network(PATH, [0.0, 0.0], [0, 0, 0], coupling_reverse=[1.0, 1.0])
    assert not one_way.reciprocal
    with pytest.raises(ValueError, match=r"must be positive. Got 0, 0"):
        pg.Network(PATH, [0.0, 1.0], [0, 0, 0], coupling_reverse=[0.0, 1.0])


def test_a_disconnected_graph_is_refused_and_its_parts_are_named():
    with pytest.raises(ValueError, match=r"disconnected: it falls into the 2 parts \{0, 1\} and \{2, 3\}"):
        pg.Network([[0, 1], [2, 3]], 1.0, np.zeros(4))
    many = [[k, k + 1] for k in range(0, 20, 2)]
    with pytest.raises(ValueError, match="and 6 more"):
        pg.Network(many, 1.0, np.zeros(20))


def test_parts_that_a_field_or_clamp_ties_down_may_be_separate():
    pg.Network([[0, 1], [2, 3]], 1.0, np.zeros(4), field_strength=[1, 0, 0, 1])
    with pytest.raises(ValueError, match=r"\{0, 1\} and \{2, 3\}.*a field or a clamped input"):
        pg.Network([[0, 1], [2, 3]], 1.0, np.zeros(4), field_strength=[1, 0, 0, 0])
    with pytest.raises(ValueError, match="zero everywhere"):
        pg.Network(PATH, 1.0, np.zeros(3), field_strength=0.0)


def test_an_edge_of_strength_zero_connects_nothing():
    with pytest.raises(ValueError, match="disconnected"):
        pg.Network(PATH, [1.0, 0.0], np.zeros(3), signed=True)


def test_one_oscillator_may_lead_all_others_but_two_may_not():
    # 1 acts on 0 and on 2, and nothing acts on 1: the others turn at its frequency, whichever is the reference.
    for reference in range(3):
        led = pg.Network(PATH, [1.0, 0.0], [0.1, 0.3, 0.2], coupling_reverse=[0.0, 1.0], reference=reference)
        found = pg.find_equilibrium(led)
        assert found.stable
        assert found.drift + led.omega.mean() == pytest.approx(0.3, abs=1e-12)
    # 0 and 2 act on 1 and nothing acts on them: two frequencies that nothing brings together.
    with pytest.raises(ValueError, match=r"disconnected.*not every part is reached from any one oscillator"):
        pg.Network(PATH, [0.0, 1.0], np.zeros(3), coupling_reverse=[1.0, 0.0])


def test_a_grounded_reference_must_act_on_all_others():
    # 1 acts on 0 and on 2, but nothing acts on 1, so the reference 0, held by force, cannot fix its phase.
    with pytest.raises(ValueError, match=r"disconnected.*not every part is reached from the reference"):
        pg.Network(PATH, [1.0, 0.0], np.zeros(3), coupling_reverse=[0.0, 1.0], grounded=True)
    with pytest.raises(TypeError, match=r"'grounded' parameter of Network must be True or False\. Got 1"):
        pg.Network(PATH, 1.0, np.zeros(3), grounded=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outputs": [0]}, "Node 0 is an output and the reference"),
        ({"outputs": [3]}, "'outputs' parameter of Network names node 3"),
        ({"outputs": [1, 1]}, "names a node twice"),
        ({"outputs": [1.5]}, "must be a list of node numbers"),
        ({"reference": []}, "'reference' parameter of Network must be a whole number"),
        ({"outputs": [[1], [1, 2]]}, "must be a list of node numbers"),
        ({"reference": 5}, "'reference' parameter of Network names node 5"),
        ({"inputs": [1], "outputs": [1], "input_mode": "phase"}, "an output and a clamped input"),
        ({"input_mode": "voltage"}, "must be one of 'frequency', 'phase'. Got 'voltage'"),
        ({"input_scale": 0}, "'input_scale' parameter of Network must be a float greater than 0"),
        ({"field_phase": [0, 0, 0]}, "needs 'field_strength'"),
        ({"labels": ["a", "b"]}, "one entry per oscillator, 3. Got 2"),
        ({"labels": ["a", "b", "a"]}, "names two oscillators alike"),
    ],
)
def test_wrong_roles_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        pg.Network(PATH, 1.0, np.zeros(3), **options)


@pytest.mark.parametrize("omega", [[], [[0.0, 0.0]], "fast"])
def test_frequencies_of_the_wrong_form_are_refused(omega):
    with pytest.raises(ValueError, match="'omega' parameter of Network"):
        pg.Network([], 1.0, omega)


def test_repr_says_what_the_network_is():
    network = pg.Network(PATH, 1.0, np.zeros(3), coupling_reverse=[2.0, 2.0], outputs=[2])
    assert repr(network) == (
        "Network(3 oscillators, 2 edges, 1 output, non-reciprocal coupling, Sine(), node 0 held at phase 0)"
    )


def test_replace_lists_the_names_there_are():
    with pytest.raises(TypeError, match=r"no field 'omga'\. Its fields are edges, inputs.* its terms omega, coupling"):
        pg.Network(PATH, 1.0, np.zeros(3)).replace(omga=1)


@pytest.mark.parametrize("value", [5e-324, 1e-49, 1e49, 1e300, 1.7e308])
@pytest.mark.parametrize(
    "make",
    [
        lambda v: pg.find_equilibrium(pg.networks.ring(5, coupling=v, omega=v * SLOPE)),
        lambda v: pg.find_equilibrium(pg.networks.ring(400, coupling=v, omega=v * np.linspace(-1e-4, 1e-4, 400))),
        lambda v: pg.find_equilibrium(pg.networks.ring(5, coupling=[1, 1, v, 1, 1], omega=SLOPE, signed=True)),
        lambda v: pg.find_equilibrium(pg.networks.ring(5, omega=v * SLOPE)),
        lambda v: pg.find_equilibrium(pg.networks.ring(5, field_strength=v, field_phase=0.3)),
        lambda v: pg.find_equilibrium(pg.networks.ring(5, second_strength=v)),
        lambda v: pg.find_equilibrium(pg.networks.mean_field(5, v, omega=v * SLOPE)),
        lambda v: pg.find_equilibrium(pg.layered(2, 3, 2), [v, 0.0]),
        lambda v: pg.find_equilibrium(pg.networks.signed_layers(2, 3, 2, input_scale=v), [1.0, 0.0]),
        lambda v: pg.find_equilibrium(pg.networks.ring(5), start=[0, v, 0, 0, 0]),
        lambda v: pg.find_equilibrium(pg.networks.ring(5, omega=SLOPE), tolerance=v),
        lambda v: pg.critical_scale(pg.networks.ring(5, coupling=v, omega=v * SLOPE)),
        lambda v: pg.simulate(pg.networks.ring(5, coupling=v, omega=SLOPE), [0.0, 1.0]),
        lambda v: pg.simulate(pg.networks.ring(5, omega=v * SLOPE), [0.0, 1.0]),
        lambda v: pg.simulate(pg.networks.ring(5, omega=SLOPE), [0.0, v]),
        lambda v: pg.find_equilibrium(pg.networks.ring(5, outputs=[2]), nudge=pg.Nudge(pg.PhaseTargets(), [0.1], v)),
        lambda v: pg.hardware.Hardware(settling_time=v).sample(pg.layered(2, 3, 2)).run([[0.1, 0.2]]),
        lambda v: pg.datasets.Scaling([0.0], [v]).apply([[v], [1.0]]),
    ],
)
def test_extreme_numbers_are_computed_with_or_refused_in_words(make, value):
    """Never a warning about overflow, which is an error here, nor a run without end."""
    said = None
    try:
        make(value)
    except ValueError as error:
        said = str(error)
    assert said is None or re.search(r"must be|more than 1e\+12|no longer finite", said)
