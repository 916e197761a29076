"""Random networks for property tests: connected, and weakly enough driven to lock."""

import numpy as np
from hypothesis import strategies as st

import phasegrad as pg

INTERACTIONS = (pg.terms.Sine(), pg.terms.OddSeries((1.0, 0.3)), pg.terms.OddSeries((1.0, 0.0, -0.2)))


def connected_edges(n: int, rng: np.random.Generator, density: float) -> np.ndarray:
    """Return the edges of a random spanning tree plus a share of all other pairs."""
    tree = {(int(rng.integers(k)), k) for k in range(1, n)}
    others = {(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < density}
    return np.array(sorted(tree | others), dtype=np.int64).reshape(-1, 2)


def make_network(n: int, seed: int, *, kind: str = "plain", density: float = 0.4, spread: float = 0.1) -> pg.Network:
    """Return a random network of one of the kinds that the library supports."""
    rng = np.random.default_rng(seed)
    edges = connected_edges(n, rng, density)
    coupling = rng.uniform(0.5, 2.0, len(edges))
    omega = spread * rng.standard_normal(n)
    options: dict = {"outputs": (n - 1,) if n < 4 else (n - 2, n - 1)}
    options["interaction"] = INTERACTIONS[int(rng.integers(len(INTERACTIONS)))]
    if kind in ("field", "all terms"):
        options |= {"field_strength": rng.uniform(0.1, 1.0, n), "field_phase": rng.uniform(-0.5, 0.5, n)}
    if kind == "clamped":
        options |= {"inputs": (0,), "input_mode": "phase", "input_scale": 1.0}
    if kind == "non-reciprocal":
        options["coupling_reverse"] = rng.uniform(0.5, 2.0, len(edges))
    if kind == "anisotropic":
        # Of this sign all phases equal are a stable state, where nothing drives them.
        options["anisotropy"] = -rng.uniform(0.1, 0.6, len(edges))
    if kind == "lagging":
        options["lag"] = rng.uniform(-0.1, 0.1, len(edges))
    if kind in ("second harmonic", "all terms"):
        options |= {"second_strength": rng.uniform(0.1, 1.0, n), "second_phase": rng.uniform(-0.5, 0.5, n)}
    if kind in ("driven", "all terms"):
        options |= {"inputs": (0,), "input_scale": 0.3}
    return pg.Network(edges, coupling, omega, **options)


def inputs_for(network: pg.Network, batch: tuple[int, ...], seed: int) -> np.ndarray | None:
    """Return inputs in [-1, 1] if the network takes any."""
    if not network.inputs:
        return None
    return np.random.default_rng(seed).uniform(-1, 1, (*batch, len(network.inputs)))


RECIPROCAL = ("plain", "field", "clamped", "driven", "second harmonic", "all terms", "anisotropic")
ONE_WAY = ("non-reciprocal", "lagging")
KINDS = (*RECIPROCAL, *ONE_WAY)


@st.composite
def networks(draw, *, kinds: tuple[str, ...] = KINDS, min_size: int = 3, max_size: int = 12) -> pg.Network:
    """Draw a random network."""
    n = draw(st.integers(min_size, max_size))
    return make_network(n, draw(st.integers(0, 2**31)), kind=draw(st.sampled_from(kinds)))
