import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from random_networks import networks
from scipy import sparse
from scipy.sparse import csgraph

import phasegrad as pg
from phasegrad.pictures import arrange


def test_layered_draws_in_the_published_order():
    """Protocol: frequencies of hidden then outputs, inputs to hidden, hidden to outputs, the chain."""
    network = pg.layered(2, 3, 2, seed=7, coupling_scale=2.0)
    rng = np.random.default_rng(7)
    omega = [0.0, 0.0, *rng.uniform(-0.3, 0.3, 5)]
    strengths = {}
    for i in (0, 1):
        for h in (2, 3, 4):
            strengths[i, h] = 2.0 * rng.uniform(0.5, 1.5)
    for h in (2, 3, 4):
        for o in (5, 6):
            strengths[h, o] = 2.0 * rng.uniform(0.5, 1.5)
    for h in (2, 3):
        strengths[h, h + 1] = 2.0 * rng.uniform(0.5, 1.0)
    assert network.omega.tolist() == omega
    assert [tuple(edge) for edge in network.edges] == sorted(strengths)
    assert network.coupling.tolist() == [strengths[edge] for edge in sorted(strengths)]
    assert (network.inputs, network.outputs, network.input_scale) == ((0, 1), (5, 6), 1.5)


@pytest.mark.parametrize("n_hidden", [1, 3, 5, 15])
def test_layered_has_the_published_number_of_edges(n_hidden):
    assert pg.layered(2, n_hidden, 2).n_edges == 5 * n_hidden - 1


def test_random_network_draws_in_the_published_order():
    network = pg.networks.random_network(5, seed=3, mean_coupling=4.0, spread=0.2, p=0.5)
    rng = np.random.default_rng(3)
    omega = rng.standard_normal(5) * 0.2
    strengths = {}
    for i in range(5):
        for j in range(i + 1, 5):
            if rng.random() < 0.5:
                strengths[i, j] = 4.0 * rng.uniform(0.5, 1.5)
    assert network.omega.tolist() == (omega - omega.mean()).tolist()
    assert [tuple(edge) for edge in network.edges] == list(strengths)
    assert network.coupling.tolist() == list(strengths.values())
    assert network.outputs == (3, 4)


@pytest.mark.parametrize(
    ("build", "graph"),
    [
        (lambda: pg.networks.complete(6), nx.complete_graph(6)),
        (lambda: pg.networks.ring(7), nx.cycle_graph(7)),
        (lambda: pg.networks.lattice(3, 4), nx.grid_2d_graph(3, 4)),
        (lambda: pg.networks.lattice(3, 4, periodic=True), nx.grid_2d_graph(3, 4, periodic=True)),
        (lambda: pg.networks.small_world(12, 4, 0.0), nx.watts_strogatz_graph(12, 4, 0.0)),
        (lambda: pg.networks.random_regular(6, 5), nx.complete_graph(6)),
    ],
)
def test_the_usual_graphs_are_what_networkx_says(build, graph):
    network, graph = build(), nx.convert_node_labels_to_integers(graph)
    assert {tuple(edge) for edge in network.edges.tolist()} == {tuple(sorted(edge)) for edge in graph.edges}


def test_hidden_layers_may_be_as_narrow_as_one_oscillator():
    assert pg.networks.signed_layers(2, [1], 1).size == 4
    assert pg.networks.signed_layers(2, (3, 1), 1).size == 7


def test_random_regular_gives_every_oscillator_its_degree():
    network = pg.networks.random_regular(20, 3, seed=1)
    assert np.bincount(network.edges.ravel()).tolist() == [3] * 20


def test_an_array_of_couplings_means_the_stored_edges():
    network = pg.networks.ring(4, coupling=[1.0, 2.0, 3.0, 4.0])
    assert network.edges.tolist() == [[0, 1], [0, 3], [1, 2], [2, 3]]
    assert network.coupling.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_ring_is_of_unit_couplings_if_nothing_is_said():
    """With one oscillator held it is a chain held at both ends, whose waves relax at 2 - 2 cos(k pi / n)."""
    rates = np.linalg.eigvalsh(pg.dynamics.laplacian(pg.networks.ring(7), np.zeros(7)))
    assert rates == pytest.approx(2 - 2 * np.cos(np.arange(1, 7) * np.pi / 7))


