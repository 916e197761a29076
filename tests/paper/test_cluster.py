"""A real dask cluster of two worker processes computes what one process computes, also when a worker is killed."""

import logging
import os
import signal
import socket

import piece_functions as functions
import pytest

from phasegrad_paper.reproduction import PieceError, identity as identities, reproduce
from phasegrad_paper.studies import Piece

distributed = pytest.importorskip("distributed")
# Worker processes that are killed leave their sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=logging.CRITICAL
    ) as running:
        yield running


def results(folder) -> bytes:
    return (folder / "results.json").read_bytes()


def test_a_killed_worker_changes_nothing(cluster, tmp_path):
    study = functions.drawing_study(8, pause=0.1)
    victim = cluster.workers[0].pid
    killed = []

    def kill_once(tally):
        if tally.pieces_done == 2 and not killed:
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    reproduce([study], tmp_path / "cluster", cluster=cluster.scheduler_address, progress=kill_once)
    assert killed
    reproduce([study], tmp_path / "here", workers=1)
    assert results(tmp_path / "cluster") == results(tmp_path / "here")


def test_a_failing_piece_is_named_and_the_others_are_kept(cluster, tmp_path):
    pieces = {f"good {k}": Piece(f"good {k}", functions.draw, {"seed": k}) for k in range(3)}
    pieces["bad"] = Piece("bad", functions.fail, {"seed": 3}, weight=2.0)
    with pytest.raises(PieceError, match=r"'bad' of the study 'mixed' failed: ZeroDivisionError.*3 finished pieces"):
        reproduce([functions.study("mixed", pieces)], tmp_path, cluster=cluster.scheduler_address)
    assert len(list((tmp_path / "pieces").iterdir())) == 3


def test_workers_with_other_packages_are_refused(cluster, tmp_path, monkeypatch):
    versions = identities.versions() | {"numpy": "0.1"}
    monkeypatch.setattr(identities, "versions", lambda: versions)
    with pytest.raises(ValueError, match=r"The worker tcp\S+ has numpy \S+ instead of 0.1. Install there what is"):
        reproduce([functions.drawing_study(1)], tmp_path / "out", cluster=cluster.scheduler_address)
    assert not (tmp_path / "out").exists()


def test_a_scheduler_without_workers_is_said(tmp_path):
    with (
        distributed.LocalCluster(n_workers=0, processes=True, dashboard_address=":0") as empty,
        pytest.raises(ValueError, match=r"has no workers. Start some with 'dask worker tcp://"),
    ):
        reproduce([functions.drawing_study(1)], tmp_path / "out", cluster=empty.scheduler_address)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("address", ["nonsense", "foo://x", "tcp://localhost", ""])
def test_what_is_no_address_is_said(tmp_path, address):
    with pytest.raises(ValueError, match=r"--cluster must be the address of a dask scheduler, such as tcp://127.0.0.1"):
        reproduce([functions.drawing_study(1)], tmp_path / "out", cluster=address)


def test_where_nothing_answers_it_is_said_and_nothing_is_deleted(tmp_path, monkeypatch):
    from phasegrad_paper.reproduction import cluster as module

    monkeypatch.setattr(module, "SECONDS_TO_CONNECT", 1)
    study = functions.drawing_study(1)
    reproduce([study], tmp_path, workers=1)
    before = results(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound, but nobody listens
        with pytest.raises(OSError, match=r"No dask scheduler answered at tcp.* within 1 seconds. Start one with"):
            reproduce([study], tmp_path, fresh=True, cluster=f"tcp://127.0.0.1:{free.getsockname()[1]}")
    assert results(tmp_path) == before
