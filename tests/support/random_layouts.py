"""Random small layouts for property tests, and networks on them that lock."""

import numpy as np
from hypothesis import strategies as st

import phasegrad as pg

CONVOLUTION = {"kernel": st.integers(1, 3), "stride": st.integers(1, 3), "padding": st.integers(0, 2)}


@st.composite
def layouts(draw, *, most: int = 3) -> pg.networks.Layout:
    """Draw layers one after another, dense or by a convolution, and some links across them."""
    shapes = [draw(st.tuples(st.integers(1, 2), st.integers(1, 5), st.integers(1, 5)) | st.tuples(st.integers(1, 4)))]
    links = []
    for number in range(1, draw(st.integers(1, most)) + 1):
        kind = {name: draw(values) for name, values in CONVOLUTION.items()}
        fits = len(shapes[-1]) == 3 and min(shapes[-1][1:]) + 2 * kind["padding"] >= kind["kernel"] > kind["padding"]
        link = (
            pg.networks.Link(number - 1, number, **kind)
            if fits and draw(st.booleans())
            else pg.networks.Link(number - 1, number)
        )
        links.append(link)
        size = draw(st.integers(1, 3))
        shapes.append((size,) if link.kernel is None else link.shape(shapes[-1], size))
        links += [pg.networks.Link(first, number) for first in range(number - 1) if draw(st.booleans())]
    order = draw(st.permutations(links))
    return pg.networks.Layout(tuple(shapes), tuple(order))


def network_on(layout: pg.networks.Layout, seed: int = 0, **options) -> pg.Network:
    """Return a network with random values of all parameters, weakly enough coupled to lock."""
    rng = np.random.default_rng(seed)
    settings = {
        "field_strength": rng.uniform(0.8, 1.5, layout.n_node_values),
        "field_phase": rng.uniform(-1.0, 1.0, layout.n_node_values),
        "input_mode": "phase",
        "input_scale": 0.8,
        "input_phase": 0.4,
        "signed": True,
    }
    coupling, omega = 0.05 * rng.standard_normal(layout.n_couplings), 0.1 * rng.standard_normal(layout.n_node_values)
    return pg.Network(layout, coupling, omega, **{**settings, **options})


def inputs_of(network: pg.Network, count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (count, len(network.inputs)))
