"""Calls that can take long tell how far they are, and find the same whether they are asked to or not."""

import inspect
import re

import networkx as nx
import numpy as np
import pytest
from site_hooks import ROOT, hook

import phasegrad as pg
from phasegrad.equilibria import _states

PAGE = ROOT / "docs" / "scaling.md"
NETWORK = pg.networks.random_network(8, seed=1)
QUESTION = (NETWORK, pg.find_equilibrium(NETWORK), pg.PhaseTargets(), [-0.2, 0.2])


def told(call, *given, **options):
    """Return what a call finds, and what it told."""
    heard = []
    return call(*given, progress=lambda *words: heard.append(words), **options), heard


def test_the_page_names_every_call_that_takes_progress():
    public = hook("reference").public_names()
    taking = {
        name
        for name, call in public.items()
        if inspect.isfunction(call) and "progress" in inspect.signature(call).parameters
    }
    rows = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    assert {name for name in taking if name not in named} == set()
    assert named - taking == {"fit", "circuits.Circuit.run"}  # methods


def test_critical_scale_tells_how_far_it_has_followed_the_state():
    network = pg.networks.ring(6, omega=[0.3, 0.1, -0.2, 0.1, -0.3, 0.0])
    found, heard = told(pg.critical_scale, network)
    assert found.scale == pg.critical_scale(network).scale
    locked, ends = np.array(heard).T
    assert np.all(np.diff(locked) >= 0)
    assert locked[-1] == found.locked
    assert ends[-1] == pytest.approx(found.scale, rel=1e-5)


def test_the_analysis_of_a_grid_tells_the_same():
    assert told(pg.grids.analyse, pg.grids.load("case9"))[1]


def test_find_equilibria_tells_how_many_starts_have_settled(monkeypatch):
    network = pg.networks.cycle_chain(2, 6)
    whole, heard = told(pg.find_equilibria, network, starts=30, winding=5)
    assert heard == [(35, 35)]
    monkeypatch.setattr(_states, "_PHASES_AT_ONCE", 8 * network.size)
    parts, heard = told(pg.find_equilibria, network, starts=30, winding=5)
    assert heard == [(8, 35), (16, 35), (24, 35), (32, 35), (35, 35)]
    assert np.array_equal(whole.phases, parts.phases)
    assert np.array_equal(whole.share, parts.share)


def test_finite_differences_tell_how_many_entries_have_been_turned(monkeypatch):
    monkeypatch.setattr("phasegrad.gradients.methods.finite_difference._ENTRIES_AT_ONCE", 6 * NETWORK.n_edges)
    found, heard = told(pg.gradients.finite_difference, *QUESTION, wrt=("omega", "coupling"))
    total = NETWORK.size + NETWORK.n_edges
    assert [done for done, _ in heard] == sorted({done for done, _ in heard})
    assert heard[-1] == (total, total)
    assert len(heard) > 2
    assert np.array_equal(found.omega, pg.gradients.finite_difference(*QUESTION, wrt=("omega", "coupling")).omega)


def test_check_gradients_names_the_method_that_begins():
    methods = ("adjoint", "two_phase")
    assert told(pg.check_gradients, *QUESTION, methods=methods)[1] == [("adjoint",), ("two_phase",)]


def test_annealing_tells_how_many_runs_are_done():
    problem = pg.ising.Problem.from_networkx(nx.petersen_graph())
    found, heard = told(pg.ising.simulated_annealing, problem, runs=3, sweeps=10)
    assert heard == [(1, 3), (2, 3), (3, 3)]
    assert np.array_equal(found.spins, pg.ising.simulated_annealing(problem, runs=3, sweeps=10).spins)


def test_a_memory_that_learns_tells_the_epoch():
    patterns = np.random.default_rng(3).choice([-1, 1], (2, 8))
    assert [epoch for epoch, _ in told(pg.memory.learn, patterns, epochs=2)[1]][-1] == 2


def test_a_circuit_tells_how_many_samples_are_done(monkeypatch):
    network = pg.networks.complete(2, omega=[0.2, -0.2])
    circuit = pg.circuits.Circuit(network)
    reading = type("Reading", (), {"locked": True, "phases": np.zeros(2)})()
    monkeypatch.setattr("phasegrad.circuits._circuit.ngspice", lambda *_, **__: type("Run", (), {"loosened": False})())
    monkeypatch.setattr("phasegrad.circuits._circuit.lock", lambda *_, **__: reading)
    assert told(circuit.run, np.zeros((3, 0)))[1] == [(1, 3), (2, 3), (3, 3)]
