"""What a call may not do to its process: results, threads and the user's settings in threads, forks and workers."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path

import joblib
import numpy as np
import pytest
import threadpoolctl
from process_functions import WORK, alone, blas, digest, equilibrium, multigrid, surroundings

import phasegrad as pg
from phasegrad import _process as process

NAMES = sorted(WORK)


@pytest.fixture(scope="module")
def serial():
    """The result of every piece of work, done here and one after another."""
    return {name: digest(name) for name in NAMES}


@pytest.fixture(autouse=True)
def three_blas_threads():
    """More than one, so that a limit can be seen, and no thread of this process as the only one that may limit them."""
    with threadpoolctl.threadpool_limits(limits=3, user_api="blas"):
        threadpoolctl.OpenBLASController.clear_controlling_thread(force=True)
        yield


def in_processes(context):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(context)) as pool:
        return list(pool.map(alone, NAMES, range(len(NAMES))))


def in_workers(backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        return joblib.Parallel()(joblib.delayed(alone)(name, seed) for seed, name in enumerate(NAMES))


@pytest.fixture(scope="module")
def found_in():
    """What came of every piece of work in each way of running it, all of them at once."""
    ways = {"fork": in_processes, "spawn": in_processes, "loky": in_workers}
    kept = {}

    def find(way):
        if way not in kept:
            kept[way] = dict(zip(NAMES, ways[way](way), strict=True))
        return kept[way]

    return find


@pytest.mark.parametrize(
    ("name", "way"),
    [
        # The normal run has each kind of work in one kind of process.
        pytest.param(name, way, marks=() if k % 3 == j else pytest.mark.slow)
        for k, name in enumerate(NAMES)
        for j, way in enumerate(("fork", "spawn", "loky"))
    ],
)
def test_other_processes_find_the_same_bits_and_stay_as_they_were(name, way, serial, found_in):
    """Each has another random state, error handling and filters of warnings."""
    assert found_in(way)[name] == (serial[name], [])


def by_threads(names):
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(digest, names))


def by_joblib_threads(names):
    return joblib.Parallel(n_jobs=4, backend="threading")(joblib.delayed(digest)(name) for name in names)


@pytest.mark.parametrize("run", [by_threads, by_joblib_threads])
@pytest.mark.parametrize("name", NAMES)
def test_four_threads_find_the_same_bits_and_leave_the_process_as_it_was(name, run, serial):
    before, threads = surroundings(), blas()
    assert set(run([name] * 4)) == {serial[name]}
    after = surroundings()
    assert [key for key in before if before[key] != after[key]] == []
    assert blas() == threads


def test_threads_with_different_work_do_not_disturb_each_other(serial):
    before, threads = surroundings(), blas()
    assert by_threads(NAMES) == [serial[name] for name in NAMES]
    assert surroundings() == before
    assert blas() == threads


def test_building_a_hierarchy_draws_nothing_from_the_global_stream(monkeypatch):
    """Not even by putting the stream back afterwards: another thread may draw from it meanwhile."""

    def drawn(*_, **__):
        raise AssertionError("something drew from NumPy's global stream")

    for name in (
        "rand",
        "randn",
        "random",
        "seed",
        "set_state",
        "randint",
        "permutation",
        "choice",
        "normal",
        "uniform",
    ):
        monkeypatch.setattr(np.random, name, drawn)
    multigrid()


def test_every_thread_inside_is_held_to_one_blas_thread_and_the_last_one_restores_them():
    """The first to come is the first to leave, and the last to leave is another thread than the first to come."""
    threads, seen = blas(), []
    first, second = process.one_blas_thread(), process.one_blas_thread()
    first.__enter__()

    def rest():
        with second:
            first_left.wait()
            seen.append(blas())

    first_left = threading.Event()
    other = threading.Thread(target=rest)
    other.start()
    while len(process._one_blas_thread._inside) < 2:
        time.sleep(0.001)
    first.__exit__(None, None, None)
    first_left.set()
    other.join()
    assert [count for _, count in seen[0]] == [1] * len(threads)
    assert blas() == threads


def test_a_limit_of_ones_own_on_another_thread_is_respected_afterwards():
    with ThreadPoolExecutor(1) as pool, threadpoolctl.threadpool_limits(limits=2, user_api="blas"):
        limited = blas()
        pool.submit(digest, "equilibrium").result()
        assert blas() == limited
    assert all(count == 3 for _, count in blas())


def test_torch_keeps_its_threads_when_others_start_meanwhile():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        by_threads(["gradients"] * 4)
        assert torch.get_num_threads() == 3
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(torch.get_num_threads).result() == 3
    finally:
        torch.set_num_threads(before)


def test_errors_in_threads_leave_blas_as_it_was():
    network, threads = pg.layered(3, 6, 2, seed=1), blas()

    class Broken:
        def solve(self, *_, **__):
            raise ArithmeticError

    def fail(k):
        with pytest.raises((ValueError, ArithmeticError)):
            pg.find_equilibrium(network, [np.nan if k % 2 else 0.0] * 3, solver=Broken())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fail, range(40)))
    assert blas() == threads


def interrupted(call, after):
    """Call something and send Ctrl-C so many seconds later, at whatever point it then is."""
    with suppress(KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, after)
        call()
        time.sleep(2 * after)
    signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.mark.parametrize("count", [100, pytest.param(3000, marks=pytest.mark.slow)])
def test_interrupts_leave_blas_as_it_was(count):
    """At random points of a call, entering and leaving among them; the short ones hit hardly anything else."""
    stream = np.random.default_rng(0)
    network, threads, filters = pg.layered(2, 3, 1, seed=1), blas(), list(warnings.filters)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)

    def short():
        for _ in range(1000):
            with process.one_blas_thread(), process.unwarned():
                pass

    # An interrupt inside a callback of the garbage collector, Hypothesis has one, would be told and then lost.
    gc.disable()
    try:
        for k in range(count):
            call = short if k % 4 else lambda: pg.find_equilibrium(network)
            interrupted(call, stream.uniform(1e-4, 3e-3))
            assert blas() == threads
            assert warnings.filters == filters
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()


@pytest.mark.parametrize("count", [20, pytest.param(400, marks=pytest.mark.slow)])
def test_a_fork_in_the_middle_of_another_threads_work_does_not_hang(count, serial):
    """The child has the forking thread alone: no lock that another held may keep it, nor another's limit."""
    going, threads = threading.Event(), blas()

    def work():
        while not going.is_set():
            with process.one_blas_thread(), process.unwarned():
                pass
            equilibrium()

    others = [threading.Thread(target=work) for _ in range(3)]
    for thread in others:
        thread.start()
    try:
        for _ in range(count):
            assert child_finds(lambda: digest("equilibrium") == serial["equilibrium"] and blas() == threads)
    finally:
        going.set()
        for thread in others:
            thread.join()
    assert blas() == threads


