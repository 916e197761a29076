"""Commands that train networks and use them: `train`, `predict`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import phasegrad
from phasegrad.cli.words import check_place, seed_list

if TYPE_CHECKING:
    from phasegrad.runs import Runs


_METHOD_HELP = (
    "paper: its protocol, sample by sample; classifier: OscillatorClassifier, in mini-batches (default: paper where it "
    "has the task)."
)
_PLOT_HELP = "Classifier: draw confusion matrix, learning curve and output phases here (svg, png, pdf)."


def train(
    task: Annotated[
        str, typer.Argument(help="What to learn: vowels, fm, xor; or digits, iris, wine, breast_cancer, as classifier.")
    ],
    vowels: Annotated[str, typer.Option(help="Vowels to tell apart, such as a,i or o,u or ae,er,uh.")] = "a,i",
    seeds: Annotated[str, typer.Option(help="Seeds: one (3), a list (0,2,5) or a range (0:100).")] = "0",
    method: Annotated[str | None, typer.Option(help=_METHOD_HELP)] = None,
    hidden: Annotated[int | None, typer.Option(min=1, help="Hidden oscillators (default: 5; classifier 50).")] = None,
    learn: Annotated[
        str | None,
        typer.Option(help="omega, coupling or both (default: omega; classifier: names such as coupling,field_phase)."),
    ] = None,
    init: Annotated[
        str, typer.Option(help="random, spectral, anti-spectral, output, anti-output or multi-start.")
    ] = "random",
    epochs: Annotated[int | None, typer.Option(min=0, help="Epochs to train (default: 200; classifier 100).")] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Step per gradient of a frequency (default: 0.001; classifier 0.005).")
    ] = None,
    coupling_rate: Annotated[
        float | None, typer.Option(help="Step per gradient of a coupling (default: the same).")
    ] = None,
    beta: Annotated[float | None, typer.Option(help="Strength of the nudge (default: 0.1; classifier 0.001).")] = None,
    margin: Annotated[
        float, typer.Option(help="Targets are -margin for the right output, +margin for the others.")
    ] = 0.2,
    decision: Annotated[str, typer.Option(help="cosine (the paper) or nearest (what the cost asks for).")] = "cosine",
    gradient: Annotated[
        str | None,
        typer.Option(help="two_phase (default), adjoint or finite_difference; classifier: centred (default)."),
    ] = None,
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
    plot: Annotated[Path | None, typer.Option(help=_PLOT_HELP)] = None,
    shifts: Annotated[
        bool, typer.Option(help="Digits: also train on every image moved by one pixel each way.")
    ] = False,
) -> None:
    """Train oscillator networks, one per seed, all at once.

    The seed drives the network, the split of the data and the order of the samples, as in the paper.

    The first training on a machine compiles its kernel, about 15 seconds; after that it is read from disk.
    """
    from phasegrad.runs import TASKS, Runs

    for place in (save, json, plot):
        if place is not None:
            check_place(place)
    numbers = seed_list(seeds)
    changes: dict[str, Any] = {
        "hidden": hidden, "learn": learn, "epochs": epochs, "learning_rate": learning_rate, "beta": beta,
        "gradient": gradient,
    }  # fmt: skip
    changes = {name: value for name, value in changes.items() if value is not None}
    if _by_classifier(task, method, TASKS):
        load = {"vowels": vowels.split(","), "scale_by": scale_by, "shifts": shifts}
        _train_classifiers(task, numbers, load, changes, save, json, plot)
        return
    if plot is not None:
        raise ValueError("--plot draws classifiers. Add --method classifier.")
    objective = {"cosine": phasegrad.PaperPair, "nearest": phasegrad.NearestTarget}.get(decision)
    if objective is None:
        raise ValueError(f"--decision must be cosine or nearest. Got {decision!r}.")
    runs = Runs.plan(task, vowels.split(","), numbers, changes.pop("hidden", 5), init, scale_by)
    protocol = phasegrad.Protocol(
        objective=objective(margin), coupling_rate=coupling_rate, loop=loop, evaluate_every=evaluate_every,
        edge_leak=edge_leak, **changes,
    )  # fmt: skip
    _train_as_published(runs, numbers, protocol, save, json)


def _train_as_published(
    runs: Runs, numbers: list[int], protocol: phasegrad.Protocol, save: Path | None, json: Path | None
) -> None:
    """Train by the paper's protocol with a live display, show the table, and write what was asked for."""
    from phasegrad.report.training import training_table

    progress = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("epoch {task.completed:.0f} of {task.total:.0f}"),
        TimeElapsedColumn(), console=Console(stderr=True), transient=True,
    )  # fmt: skip
    bar = progress.add_task(f"{len(numbers)} seeds, preparing", total=max(protocol.epochs, 1))

    def show(epoch: int, history: phasegrad.History) -> None:
        accuracy = history.test_accuracy[:, -1].mean()
        progress.update(bar, completed=epoch, description=f"{len(numbers)} seeds, test accuracy {accuracy:.1%}")

    try:
        with progress:
            result = phasegrad.train_many(runs.networks, runs.data, protocol, seeds=numbers, progress=show)
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
            f"Stopped after epoch {result.state.epoch} of {protocol.epochs}; everything above is of that epoch.",
            err=True,
        )
        raise typer.Exit(130)


def _by_classifier(task: str, method: str | None, paper_tasks: Sequence[str]) -> bool:
    """Whether a task goes to the classifier: as told, or else where the paper's protocol does not have it."""
    if method not in (None, "paper", "classifier"):
        raise ValueError(f"--method must be paper or classifier. Got {method!r}.")
    return task not in paper_tasks if method is None else method == "classifier"


def _train_classifiers(
    task: str,
    seeds: list[int],
    load: dict[str, Any],
    options: dict[str, Any],
    save: Path | None,
    json: Path | None,
    plot: Path | None,
) -> None:
    """Train one classifier per seed, show the table, write what was asked for; of many seeds the best on training."""
    from phasegrad.files import write_json
    from phasegrad.report.learning import classifier_table, draw_classifier
    from phasegrad.runs import ClassifierRun, load_task

    if "learn" in options:
        options = {**options, "learn": tuple(options["learn"].split(","))}
    runs: list[ClassifierRun] = []
    try:
        with Console(stderr=True).status(f"training {len(seeds)} classifiers ...") as status:
            for seed in seeds:
                runs.append(ClassifierRun.fit(load_task(task, seed, **load), seed, **options))
                if runs[-1].interrupted:
                    break
                status.update(f"{len(runs)} of {len(seeds)} classifiers, the last at {runs[-1].test_accuracy:.1%}")
    except KeyboardInterrupt:
        pass
    if not runs:
        typer.echo("Stopped before the first epoch; nothing was written.", err=True)
        raise typer.Exit(130)
    Console().print(classifier_table(runs))
    best = max(runs, key=lambda run: run.classifier.history_.train_accuracy[-1])
    if save is not None:
        best.save(save)
        typer.echo(f"Wrote {save} (seed {best.seed})")
    if plot is not None:
        draw_classifier(best, plot)
        typer.echo(f"Wrote {plot} (seed {best.seed})")
    if json is not None:
        write_json(json, {"task": task, "runs": [run.as_dict() for run in runs]})
        typer.echo(f"Wrote {json}")
    if len(runs) < len(seeds) or runs[-1].interrupted:
        last = f"the last of them for {runs[-1].classifier.n_iter_} epochs"
        typer.echo(f"Stopped after {len(runs)} of {len(seeds)} classifiers, {last}; all above is of these.", err=True)
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
