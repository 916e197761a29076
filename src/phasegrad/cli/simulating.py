"""The command about time: `simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from phasegrad._files import printable
from phasegrad.cli.completing import one_of
from phasegrad.cli.words import LARGEST_SEED, RESULTS, Json, check_places, progress_bar, put, put_json, tables

_MOST_TIMES = 100_000


_NAMED, _RUN = "The network", "The run"

_Network = Annotated[
    str,
    typer.Argument(
        metavar="NETWORK", autocompletion=one_of(lambda: ("ring", "complete", "mean-field", "small-world", "layered")),
        help="ring, complete, mean-field, small-world or layered; or a model file of phasegrad train.",
    ),
]  # fmt: skip
_Size = Annotated[
    int | None,
    typer.Option(min=3, max=1_000_000, metavar="N", rich_help_panel=_NAMED, help="Oscillators of a named network."),
]
_Coupling = Annotated[
    float | None, typer.Option(min=1e-9, metavar="X", rich_help_panel=_NAMED, help="Coupling of a named network.")
]
_Spread = Annotated[
    float | None,
    typer.Option(
        min=0.0, metavar="X", rich_help_panel=_NAMED, help="Standard deviation of a named network's frequencies."
    ),
]
_Inputs = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBERS", rich_help_panel=_NAMED, help="Values of the inputs, by commas, as the network takes them."
    ),
]
_Time = Annotated[
    float, typer.Option(min=1e-9, metavar="X", rich_help_panel=_RUN, help="How long to follow the network.")
]
_Times = Annotated[
    int, typer.Option(min=2, max=_MOST_TIMES, metavar="N", rich_help_panel=_RUN, help="How many times to look.")
]
_Start = Annotated[
    str,
    typer.Option(
        metavar="WORD", rich_help_panel=_RUN, autocompletion=one_of(lambda: ("random", "zero")),
        help="Phases at first: random or zero.",
    ),
]  # fmt: skip
_Noise = Annotated[
    float, typer.Option(min=0.0, metavar="X", rich_help_panel=_RUN, help="Strength D of the noise on every phase.")
]
_Inertia = Annotated[
    float | None, typer.Option(metavar="X", rich_help_panel=_RUN, help="Inertia of every oscillator (default: none).")
]
_Damping = Annotated[float, typer.Option(metavar="X", rich_help_panel=_RUN, help="Damping of every oscillator.")]
_Seed = Annotated[
    int,
    typer.Option(
        min=0, max=LARGEST_SEED, metavar="N", rich_help_panel=_RUN, help="Seed of frequencies, phases and noise."
    ),
]
_Plot = Annotated[
    Path | None,
    typer.Option(metavar="FILE", rich_help_panel=RESULTS, help="Draw the run here; ends in .svg, .png or .pdf."),
]


def simulate(
    network: _Network,
    size: _Size = None,
    coupling: _Coupling = None,
    spread: _Spread = None,
    inputs: _Inputs = None,
    time: _Time = 50.0,
    times: _Times = 201,
    start: _Start = "random",
    noise: _Noise = 0.0,
    inertia: _Inertia = None,
    damping: _Damping = 1.0,
    seed: _Seed = 0,
    json: Json = None,
    plot: _Plot = None,
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
    if inputs is not None and not chosen.inputs:
        raise ValueError(f"--inputs has no effect on {printable(network)}, which has no inputs. Leave it out.")
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