def child_finds(question, seconds=60.0):
    """Fork and return whether the child, in time, finds something to be so."""
    number = os.fork()
    if number == 0:
        status = 1
        try:
            status = 0 if question() else 1
        finally:
            os._exit(status)
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        done, status = os.waitpid(number, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.002)
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)
    return False


def test_a_fork_inside_keeps_the_limit_until_its_own_thread_leaves():
    threads = blas()
    with process.one_blas_thread():
        assert child_finds(lambda: all(count == 1 for _, count in blas()))
    hold = process.one_blas_thread()
    hold.__enter__()
    held = blas()

    def leave():
        hold.__exit__(None, None, None)
        return blas() == threads

    assert child_finds(leave)
    assert blas() == held != threads
    hold.__exit__(None, None, None)
    assert blas() == threads


def test_a_child_is_free_of_the_limit_that_another_thread_holds():
    inside, done, threads = threading.Event(), threading.Event(), blas()

    def hold():
        with process.one_blas_thread():
            inside.set()
            done.wait()

    other = threading.Thread(target=hold)
    other.start()
    inside.wait()
    try:
        assert blas() != threads
        assert child_finds(lambda: blas() == threads)
        assert blas() != threads
    finally:
        done.set()
        other.join()
    assert blas() == threads


def test_a_filter_set_meanwhile_stays_and_the_own_one_goes():
    before = list(warnings.filters)
    hold = process.unwarned()
    with warnings.catch_warnings():
        hold.__enter__()
        with warnings.catch_warnings():
            warnings.simplefilter("always", ResourceWarning)
            hold.__exit__(None, None, None)
            assert ("always", None, ResourceWarning, None, 0) in warnings.filters
        assert warnings.filters == before


def test_only_warnings_from_where_a_solver_called_are_kept_quiet_and_only_inside():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for hold in (nullcontext(), process.unwarned(), nullcontext()):
            with hold:
                for module in ("phasegrad.linearised._smallest", "scipy.sparse"):
                    warnings.warn_explicit("slow", UserWarning, f"{module}.py", 1, module=module)
    ours = "phasegrad.linearised._smallest.py"
    assert [each.filename for each in heard] == [ours, "scipy.sparse.py", "scipy.sparse.py", ours, "scipy.sparse.py"]


def test_importing_changes_nothing():
    # Two of SciPy's packages come with filters of warnings of their own, whoever loads them.
    code = (
        "import process_functions as f, numpy, scipy.sparse, scipy.special, threadpoolctl\n"
        "import sys; before = f.surroundings()\n"
        "for name in [n for n in sys.modules if n.startswith('phasegrad')]: del sys.modules[name]\n"
        "import phasegrad.estimators, phasegrad.cli, phasegrad_paper.studies; assert f.surroundings() == before"
    )
    path = os.pathsep.join([str(Path(__file__).parents[1] / "support"), os.environ.get("PYTHONPATH", "")])
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": path})
