"""Layouts: their list of edges against PyTorch's convolution, how values spread, and what is wrong in words."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st
from random_layouts import layouts, network_on

import phasegrad as pg
from phasegrad.graphs import _layout

SMALL = pg.networks.Layout(
    [(1, 4, 5), (2, 2, 3), (3,)], [pg.networks.Link(0, 1, 3, 2, 1), pg.networks.Link(1, 2), pg.networks.Link(0, 2)]
)
#: 76 million edges, a million couplings.
HUGE = pg.networks.Layout(
    [(3, 32, 32), (128, 32, 32), (256, 16, 16), (10,)],
    [
        pg.networks.Link(0, 1, kernel=3, padding=1),
        pg.networks.Link(1, 2, kernel=3, stride=2, padding=1),
        pg.networks.Link(2, 3),
    ],
)


@pytest.mark.parametrize("channels", [(1, 1), (2, 3), (3, 1)])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(1, 1, 0), (3, 1, 0), (3, 1, 1), (3, 2, 1), (2, 3, 1), (5, 2, 4), (4, 1, 3)]
)
def test_edges_of_a_convolution_are_those_of_pytorch(channels, kernel, stride, padding):
    torch = pytest.importorskip("torch")
    rng, link = np.random.default_rng(kernel), pg.networks.Link(0, 1, kernel, stride, padding)
    shapes = ((channels[0], 7, 6), link.shape((channels[0], 7, 6), channels[1]))
    layout = pg.networks.Layout(shapes, (link,))
    coupling, states = rng.standard_normal(layout.n_couplings), rng.standard_normal(layout.size)
    there, back = states[layout.nodes[0]].reshape(1, *shapes[0]), states[layout.nodes[1]].reshape(1, *shapes[1])
    (weight,) = layout.weights(coupling)
    assert weight.shape == (channels[1], channels[0], kernel, kernel)
    tensors = [torch.tensor(each) for each in (there, weight, back)]
    forth = torch.nn.functional.conv2d(*tensors[:2], stride=stride, padding=padding).numpy()
    tensors[0].requires_grad_(True)
    made = torch.nn.functional.conv2d(*tensors[:2], stride=stride, padding=padding)
    back_again = torch.autograd.grad(made, tensors[0], tensors[2])[0].numpy()
    i, j = layout.edges.T
    strength = coupling[layout.coupling_of]
    sums = np.bincount(j, strength * states[i], layout.size) + np.bincount(i, strength * states[j], layout.size)
    assert np.abs(sums[layout.nodes[1]] - forth.ravel()).max() < 1e-12
    assert np.abs(sums[layout.nodes[0]] - back_again.ravel()).max() < 1e-12


def test_dense_links_join_all_nodes_in_row_major_order():
    layout = pg.networks.Layout(
        [(2,), (3,), (2,)], [pg.networks.Link(1, 2), pg.networks.Link(0, 1), pg.networks.Link(0, 2)]
    )
    matrix = np.zeros((7, 7))
    blocks = layout.weights(np.arange(1.0, layout.n_couplings + 1))
    assert [block.shape for block in blocks] == [(3, 2), (2, 3), (2, 2)]
    for block, link in zip(blocks, layout.links, strict=True):
        matrix[layout.nodes[link.first], layout.nodes[link.second]] = block
    i, j = layout.edges.T
    assert np.array_equal(matrix[i, j], 1.0 + layout.coupling_of)
    assert layout.n_edges == np.count_nonzero(matrix) == 16


@given(layouts())
def test_everything_that_follows_from_a_layout_fits_together(layout):
    edges, numbers = layout.edges, layout.coupling_of
    assert edges.shape == (layout.n_edges, 2)
    assert numbers.shape == (layout.n_edges,)
    keys = edges[:, 0] * layout.size + edges[:, 1]
    assert np.all(edges[:, 0] < edges[:, 1])
    assert layout.starts == tuple(np.cumsum([0, *layout.sizes[:-1]]))
    assert np.all(np.diff(keys) > 0)
    assert set(np.unique(numbers)) <= set(range(layout.n_couplings))
    layer = np.repeat(np.arange(len(layout.shapes)), layout.sizes)
    for part, link in zip(layout.couplings, layout.links, strict=True):
        mine = (numbers >= part.start) & (numbers < part.stop)
        assert np.all(layer[edges[mine]] == [link.first, link.second])
        # Nobody in the later layer is left out.
        assert np.array_equal(np.unique(edges[mine, 1]), np.arange(layout.size)[layout.nodes[link.second]])
        assert np.max(np.bincount(edges[mine, 1])) <= layout.fan_in(link)
    for nodes, values, shape in zip(layout.nodes, layout.node_values, layout.shapes, strict=True):
        expected = np.arange(values.start, values.stop).repeat(int(np.prod(shape[1:])))
        assert np.array_equal(layout.value_of[nodes], expected)
    assert pg.networks.Layout.from_dict(json.loads(json.dumps(layout.as_dict()))) == layout
    assert pickle.loads(pickle.dumps(layout)) == layout


@given(layouts())
def test_spreading_and_collecting_are_adjoint(layout):
    rng, sharing = np.random.default_rng(0), network_on(layout).graph.sharing
    for on, count in (("nodes", layout.size), ("edges", layout.n_edges)):
        values, slopes = rng.standard_normal((2, sharing.width(on))), rng.standard_normal((2, count))
        assert sharing.spread(on, values).shape == slopes.shape
        spread, collected = np.sum(sharing.spread(on, values) * slopes), np.sum(values * sharing.collect(on, slopes))
        assert abs(spread - collected) < 1e-12 * (1 + np.sum(np.abs(slopes)))
        assert np.allclose(sharing.collect(on, sharing.spread(on, values)), values * sharing.counts(on), rtol=1e-12)
        assert np.array_equal(sharing.collect(on, slopes[1]), sharing.collect(on, slopes)[1])


def test_without_a_layout_arrays_pass_through_as_they_are():
    sharing, values = pg.networks.ring(5).graph.sharing, np.arange(10.0).reshape(2, 5)
    for on in ("nodes", "edges"):
        assert sharing.spread(on, values) is values
        assert sharing.collect(on, values) is values
        assert sharing.width(on) == 5


def test_inputs_hold_values_that_do_not_learn():
    graph = network_on(SMALL).graph
    assert pg.terms.Parameter("p").learnable(graph).tolist() == [False] + [True] * 5
    assert pg.terms.Parameter("p", "edges").learnable(graph).tolist() == [True] * SMALL.n_couplings


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pg.networks.Link(1, 1), "A Link goes from a layer to a later one. Got first=1 and second=1"),
        (lambda: pg.networks.Link(-1, 1), "'first' parameter of Link must be a whole number of at least 0"),
        (lambda: pg.networks.Link(0, 1, kernel=0), "'kernel' parameter of Link must be a whole number of at least 1"),
        (lambda: pg.networks.Link(0, 1, kernel=3, stride=0), "'stride' parameter of Link must be a whole number"),
        (lambda: pg.networks.Link(0, 1, kernel=3, padding=3), "must be less than its kernel, 3: every oscillator"),
        (lambda: pg.networks.Link(0, 1, stride=2), "A Link without a kernel is dense and has no stride or padding"),
        (lambda: pg.networks.Layout([(3,)], []), "those of the inputs and of at least one more layer"),
        (
            lambda: pg.networks.Layout([(3,), (2, 2)], [pg.networks.Link(0, 1)]),
            "must be a number of oscillators, or (channels, height",
        ),
        (
            lambda: pg.networks.Layout([(3,), (0,)], [pg.networks.Link(0, 1)]),
            "must be a whole number of at least 1. Got 0",
        ),
        (lambda: pg.networks.Layout([(3,), (2,)], [(0, 1)]), "The 'links' of a Layout must be a list of Links"),
        (
            lambda: pg.networks.Layout([(3,), (2,)], [pg.networks.Link(0, 2)]),
            "names layer 2, but the layout has layers 0 to 1",
        ),
        (lambda: pg.networks.Layout([(3,), (2,), (1,)], [pg.networks.Link(0, 2)]), "No link leads to layer 1"),
        (lambda: pg.networks.Layout([(3,), (2,)], [pg.networks.Link(0, 1)] * 2), "Two links join the layers 0 and 1"),
        (lambda: pg.networks.Layout([(9,), (2, 3, 3)], [pg.networks.Link(0, 1, 1)]), "Got layer 0 of 9 nodes"),
        (lambda: pg.networks.Layout([(1, 3, 3), (9,)], [pg.networks.Link(0, 1, 1)]), "Got layer 1 of 9 nodes"),
        (
            lambda: pg.networks.Layout([(1, 3, 3), (2, 3, 3)], [pg.networks.Link(0, 1, 3)]),
            "makes a layer of 2 x 1 x 1. Got 2 x 3 x 3",
        ),
        (
            lambda: pg.networks.Layout([(1, 3, 3), (2, 1, 1)], [pg.networks.Link(0, 1, 5)]),
            "kernel of 5 x 5 does not fit into layer 0",
        ),
        (
            lambda: pg.networks.Layout([(1, 10**9, 10**9), (2,)], [pg.networks.Link(0, 1)]),
            "A layout has at most 4194304 oscillators",
        ),
    ],
)
def test_a_layout_that_makes_no_sense_is_refused_in_words(make, message):
    with pytest.raises((ValueError, TypeError)) as error:
        make()
    assert message in str(error.value)


class TestHugeLayouts:
    def test_no_edge_is_listed_until_somebody_asks(self):
        network = network_on(HUGE)
        other = network.replace(coupling=2 * network.coupling).replace(input_scale=0.5).replace(omega=0.0)
        again = pickle.loads(pickle.dumps(network))
        assert again == network != other
        assert again.graph.alike(network.graph)
        assert repr(network).startswith("Network(199690 oscillators, 76432896 edges, layers 3x32x32 - 128x32x32 - ")
        assert network.n_edges == HUGE.n_edges
        for graph in (network.graph, other.graph, again.graph):
            assert "_explicit" not in vars(graph.layout)
            assert not {"first", "second", "components"} & vars(graph).keys()

    def test_a_layout_too_large_for_a_list_is_refused_in_words(self):
        network = network_on(HUGE)
        for ask in (lambda: network.edges, lambda: pg.find_equilibrium(network, np.zeros(3072)), network.untied):
            with pytest.raises(ValueError, match=r"has 76432896 edges, and only up to 50000000 .* engine='torch'"):
                ask()

    def test_its_gauge_is_judged_by_its_layers(self):
        """Without fields all layers hang on the clamped inputs, through couplings that are not zero."""
        loose = {"field_strength": None, "field_phase": None}
        network = pg.Network(HUGE, 0.1, 0.0, input_mode="phase")
        assert "_explicit" not in vars(network.graph.layout)
        cut = np.full(HUGE.n_couplings, 0.1)
        cut[HUGE.couplings[2]] = 0.0
        with pytest.raises(ValueError, match="are listed one by one"):
            network.replace(coupling=cut, signed=True, **loose)


def judged(*arguments, **options) -> str:
    """Return what is said against a network, nothing if it is taken."""
    try:
        pg.Network(*arguments, **options)
    except ValueError as error:
        return str(error)
    return ""


@given(layouts(), st.sampled_from(["phase", "frequency"]), st.booleans(), st.integers(0, 2**20))
def test_layers_and_edges_judge_the_gauge_alike(layout, mode, reciprocal, seed):
    """Whatever couplings and fields vanish: a network is refused if and only if its list of edges is."""
    rng, some = np.random.default_rng(seed), {}
    for name in ("coupling",) if reciprocal else ("coupling", "coupling_reverse"):
        some[name] = np.ones(layout.n_couplings)
        for part in layout.couplings:
            some[name][part] = rng.random(part.stop - part.start) >= rng.choice([0.0, 0.2, 1.0])
    field = rng.choice([0.0, 1.0], layout.n_node_values, p=[0.7, 0.3])
    some |= {"field_strength": field} if field.any() else {}
    options = {"input_mode": mode, "signed": True, "grounded": bool(rng.integers(2))}
    ends = {"inputs": np.arange(layout.size)[layout.nodes[0]], "outputs": np.arange(layout.size)[layout.nodes[-1]]}
    index = {name: layout.coupling_of if name.startswith("coupling") else layout.value_of for name in some}
    every = {name: values[index[name]] for name, values in some.items()}
    shared = judged(layout, omega=0.0, **some, **options)
    assert shared == judged(layout.edges, omega=np.zeros(layout.size), **every, **options, **ends)


ONE_TO_ONE, SPARSE = (
    pg.networks.Layout([(1, 2, 2), (1, 2, 2)], [pg.networks.Link(0, 1, kernel=1)]),
    pg.networks.Layout([(1, 3, 3), (1, 2, 2)], [pg.networks.Link(0, 1, kernel=1, stride=2)]),
)


@pytest.mark.parametrize(
    ("layout", "options", "loose"),
    [
        (pg.networks.Layout([(2,), (2,)], [pg.networks.Link(0, 1)]), {"coupling": 0.0, "coupling_reverse": 1.0}, False),
        (pg.networks.Layout([(2,), (2,)], [pg.networks.Link(0, 1)]), {"coupling": 1.0, "coupling_reverse": 0.0}, True),
        (
            pg.networks.Layout([(2,), (2,)], [pg.networks.Link(0, 1)]),
            {"coupling": 1.0, "input_mode": "frequency"},
            False,
        ),
        (ONE_TO_ONE, {"coupling": 1.0}, False),
        (ONE_TO_ONE, {"coupling": 1.0, "input_mode": "frequency"}, True),
        (ONE_TO_ONE, {"coupling": 1.0, "input_mode": "frequency", "field_strength": [0.0, 1.0]}, False),
        (SPARSE, {"coupling": 1.0, "input_mode": "frequency", "field_strength": [0.0, 1.0]}, True),
        (SPARSE, {"coupling": 1.0, "input_mode": "frequency", "field_strength": [1.0, 0.0]}, False),
    ],
)
def test_who_hangs_on_whom_is_told_from_the_layers(layout, options, loose):
    said = judged(layout, omega=0.0, **{"input_mode": "phase", "signed": True, **options})
    assert ("The graph is disconnected" in said) == bool(said) == loose


def test_edges_are_listed_once_for_all_networks_of_a_layout():
    network = network_on(SMALL)
    assert network.replace(input_scale=0.3).edges is network.edges
    assert not network.edges.flags.writeable


def test_the_limit_on_edges_counts_them(monkeypatch):
    layout = pg.networks.Layout(SMALL.shapes, SMALL.links)
    monkeypatch.setattr(_layout, "MOST_EDGES", layout.n_edges - 1)
    with pytest.raises(ValueError, match=f"This layout of 1x4x5 - 2x2x3 - 3 has {layout.n_edges} edges"):
        _ = layout.edges
    monkeypatch.setattr(_layout, "MOST_EDGES", layout.n_edges)
    assert len(layout.edges) == layout.n_edges
