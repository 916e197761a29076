"""Commands that check and show: `verify`, `draw`, `bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import phasegrad
from phasegrad.cli.words import check_place, whole_numbers
from phasegrad.studies import identity, verification

_SIZES = ",".join(map(str, identity.SIZES))


def verify(
    sizes: Annotated[
        str, typer.Option(help="Network sizes of Table 1 and the universality table, separated by commas.")
    ] = _SIZES,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Seeds to use wherever a study runs over seeds (default: as published).")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Also write every figure to this JSON file.")] = None,
) -> None:
    """Check the phase-gradient identity by every method, and the paper's sections 3 to 5 with it.

    Exit status: 0 if every check keeps its tolerance, 1 if one misses it, 2 for wrong input.
    """
    from phasegrad.files import write_json
    from phasegrad.report.console import verification_tables

    pieces = verification.plan(whole_numbers("sizes", sizes), seeds)
    if json is not None:
        check_place(json)
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
                findings.append(piece.function(**piece.arguments))
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


def draw(
    path: Annotated[Path, typer.Argument(help="Picture to write; ends in .svg, .png or .pdf.")],
    seed: Annotated[int, typer.Option(min=0, help="Seed of the 2+5+2 network.")] = 0,
    beta: Annotated[float, typer.Option(help="Strength of the nudge.")] = 0.1,
) -> None:
    """Draw the two-phase protocol on the paper's 2+5+2 network: settle, nudge, read the gradient."""
    from phasegrad.report.figures import draw_two_phase

    check_place(path)
    network = phasegrad.layered(2, 5, 2, seed=seed)
    # Stronger inputs and targets than in training, so that the phases can be seen.
    equilibrium = phasegrad.find_equilibrium(network, [3.0, -2.5])
    draw_two_phase(network, equilibrium, phasegrad.PhaseTargets(), [-1.2, 0.6], beta=beta, path=path)
    typer.echo(f"Wrote {path}")


def bench(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of which the median is taken.")] = 3,
    largest: Annotated[
        int,
        typer.Option(min=10_000, help="Oscillators of the largest sparse network, in steps of ten from 10000."),
    ] = 1_000_000,
    plot: Annotated[Path | None, typer.Option(help="Draw the growth with size; ends in .svg, .png or .pdf.")] = None,
    json: Annotated[Path | None, typer.Option(help="Also write every figure to this JSON file.")] = None,
) -> None:
    """Compare speed with the plain way: scipy's fsolve, sample by sample. CPU time, medians, within one run."""
    from phasegrad.benchmarks.batch import batch
    from phasegrad.benchmarks.foundation import foundation
    from phasegrad.benchmarks.small import small
    from phasegrad.benchmarks.sparse import SIZES, sparse
    from phasegrad.files import write_json
    from phasegrad.report.batch import batch_table
    from phasegrad.report.console import benchmark_tables
    from phasegrad.report.sparse import draw_growth, sparse_tables

    for place in (json, plot):
        if place is not None:
            check_place(place)
    console = Console(stderr=True)
    with console.status("training 100 small networks, the plain way and in lanes ..."):
        figures = {"small": small(rounds)}
    with console.status("equilibria and gradients ..."):
        figures["foundation"] = foundation()
    with console.status("a batch of samples on one network ..."):
        figures["batch"] = batch(rounds)
    with console.status("large sparse networks ..."):
        figures["sparse"] = sparse(tuple(n for n in SIZES if n <= largest))
    Console().print(benchmark_tables(figures), batch_table(figures["batch"]), sparse_tables(figures["sparse"]))
    if plot is not None:
        draw_growth(figures["sparse"], plot)
        typer.echo(f"Wrote {plot}")
    if json is not None:
        write_json(json, figures)
        typer.echo(f"Wrote {json}")
