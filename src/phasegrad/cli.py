"""The command line: words to calls."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import phasegrad
from phasegrad.studies import identity, verification

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Learning in networks of coupled oscillators: certified equilibria and exact gradients.",
)


def main() -> None:
    """Run the command line; errors a user can mend are one sentence, not a traceback."""
    try:
        app(standalone_mode=True)
    except (ValueError, ImportError, OSError) as error:
        Console(stderr=True).print(f"[red]Error:[/red] {error}", soft_wrap=True, highlight=False)
        sys.exit(2)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"phasegrad {phasegrad.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Learning in networks of coupled oscillators: certified equilibria and exact gradients."""
    del version


@app.command(epilog="Example: phasegrad verify --sizes 6,10,50 --seeds 5 --json verify.json")
def verify(
    sizes: Annotated[
        str, typer.Option(help="Network sizes of Table 1 and the universality table, separated by commas.")
    ] = ",".join(str(n) for n in identity.SIZES),
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Seeds to use wherever a study runs over seeds [default: as published].")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Also write every figure to this JSON file.")] = None,
) -> None:
    """Check the phase-gradient identity by every method, and the paper's sections 3 to 5 with it.

    Exit status: 0 if every check keeps its tolerance, 1 if one misses it, 2 for wrong input.
    """
    from phasegrad.report.console import verification_tables
    from phasegrad.report.files import write_json

    pieces = verification.plan(_numbers("sizes", sizes), seeds)
    if json is not None:
        _check_place(json)
    progress = Progress(
        TextColumn("{task.description:<24}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    findings = []
    try:
        with progress:
            task = progress.add_task("starting", total=sum(piece.weight for piece in pieces))
            for piece in pieces:
                progress.update(task, description=piece.title)
                findings.append(piece.run())
                progress.advance(task, piece.weight)
    except KeyboardInterrupt:
        typer.echo(f"Stopped after {len(findings)} of {len(pieces)} pieces; nothing was written.", err=True)
        raise typer.Exit(130) from None
    result = verification.assemble(pieces, findings)
    Console().print(verification_tables(result))
    if json is not None:
        write_json(json, result.as_dict())
        typer.echo(f"Wrote {json}")
    raise typer.Exit(0 if result.passed else 1)


@app.command(epilog="Example: phasegrad draw two-phase.svg --seed 3 --beta 0.05")
def draw(
    path: Annotated[Path, typer.Argument(help="Picture to write; ends in .svg, .png or .pdf.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the 2+5+2 network.")] = 0,
    beta: Annotated[float, typer.Option(help="Strength of the nudge.")] = 0.1,
) -> None:
    """Draw the two-phase protocol on the paper's 2+5+2 network: settle, nudge, read the gradient."""
    from phasegrad.report.figures import draw_two_phase

    _check_place(path)
    network = phasegrad.layered(2, 5, 2, seed=seed)
    equilibrium = phasegrad.find_equilibrium(network, [0.8, -0.6])
    draw_two_phase(network, equilibrium, phasegrad.PhaseTargets(), [-0.5, 0.5], beta=beta, path=path)
    typer.echo(f"Wrote {path}")


def _numbers(name: str, text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",") if word.strip()]
    except ValueError:
        raise ValueError(
            f"--{name} must be whole numbers separated by commas, such as 6,10,50. Got {text!r}."
        ) from None


def _check_place(path: Path) -> None:
    """Refuse a place that cannot be written to before any work is done."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder. Name a file.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"The folder {path.absolute().parent} does not exist. Make it first, or name another place.")
