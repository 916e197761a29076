"""`reproduce`: from studies to what they found, by way of a folder that keeps what is finished."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path

from phasegrad._validation import require, whole_number
from phasegrad.training import processors
from phasegrad_paper.reproduction.cluster import cluster_runner
from phasegrad_paper.reproduction.execution import Answer, Runner, run_here
from phasegrad_paper.reproduction.folder import ResultsFolder, open_folder
from phasegrad_paper.reproduction.identity import Identity
from phasegrad_paper.reproduction.result import Reproduction
from phasegrad_paper.studies import ON_REQUEST, STUDIES, Piece, Study


class PieceError(RuntimeError):
    """A piece failed; the finished ones are kept. Tracebacks of the pieces are its notes."""


@dataclass(frozen=True)
class Tally:
    """How far a reproduction is."""

    done: dict[str, int]  # pieces per study; one that several studies share counts for each of them
    total: dict[str, int]
    pieces_done: int  # different pieces
    pieces: int
    weight_done: float  # their weights: work left takes about as long as work done, weight by weight
    weight: float


def reproduce(
    studies: Sequence[Study],
    folder: str | PathLike[str],
    *,
    seeds: int | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    fresh: bool = False,
    progress: Callable[[Tally], object] | None = None,
) -> Reproduction:
    """Run the pieces of some studies that are not in the folder yet, and return what all of them show.

    Interrupted or killed at any moment, it goes on where it stopped when it is called again, and ends with the same
    results. With more than one worker, call it under ``if __name__ == "__main__"``.

    Parameters
    ----------
    studies : sequence of Study
        What to run; see `phasegrad_paper.studies.registry.choose`.
    folder : path
        New, empty, or left by an earlier call with the same code, packages and seeds; gets ``results.json``.
    seeds : int, optional
        Hold every study to this many seeds; as published if left out.
    workers : int, optional
        Processes to run side by side; as many as there are processors if left out. With 1 all runs in this process.
    cluster : str, optional
        Address of a dask scheduler to run the pieces instead.
    fresh : bool
        Delete an earlier reproduction in the folder first.
    progress : callable, optional
        Called with a `Tally` at the start and after every piece.

    Returns
    -------
    Reproduction
        Of these studies and of every other one whose pieces are all in the folder.

    Examples
    --------
    >>> import tempfile
    >>> from phasegrad_paper.reproduction import reproduce
    >>> from phasegrad_paper.studies import choose
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = reproduce(choose(["finite-beta"]), folder, seeds=2, workers=1)
    >>> [judgement.verdict.value for judgement in found.judgements]
    ['not decided by these data', 'reproduced']
    """
    if not studies:
        raise ValueError("The 'studies' parameter of reproduce must hold at least one study.")
    if seeds is not None:
        whole_number("seeds", seeds, 1, "reproduce")
    count = processors() if workers is None else whole_number("workers", workers, 1, "reproduce")
    require(("statsmodels",), "report", "A reproduction")
    plans = {study.name: study.plan(seeds) for study in studies}
    # The cluster first: a folder is not emptied for a run that cannot begin.
    with _runner(count, cluster) as run, open_folder(Path(folder), Identity.here(seeds), fresh=fresh) as place:
        _run_missing(run, place, plans, progress or (lambda _tally: None))
        covered = _covered(studies, plans, seeds, place)
        outcomes = {
            study.name: study.assess({name: place.results[piece.identity] for name, piece in plan.items()}, seeds, plan)
            for study, plan in covered
        }
        reproduction = Reproduction(tuple(study for study, _ in covered), outcomes, seeds)
        place.write_results(reproduction.as_dict())
    return reproduction


@contextmanager
def _runner(workers: int, cluster: str | None) -> Iterator[Runner]:
    if cluster is None:
        yield partial(run_here, workers=workers)
    else:
        with cluster_runner(cluster) as run:
            yield run


def _run_missing(
    run: Runner, folder: ResultsFolder, plans: dict[str, dict[str, Piece]], progress: Callable[[Tally], object]
) -> None:
    """Run what the folder does not hold, and keep every answer as it arrives."""
    pieces: dict[str, Piece] = {}
    owners: dict[str, list[str]] = {}
    for name, plan in plans.items():
        for piece in plan.values():
            pieces.setdefault(piece.identity, piece)
            owners.setdefault(piece.identity, []).append(name)
    missing = [piece for identity, piece in pieces.items() if identity not in folder.results]
    failed: list[tuple[Piece, Answer]] = []
    progress(_tally(pieces, owners, folder))
    with closing(run(missing)) as answers:
        for piece, answer in answers:
            if answer.error:
                failed.append((piece, answer))
                continue
            folder.keep(piece, answer)
            for words in answer.warnings:
                warnings.warn(f"{piece.title}: {words}", stacklevel=4)
            progress(_tally(pieces, owners, folder))
    if failed:
        raise _piece_error(failed, owners, folder)


def _tally(pieces: dict[str, Piece], owners: dict[str, list[str]], folder: ResultsFolder) -> Tally:
    done, total = ({name: 0 for names in owners.values() for name in names} for _ in range(2))
    for identity, names in owners.items():
        for name in names:
            total[name] += 1
            done[name] += identity in folder.results
    finished = [piece for identity, piece in pieces.items() if identity in folder.results]
    weights = (sum(piece.weight for piece in group) for group in (finished, pieces.values()))
    return Tally(done, total, len(finished), len(pieces), *weights)


def _piece_error(failed: list[tuple[Piece, Answer]], owners: dict[str, list[str]], folder: ResultsFolder) -> PieceError:
    first, answer = failed[0]
    others = "" if len(failed) == 1 else f" {len(failed) - 1} more failed: {', '.join(p.title for p, _ in failed[1:])}."
    kept = "1 finished piece is" if len(folder.results) == 1 else f"{len(folder.results)} finished pieces are"
    error = PieceError(
        f"The piece {first.title!r} of the study {owners[first.identity][0]!r} failed: {answer.error}.{others} "
        f"{kept} kept in {folder.path}; the same command tries the rest again."
    )
    for piece, each in failed:
        error.add_note(f"{piece.title}: {each.trace}")
    return error


def _covered(
    studies: Sequence[Study], plans: dict[str, dict[str, Piece]], seeds: int | None, folder: ResultsFolder
) -> list[tuple[Study, dict[str, Piece]]]:
    """Return the studies asked for and every other one that the folder already holds, each with its plan.

    Studies of the paper come first, in its order, then those on request.
    """
    asked = {study.name: study for study in studies}
    known = {study.name: study for study in (*STUDIES, *ON_REQUEST)} | asked
    found = []
    for name, study in known.items():
        if name in asked:
            found.append((study, plans[name]))
            continue
        plan = study.plan(seeds)
        if plan and all(piece.identity in folder.results for piece in plan.values()):
            found.append((study, plan))
    return found
