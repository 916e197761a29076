"""Commands that train networks and use them: `train`, `predict`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import phasegrad
from phasegrad.cli.words import check_place, seed_list


def train(
    task: Annotated[str, typer.Argument(help="What to learn: vowels, fm or xor.")],
    vowels: Annotated[str, typer.Option(help="Vowels to tell apart, such as a,i or o,u or ae,er,uh.")] = "a,i",
    seeds: Annotated[str, typer.Option(help="Seeds: one (3), a list (0,2,5) or a range (0:100).")] = "0",
    hidden: Annotated[int, typer.Option(min=1, help="Hidden oscillators.")] = 5,
    learn: Annotated[str, typer.Option(help="omega, coupling or both.")] = "omega",
    init: Annotated[
        str, typer.Option(help="random, spectral, anti-spectral, output, anti-output or multi-start.")
    ] = "random",
    epochs: Annotated[int, typer.Option(min=0, help="Epochs to train.")] = 200,
    learning_rate: Annotated[float, typer.Option(help="Step per gradient of a frequency.")] = 0.001,
    coupling_rate: Annotated[
        float | None, typer.Option(help="Step per gradient of a coupling (default: the same).")
    ] = None,
    beta: Annotated[float, typer.Option(help="Strength of the nudge.")] = 0.1,
    margin: Annotated[
        float, typer.Option(help="Targets are -margin for the right output, +margin for the others.")
    ] = 0.2,
    decision: Annotated[str, typer.Option(help="cosine (the paper) or nearest (what the cost asks for).")] = "cosine",
    gradient: Annotated[str, typer.Option(help="two_phase, adjoint or finite_difference.")] = "two_phase",
    loop: Annotated[str, typer.Option(help="Training loop of the paper: main or matched.")] = "main",
    evaluate_every: Annotated[int, typer.Option(min=1, help="Score the test part every so many epochs.")] = 20,
    edge_leak: Annotated[bool, typer.Option(help="Historical variant: absent edges leak to 0.01.")] = False,
    scale_by: Annotated[
        str, typer.Option(help="Scale vowels by the train part or, historical, by all rows.")
    ] = "train",
    save: Annotated[
        Path | None, typer.Option(help="Write the model here; of many seeds the best on its training part.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Also write every run to this JSON file.")] = None,
) -> None:
    """Train oscillator networks, one per seed, all at once.

    The seed drives the network, the split of the data and the order of the samples, as in the paper.

    The first training on a machine compiles its kernel, about 15 seconds; after that it is read from disk.
    """
    from phasegrad.report.training import training_table
    from phasegrad.runs import Runs

    for place in (save, json):
        if place is not None:
            check_place(place)
    numbers = seed_list(seeds)
    runs = Runs.plan(task, vowels.split(","), numbers, hidden, init, scale_by)
    objective = {"cosine": phasegrad.PaperPair, "nearest": phasegrad.NearestTarget}.get(decision)
    if objective is None:
        raise ValueError(f"--decision must be cosine or nearest. Got {decision!r}.")
    progress = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("epoch {task.completed:.0f} of {task.total:.0f}"),
        TimeElapsedColumn(), console=Console(stderr=True), transient=True,
    )  # fmt: skip
    bar = progress.add_task(f"{len(numbers)} seeds, preparing", total=max(epochs, 1))

    def show(epoch: int, history: phasegrad.History) -> None:
        accuracy = history.test_accuracy[:, -1].mean()
        progress.update(bar, completed=epoch, description=f"{len(numbers)} seeds, test accuracy {accuracy:.1%}")

    try:
        with progress:
            result = phasegrad.train_many(
                runs.networks, runs.data, seeds=numbers, progress=show, learn=learn, epochs=epochs,
                learning_rate=learning_rate, coupling_rate=coupling_rate, beta=beta, objective=objective(margin),
                gradient=gradient, loop=loop, evaluate_every=evaluate_every, edge_leak=edge_leak,
            )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo("Stopped before the first epoch; nothing was written.", err=True)
        raise typer.Exit(130) from None
    Console().print(training_table(numbers, result))
    if save is not None:
        chosen = runs.save_best(save, result, numbers)
        typer.echo(f"Wrote {save} (seed {chosen})")
    if json is not None:
        from phasegrad.files import write_json

        write_json(json, runs.as_dict(result, numbers))
        typer.echo(f"Wrote {json}")
    if result.interrupted:
        typer.echo(
            f"Stopped after epoch {result.state.epoch} of {epochs}; everything above is of that epoch.", err=True
        )
        raise typer.Exit(130)


def predict(
    model: Annotated[Path, typer.Argument(help="Model file that `phasegrad train --save` wrote.")],
    samples: Annotated[Path, typer.Argument(help="CSV file whose header names the model's features.")],
    json: Annotated[Path | None, typer.Option(help="Also write the classes to this JSON file.")] = None,
) -> None:
    """Classify the rows of a CSV file with a trained model; columns that are not features are ignored."""
    from phasegrad.files import write_json
    from phasegrad.report.training import prediction_table
    from phasegrad.runs import read_samples

    if json is not None:
        check_place(json)
    loaded = phasegrad.load_model(model)
    answer = loaded.predict(read_samples(samples, loaded.features))
    Console().print(prediction_table(answer))
    if json is not None:
        write_json(json, {"classes": answer.names, "stable": answer.equilibrium.stable.tolist()})
        typer.echo(f"Wrote {json}")
