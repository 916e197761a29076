"""Small pieces of work, in a module that worker processes can import, and what they may not change of their process."""

import hashlib
import locale
import os
import signal
import warnings

import numpy as np
import threadpoolctl

import phasegrad as pg


def equilibrium():
    network = pg.layered(3, 6, 2, seed=1)
    inputs = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    found = pg.find_equilibrium(network, inputs, eigenvalue=True)
    return found.phases, found.smallest_eigenvalue


def multigrid():
    """A ring so deep that a hierarchy preconditions it, so stressed that its eigenvalue is asked of LOBPCG."""
    network = pg.networks.ring(2100, omega=np.random.default_rng(0).normal(0, 1e-3, 2100))
    found = pg.find_equilibrium(network, eigenvalue=True)
    return found.phases, found.smallest_eigenvalue


def gradients():
    network = pg.networks.random_network(12, seed=4)
    question = (network, pg.find_equilibrium(network), pg.PhaseTargets(), [-0.2, 0.2])
    methods = (
        pg.adjoint,
        pg.two_phase,
        pg.centred,
        pg.gradients.holomorphic,
        pg.gradients.finite_difference,
        pg.gradients.autograd,
    )
    return [method(*question).omega for method in methods]


def training():
    data = pg.datasets.vowels("a,i", seed=0)
    network = pg.layered(2, 4, 2, seed=3)
    runs = [
        pg.train(network, data, pg.Plan.paper(), epochs=2),
        pg.train(network, data, epochs=1, batch_size=50, record=("gradient_cosine",)),
    ]
    return [run.networks[0].omega for run in runs]


def critical():
    return pg.critical_scale(pg.networks.lattice(4, 5, omega=np.random.default_rng(1).normal(0, 0.3, 20))).scale


def classifier():
    stream = np.random.default_rng(2)
    x = stream.normal(size=(60, 3))
    fitted = pg.OscillatorClassifier(hidden=5, epochs=2, random_state=0).fit(x, x[:, 0] > 0)
    return fitted.predict_proba(x)


WORK = {work.__name__: work for work in (equilibrium, multigrid, gradients, training, critical, classifier)}


def digest(name):
    """Return a name for the very bits of a piece's result."""
    found = WORK[name]()
    parts = found if isinstance(found, list | tuple) else [found]
    return hashlib.sha256(b"".join(np.asarray(part).tobytes() for part in parts)).hexdigest()


def blas():
    libraries = threadpoolctl.threadpool_info()
    return [(each["filepath"], each["num_threads"]) for each in libraries if each["user_api"] == "blas"]


def surroundings():
    """Return what belongs to the process or to its user."""
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002
    return {
        "random": (kind, keys.tobytes(), *rest),
        "errors": np.geterr(),
        "warnings": list(warnings.filters),
        "locale": locale.setlocale(locale.LC_ALL),
        "signals": {name: signal.getsignal(name) for name in signal.valid_signals()},
        "environment": dict(os.environ),
        "folder": os.getcwd(),
    }


def seeded(seed):
    """Give the process a random state, error handling and filters of its own, and more BLAS threads than one."""
    np.random.seed(seed)  # noqa: NPY002
    np.seterr(under="raise" if seed % 2 else "ignore")
    warnings.filterwarnings("always", message=f"seed {seed}")
    threadpoolctl.threadpool_limits(limits=3, user_api="blas")
    threadpoolctl.OpenBLASController.clear_controlling_thread(force=True)


def alone(name, seed):
    """Do a piece of work in a process of its own; return its result, and what it changed of the process."""
    # What is loaded on first use, such as PyTorch with a BLAS of its own, is no change of a setting.
    WORK[name]()
    seeded(seed)
    before, threads = surroundings(), blas()
    found = digest(name)
    after = surroundings()
    changed = [key for key in before if before[key] != after[key]]
    return found, changed + ([] if blas() == threads else ["blas"])


def distributed_gradient(rank, network, x, folder):
    """Leave in a file the gradient of one of two processes, each with half of the batch."""
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    module = torch.nn.parallel.DistributedDataParallel(pg.torch.PhaseNetwork(network, dtype=torch.float64))
    module(x.chunk(2)[rank]).square().mean().backward()
    torch.save({name: p.grad for name, p in module.module.named_parameters()}, f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()