@given(networks())
def test_networkx_round_trip_gives_the_same_network(network):
    assert pg.from_networkx(pg.networks.to_networkx(network)) == network


def test_names_weights_and_node_attributes_survive_the_round_trip():
    graph = nx.Graph()
    graph.add_node("bus b", omega=0.3, colour="red")
    graph.add_node("bus a", omega=-0.3)
    graph.add_edge("bus b", "bus a", weight=2.5)
    network = pg.from_networkx(graph, outputs=["bus a"])
    assert network.labels == ("bus b", "bus a")
    back = pg.networks.to_networkx(network)
    assert dict(back.nodes(data=True)) == dict(graph.nodes(data=True))
    assert back.edges["bus b", "bus a"]["weight"] == 2.5
    assert back.graph["outputs"] == ("bus a",)


def test_directed_edges_mean_who_acts_on_whom():
    graph = nx.DiGraph([(0, 1, {"weight": 2.0}), (1, 2, {"weight": 3.0}), (2, 1, {"weight": 4.0})])
    network = pg.from_networkx(graph)
    assert network.edges.tolist() == [[0, 1], [1, 2]]
    assert network.coupling.tolist() == [0.0, 4.0]
    assert network.coupling_reverse.tolist() == [2.0, 3.0]


def test_a_weight_that_was_named_must_be_there():
    """Version 0.1 took 1.0 for a name misspelt."""
    graph = nx.Graph([("a", "b", {"weight": 2.0, "line": 3.0}), ("b", "c", {"weight": 5.0})])
    for wrong in ("wieght", "line"):
        with pytest.raises(ValueError, match=rf"edge \('.', '.'\) of the graph has no attribute '{wrong}'. Name an"):
            pg.from_networkx(graph, weight=wrong)
    assert pg.from_networkx(graph, weight="weight").coupling.tolist() == [2.0, 5.0]
    assert pg.from_networkx(nx.path_graph(3)).coupling.tolist() == [1.0, 1.0]


@given(networks())
def test_matrices_dense_and_sparse_give_the_same_network(network):
    i, j = network.edges.T
    matrix = np.zeros((network.size, network.size))
    matrix[i, j] = network.coupling
    matrix[j, i] = network.coupling if network.coupling_reverse is None else network.coupling_reverse
    dense = pg.networks.from_matrix(matrix, omega=network.omega)
    for form in (sparse.csr_array, sparse.coo_matrix, sparse.csc_array):
        assert pg.networks.from_matrix(form(matrix), omega=network.omega) == dense
    np.testing.assert_array_equal(dense.edges, network.edges)
    np.testing.assert_array_equal(dense.coupling, network.coupling)
    assert dense.reciprocal == (network.coupling_reverse is None)


def test_small_integer_matrices_do_not_overflow():
    matrix = np.array([[0, 128, 1], [128, 0, 1], [1, 1, 0]], dtype=np.uint8)
    assert pg.networks.from_matrix(sparse.csr_array(matrix)) == pg.networks.from_matrix(matrix)
    assert pg.networks.from_matrix(matrix).coupling.tolist() == [128.0, 1.0, 1.0]


