"""Commands about the paper's claims: `reproduce`, `studies`, `verify`, `draw`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from phasegrad._files import printable
from phasegrad._validation import require
from phasegrad.cli.completing import one_of
from phasegrad.cli.signals import STOPPED
from phasegrad.cli.words import (
    LARGEST_SEED,
    RESULTS,
    Json,
    check_places,
    failed,
    progress_bar,
    put,
    put_json,
    require_torch,
    tables,
    whole_numbers,
)
from phasegrad_paper.studies import ON_REQUEST, STUDIES, Piece, Study

#: How the commands are used, for their help.
EXAMPLES = {
    "reproduce": ("phasegrad reproduce ablation --seeds 20 --out pilot --open",),
    "studies": ("phasegrad studies --json studies.json",),
    "verify": ("phasegrad verify --sizes 6,10,50 --seeds 5 --json verify.json",),
    "draw": ("phasegrad draw two-phase.svg --seed 3 --beta 0.05",),
}


#: Worker processes for each processor above which a number of them is taken for a slip.
_CROWD = 4
_NAMES = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="STUDY",
        autocompletion=one_of(lambda: [study.name for study in (*STUDIES, *ON_REQUEST)]),
        help="Studies to run; if none is named those of the paper, without images, circuit, transition and ising.",
    ),
]
_IMAGES, _CIRCUIT = "images", "circuit"
_HOW, _PICTURES = "How", "The study of images"
_Seeds = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", rich_help_panel=_HOW, help="Hold every study to at most this many seeds."),
]
_Workers = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", rich_help_panel=_HOW, help="Processes to run (default: one per processor)."),
]
_Cluster = Annotated[
    str | None, typer.Option(metavar="ADDRESS", rich_help_panel=_HOW, help="A dask scheduler to run on instead.")
]
_Device = Annotated[
    str | None,
    typer.Option(
        metavar="WORD", rich_help_panel=_PICTURES, autocompletion=one_of(lambda: ("cuda", "cpu")),
        help="Where to train, cuda (default) or cpu.",
    ),
]  # fmt: skip
_Data = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", rich_help_panel=_PICTURES, help="Of their files (default: PHASEGRAD_DATA names it)."
    ),
]
_Out = Annotated[
    Path, typer.Option(metavar="FOLDER", rich_help_panel=RESULTS, help="For the page and everything behind it.")
]
_Fresh = Annotated[
    bool, typer.Option("--fresh", rich_help_panel=RESULTS, help="Delete an earlier reproduction in the folder first.")
]
_Open = Annotated[bool, typer.Option("--open", rich_help_panel=RESULTS, help="Open the page in a browser at the end.")]


def reproduce(
    names: _NAMES = None,
    seeds: _Seeds = None,
    workers: _Workers = None,
    cluster: _Cluster = None,
    device: _Device = None,
    data: _Data = None,
    out: _Out = Path("reproduction"),
    fresh: _Fresh = False,
    show: _Open = False,
) -> None:
    """Reproduce the paper: every table, figure and claim, with controls and verdicts, on one page.

    Stopped at any moment, the same command goes on where it stopped and ends with the same results.

    The page covers the studies named and every other study that the folder already holds.

    Exit status: 0 when the page is written, whatever the verdicts; 1 if a piece of work failed; 2 for wrong input.
    """
    from phasegrad.circuits import ngspice_version
    from phasegrad_paper import reproduction
    from phasegrad_paper.progress import ReproductionProgress
    from phasegrad_paper.report import verdict_tables
    from phasegrad_paper.studies import choose

    chosen = _with_images(choose(names or ()), device, data)
    if any(study.name == _CIRCUIT for study in chosen):
        ngspice_version()  # says how to get it where there is none
    if workers is None and cluster is None and any(study.name == _IMAGES for study in chosen):
        workers = 1  # one GPU is for one run at a time
    _check_workers(workers, cluster)
    require(("matplotlib", "jinja2", "statsmodels"), "report", "phasegrad reproduce")
    from phasegrad_paper.report import write_report

    progress = ReproductionProgress()
    try:
        with progress:
            found = reproduction.reproduce(
                chosen, out, seeds=seeds, workers=workers, cluster=cluster, fresh=fresh, progress=progress
            )
        with Console(stderr=True).status("drawing the page ..."):
            write_report(out, found)
    except KeyboardInterrupt:
        tally = progress.tally
        kept = "Nothing was finished" if tally is None else f"{tally.pieces_done} of {tally.pieces} pieces are kept"
        typer.echo(f"Stopped. {kept}; the same command goes on from there.", err=True)
        raise typer.Exit(STOPPED) from None
    except reproduction.PieceError as error:
        raise failed(error) from None
    Console().print(verdict_tables(found))
    page = out.absolute() / "index.html"
    typer.echo(f"Wrote {printable(page)}")
    if show:
        webbrowser.open(page.as_uri())


def _check_workers(workers: int | None, cluster: str | None) -> None:
    from phasegrad.training import processors

    if workers is not None and cluster is not None:
        raise ValueError("--workers has no effect with --cluster, which brings its own. Leave one of them out.")
    if workers is not None and workers > _CROWD * processors():
        raise ValueError(
            f"--workers must be at most {_CROWD} for each processor, {_CROWD * processors()} here. "
            f"Got {workers!s:.80}: more would only take memory."
        )


def _with_images(chosen: tuple[Study, ...], device: str | None, data: Path | None) -> tuple[Study, ...]:
    """Return the studies, that of images on its device; refuse options that would have no effect."""
    from phasegrad_paper.studies import images_study

    if not any(study.name == _IMAGES for study in chosen):
        for word, given in (("--device", device), ("--data", data)):
            if given is not None:
                raise ValueError(f"{word} is for the study {_IMAGES}. Leave it out, or name that study.")
        return chosen
    require_torch(f"phasegrad reproduce {_IMAGES}", device or "cuda")
    ours = images_study(device or "cuda", None if data is None else str(data.absolute()))
    return tuple(ours if study.name == _IMAGES else study for study in chosen)


def studies(json: Json = None) -> None:
    """List the studies: what each asks, its claims, and where they stand in the paper."""
    from phasegrad_paper.report import studies_table

    check_places(json)
    tables(json).print(studies_table(STUDIES, ON_REQUEST))
    put_json(json, [_as_dict(study) for study in (*STUDIES, *ON_REQUEST)])


def _as_dict(study: Study) -> dict[str, Any]:
    words = {name: getattr(study, name) for name in ("name", "title", "question", "protocol")}
    claims = [
        {name: getattr(claim, name) for name in ("key", "sentence", "where", "published")} | {"rule": claim.asks}
        for claim in study.claims
    ]
    return {**words, "claims": claims}


def verify(
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="SIZES", help="Network sizes of Table 1 and the universality table (default: as published)."
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="At most so many seeds wherever a study runs over seeds (default: as published)."
        ),
    ] = None,
    json: Json = None,
) -> None:
    """Check the phase-gradient identity by every method, and the paper's sections 3 to 5 with it.

    Exit status: 0 if every check keeps its tolerance, 1 if one misses it or fails, 2 for wrong input.
    """
    from phasegrad_paper.report import verification_tables
    from phasegrad_paper.reproduction import PieceError, verify as run
    from phasegrad_paper.studies import SIZES, verification_studies

    chosen = SIZES if sizes is None else whole_numbers("sizes", sizes)
    total = sum(len(study.plan(seeds)) for study in verification_studies(chosen))
    check_places(json)
    started: list[str] = []
    try:
        with progress_bar("{task.completed} of {task.total}") as progress:
            task = progress.add_task("starting", total=total)

            def show(piece: Piece) -> None:
                progress.update(task, description=piece.title, completed=len(started))
                started.append(piece.title)

            result = run(chosen, seeds, show)
    except KeyboardInterrupt:
        typer.echo(f"Stopped in piece {len(started)} of {total}; nothing was written.", err=True)
        raise typer.Exit(STOPPED) from None
    except PieceError as error:
        raise failed(error) from None
    tables(json).print(verification_tables(result))
    put_json(json, result.as_dict())
    raise typer.Exit(1 if result.missed else 0)


def draw(
    path: Annotated[Path, typer.Argument(help="Picture to write; ends in .svg, .png or .pdf.")],
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, metavar="N", help="Seed of the 2+5+2 network.")] = 0,
    beta: Annotated[float, typer.Option(min=1e-9, max=1e3, metavar="X", help="Strength of the nudge.")] = 0.1,
) -> None:
    """Draw the two-phase protocol on the paper's 2+5+2 network: settle, nudge, read the gradient."""
    from phasegrad_paper.report import draw_two_phase

    check_places(picture=path)
    put(path, lambda place: draw_two_phase(place, seed=seed, beta=beta))
