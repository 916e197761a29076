"""The command `predict`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import phasegrad
from phasegrad._files import printable
from phasegrad.cli.words import RESULTS, Json, check_places, put, put_json, tables

#: How the commands are used, for their help.
EXAMPLES = {
    "predict": ("phasegrad predict model.npz samples.csv --out answers.csv --json answers.json",),
}


def predict(
    model: Annotated[Path, typer.Argument(help="Model file that `phasegrad train --save` wrote.")],
    samples: Annotated[Path, typer.Argument(help="CSV file whose header names the model's features.")],
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows in which a feature is missing.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", rich_help_panel=RESULTS, help="Write the rows with their answers, a .csv file."),
    ] = None,
    json: Json = None,
) -> None:
    """Answer the rows of a CSV file with a trained model; columns that are not features are ignored."""
    from phasegrad.cli.tables.train import prediction_table
    from phasegrad.runs import read_samples, write_answers

    check_places(json, table=out, inputs=[model, samples])
    loaded = phasegrad.Model.load(model)
    with Console(stderr=True).status(f"answering {printable(samples)} ..."):
        read = read_samples(samples, loaded.features, drop_missing=drop_missing, keep=out is not None)
        answer = loaded.predict(read.x)
    tables(json).print(prediction_table(answer, loaded.classes, read.dropped))
    stable = answer.equilibrium.stable.tolist()
    values = {} if answer.values is None else dict(zip(loaded.classes, answer.values.T.tolist(), strict=True))
    put(out, lambda place: write_answers(place, read, values or {"class": answer.names}, stable), json=json)
    found = {"classes": answer.names} if answer.values is None else {"values": answer.values.tolist()}
    put_json(json, {**found, "stable": stable})