def test_the_smallest_networks_can_be_built():
    assert pg.networks.random_network(1).size == pg.networks.complete(1).size == 1
    assert pg.networks.random_network(2, p=1.0).outputs == (1,)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), "must be square"),
        (np.ones(4), "must be square"),
        (sparse.csr_array(np.ones((2, 3))), "must be square"),
        ([[0, np.nan], [np.nan, 0]], "must be finite"),
        (sparse.csr_array([[0, np.inf], [np.inf, 0]]), "must be finite"),
        ([[1.0, 1.0], [1.0, 0.0]], "Oscillator 0 is coupled to itself"),
        ([["a", "b"], ["c", "d"]], "must be an array of real numbers"),
        ([[0, 1j], [1j, 0]], "must be an array of real numbers"),
        (sparse.csr_array([[0, 1j], [1j, 0]]), "must be an array of real numbers"),
        (sparse.coo_array([1.0, 2.0]), "must be square"),
    ],
)
def test_wrong_matrices_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        pg.networks.from_matrix(matrix)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: pg.layered(0, 5, 2), "'n_in' parameter of layered must be a whole number of at least 1"),
        (lambda: pg.layered(2, 2.5, 2), "'n_hidden' parameter of layered"),
        (lambda: pg.layered(2, 5, 2, coupling_scale=-1), "'coupling_scale' parameter"),
        (lambda: pg.networks.random_network(3, n_outputs=4), "4 outputs out of 3"),
        (lambda: pg.networks.random_network(True), "'n' parameter"),
        (lambda: pg.networks.random_network(0), "'n' parameter of random_network"),
        (
            lambda: pg.networks.random_network(5, p="often"),
            "'p' parameter of random_network must be a float from 0 to 1",
        ),
        (lambda: pg.networks.random_network(5, spread=np.inf), "'spread' parameter of random_network"),
        (lambda: pg.networks.random_network(5, mean_coupling=0), "'mean_coupling' parameter of random_network"),
        (lambda: pg.networks.random_network(5, seed="a"), "'seed' parameter of random_network"),
        (lambda: pg.layered(2, 5, 2, coupling_scale="2.5"), "'coupling_scale' parameter of layered"),
        (lambda: pg.networks.small_world(8, 4, 2.0), "'p' parameter of small_world"),
        (
            lambda: pg.networks.ring(4, omega=np.zeros(5)),
            r"'omega' parameter of a network of 4 oscillators must have shape",
        ),
        (
            lambda: pg.from_networkx(nx.Graph([(0, 1)], inputs=["x"])),
            "'inputs' of the network are .* does not name nodes",
        ),
        (lambda: pg.from_networkx(nx.Graph([(0, 1)], reference=[1])), "'reference' of the network"),
        (lambda: pg.networks.ring(2), "at least 3"),
        (lambda: pg.networks.lattice(2, 5, periodic=True), "at least 3"),
        (lambda: pg.networks.random_regular(5, 3), "n \\* degree even"),
        (lambda: pg.networks.small_world(4, 4), "k < n"),
        (lambda: pg.networks.small_world(10, 3), "and k even"),
        (lambda: pg.layered(2, 5, 2, coupling=-1), r"layered sets 'coupling' itself.*network.replace\(coupling=...\)"),
        (lambda: pg.networks.random_network(5, omega=0.0), "random_network sets 'omega' itself"),
        (lambda: pg.from_networkx(nx.Graph()), "Got one that has no nodes"),
        (lambda: pg.networks.random_network(6, p=0.0), "disconnected"),
        (lambda: pg.from_networkx(nx.MultiGraph([(0, 1)])), "merge its parallel edges"),
    ],
)
def test_builders_refuse_what_they_cannot_build(build, message):
    with pytest.raises((ValueError, TypeError), match=message):
        build()


def _states():
    pg.find_equilibria(pg.networks.ring(6), starts=1)


def _columns():
    network = pg.layered(2, 5, 2)
    arrange(network.size, network.edges, network.inputs, network.outputs)


def _springs():
    arrange(5, np.array([[0, 1], [0, 2], [1, 2], [2, 3], [3, 4]]))


def _tensors():
    pytest.importorskip("torch")
    from phasegrad.tensors import Structure

    Structure.of(pg.networks.signed_layers(2, 5, 2))


@pytest.mark.parametrize("use", [_states, _columns, _springs, _tensors])
def test_trees_and_paths_are_searched_with_indices_of_32_bits(use, monkeypatch):
    """The oldest version of SciPy that is declared takes no others."""
    seen = []

    def watched(name):
        real = getattr(csgraph, name)

        def search(matrix, *args, **options):
            seen.append((name, matrix.indices.dtype, matrix.indptr.dtype))
            return real(matrix, *args, **options)

        monkeypatch.setattr(csgraph, name, search)

    for name in ("minimum_spanning_tree", "dijkstra", "shortest_path"):
        watched(name)
    use()
    assert seen
    assert all(indices == pointers == np.int32 for _, indices, pointers in seen), seen
