"""The command about time: `simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from phasegrad._files import printable
from phasegrad._validation import parse_float
from phasegrad.cli.completing import one_of
from phasegrad.cli.words import LARGEST_SEED, RESULTS, Json, check_places, progress_bar, put, put_json, tables

#: How the commands are used, for their help.
EXAMPLES = {
    "simulate": ("phasegrad simulate ring --size 12 --time 50 --noise 0.01 --plot run.png",),
}


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
    typer.Option(
        min=3, max=1_000_000, metavar="N", rich_help_panel=_NAMED,
        help="Oscillators of a named network (default: 10, small-world 50, mean-field 1000).",
    ),
]  # fmt: skip
_Coupling = Annotated[
    float | None,
    typer.Option(
        min=1e-9, metavar="X", rich_help_panel=_NAMED,
        help="Coupling of a named network (default: 1); complete and mean-field divide it by their size.",
    ),
]  # fmt: skip
_Spread = Annotated[
    float | None,
    typer.Option(
        min=0.0, metavar="X", rich_help_panel=_NAMED,
        help="Standard deviation of a named network's frequencies (default: 0.3).",
    ),
]  # fmt: skip
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
    float | None,
    typer.Option(min=1e-9, metavar="X", rich_help_panel=_RUN, help="Inertia of every oscillator (default: none)."),
]
_Damping = Annotated[
    float, typer.Option(min=0.0, metavar="X", rich_help_panel=_RUN, help="Damping; with inertia it may be 0.")
]
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
    from phasegrad.cli.tables.simulate import draw_run, run_table
    from phasegrad.runs import network_in_time
    from phasegrad.simulation import simulate as run

    model = Path(network)
    is_file = model.exists()
    check_places(json, picture=plot, inputs=[model] if is_file else [])
    chosen = network_in_time(network, seed, size=size, coupling=coupling, spread=spread)
    driven = _driven(inputs, len(chosen.inputs), printable(network), needed=chosen.clamps_inputs)
    if damping == 0 and inertia is None:
        raise ValueError("--damping must be above 0 without --inertia: no force could move an oscillator.")
    moments = np.linspace(0.0, time, times)
    with progress_bar("time {task.completed:.3g} of {task.total:.3g}") as bar:
        task = bar.add_task("simulating", total=time)
        found = run(
            chosen, moments, start=start, inputs=driven, noise=noise, inertia=inertia, damping=damping, seed=seed,
            progress=lambda moment: bar.update(task, completed=moment),
        )  # fmt: skip
    tables(json).print(run_table(found))
    put(plot, lambda place: draw_run(found, place), json=json)
    settings = {"network": network, "size": chosen.size, "coupling": coupling, "spread": spread, "inputs": driven}
    settings |= {"start": start, "noise": noise, "inertia": inertia, "damping": damping, "seed": seed}
    put_json(json, {"settings": settings, **found.as_dict()})
    raise typer.Exit(0 if bool(found.locked.all()) else 1)


def _driven(text: str | None, number: int, network: str, *, needed: bool) -> list[float] | None:
    """Return the values of the inputs, as many as a network has."""
    wanted = "one number" if number == 1 else f"{number} numbers separated by commas"
    if text is None:
        if needed:
            raise ValueError(f"--inputs is missing: {network} clamps the phases of its inputs. Give {wanted}.")
        return None
    if not number:
        raise ValueError(f"--inputs has no effect on {network}, which has no inputs. Leave it out.")
    try:
        values = [parse_float(word) for word in text.split(",")]
    except ValueError:
        values = []
    if len(values) != number or not np.all(np.isfinite(values)):
        raise ValueError(f"--inputs must be {wanted}, one for each input of {network}. Got {text!r:.80}.")
    return values
