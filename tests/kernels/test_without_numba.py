"""Where Numba is missing, as in a browser: everything imports, and small things run in Python to the same digits."""

import json
import subprocess
import sys

import numpy as np
import pytest

import phasegrad as pg

pytestmark = pytest.mark.process

BLOCKED = "import sys; sys.modules['numba'] = None\n"


def small_things() -> dict[str, list]:
    """Settle, differentiate and train small networks by every engine there is; return what came out as plain data."""
    network = pg.layered(2, 5, 2, seed=0)
    state = pg.find_equilibrium(network, [[0.8, -0.6], [-0.2, 0.5]])
    question = (network, state, pg.PhaseTargets(), [-0.2, 0.2])
    gradients = [pg.adjoint(*question).omega, pg.two_phase(*question, beta=0.01).omega]
    drive = np.random.default_rng(0).normal(0, 0.1, 400)
    ring = pg.networks.lattice(20, 20, omega=drive, outputs=[5])  # large enough to be solved on compressed rows
    sparse = pg.find_equilibrium(ring)
    table = pg.check_gradients(*question, wrt="omega", methods=["adjoint", "two_phase", "holomorphic"])
    paper = pg.train(network, pg.datasets.xor(), pg.Plan.paper(epochs=5), seed=0)
    x = np.random.default_rng(1).normal(size=(40, 3))
    # Without a nudge: the tolerance of settling over a nudge of 0.001 would be a thousand times as large.
    wide = pg.OscillatorClassifier(hidden=20, epochs=3, gradient="adjoint", random_state=0).fit(x, x[:, 0] > 0)
    assert sparse.stable
    assert "adjoint" in str(table)
    return {
        "phases": state.phases.tolist(),
        "gradients": [each.tolist() for each in gradients],
        "lattice": sparse.phases.tolist(),
        "lattice gradient": pg.adjoint(ring, sparse, pg.PhaseTargets(), [0.1]).omega.tolist(),
        "paper": paper.network.omega.tolist(),
        "batch": wide.network_.coupling.tolist(),
        "answers": wide.predict_proba(x).tolist(),
    }


@pytest.fixture(scope="module")
def plain():
    """The same in a process that has no Numba."""
    code = (
        f"{BLOCKED}import json; sys.path.insert(0, {str(__file__.rpartition('/')[0])!r})\n"
        "from test_without_numba import refusal_of_lanes, small_things\n"
        "print(json.dumps(small_things() | {'refusal': refusal_of_lanes()}))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refusal_of_lanes() -> str:
    with pytest.raises(ValueError, match="lanes") as refused:
        pg.train(pg.layered(2, 5, 2), pg.datasets.xor(), pg.Plan.paper(epochs=1), engine="lanes")
    return str(refused.value)


def test_plain_python_finds_what_compiled_code_finds(plain):
    compiled = small_things()
    for name, values in compiled.items():
        assert np.abs(np.array(plain[name]) - np.array(values)).max() < 1e-9, name


def test_the_lanes_say_that_they_are_missing(plain):
    words = "The lanes are compiled code, and Numba is not installed. Use engine='batch' for this one."
    assert plain["refusal"] == words
