"""The command about time: `simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from phasegrad.cli.words import LARGEST_SEED, Json, check_places, progress_bar, put, put_json, tables

_MOST_TIMES = 100_000


def simulate(
    network: Annotated[
        str,
        typer.Argument(help="ring, complete, mean-field, small-world or layered; or a model file of phasegrad train."),
    ],
    size: Annotated[int | None, typer.Option(min=3, max=1_000_000, help="Oscillators of a named network.")] = None,
    coupling: Annotated[float | None, typer.Option(min=1e-9, help="Coupling of a named network.")] = None,
    spread: Annotated[
        float | None, typer.Option(min=0.0, help="Standard deviation of a named network's frequencies.")
    ] = None,
    inputs: Annotated[
        str | None, typer.Option(help="Values of the inputs, by commas, as the network takes them.")
    ] = None,
    time: Annotated[float, typer.Option(min=1e-9, help="How long to follow the network.")] = 50.0,
    times: Annotated[int, typer.Option(min=2, max=_MOST_TIMES, help="How many times to look.")] = 201,
    start: Annotated[str, typer.Option(help="Phases at first: random or zero.")] = "random",
    noise: Annotated[float, typer.Option(min=0.0, help="Strength D of the noise on every phase.")] = 0.0,
    inertia: Annotated[float | None, typer.Option(help="Inertia of every oscillator (default: none).")] = None,
    damping: Annotated[float, typer.Option(help="Damping of every oscillator.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Seed of frequencies, phases and noise.")] = 0,
    json: Json = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the run here; ends in .svg, .png or .pdf.")] = None,
) -> None:
    """Follow a network of oscillators in time: synchrony, frequencies, and who is locked.

    Exit status: 0 if all oscillators are locked at the end, 1 if some drift, 2 for wrong input.
    """
    from phasegrad.report import draw_run, run_table
    from phasegrad.runs import network_in_time
    from phasegrad.simulation import simulate as run

    model = Path(network)
    is_file = model.exists()
    check_places(json, picture=plot, inputs=[model] if is_file else [])
    chosen = network_in_time(network, seed, size=size, coupling=coupling, spread=spread)
    driven = None if inputs is None else _numbers(inputs)
    moments = np.linspace(0.0, time, times)
    with progress_bar("time {task.completed:.3g} of {task.total:.3g}") as bar:
        task = bar.add_task("simulating", total=time)
        found = run(
            chosen, moments, start=start, inputs=driven, noise=noise, inertia=inertia, damping=damping, seed=seed,
            progress=lambda moment: bar.update(task, completed=moment),
        )  # fmt: skip
    tables(json).print(run_table(found))
    put(plot, lambda place: draw_run(found, place), json=json)
    put_json(json, found.as_dict())
    raise typer.Exit(0 if bool(found.locked.all()) else 1)


def _numbers(text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"--inputs must be numbers separated by commas, such as 0.5,-0.2. Got {text!r:.80}.") from None
