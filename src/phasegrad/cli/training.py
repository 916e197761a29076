"""Commands that train networks and use them: `train`, `predict`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import phasegrad
from phasegrad._validation import choice, counted
from phasegrad.cli.images import check_image_options, train_images
from phasegrad.cli.signals import STOPPED
from phasegrad.cli.words import check_places, learn_words, progress_bar, put, put_json, seed_list, tables, whole_numbers

#: Options that only one of the two methods has, and options that belong to some tasks.
_PAPER_ONLY = ("init", "margin", "decision", "evaluate_every")
_CLASSIFIER_ONLY = ("plot", "shifts")
_IMAGES = phasegrad.datasets.IMAGES
_OF_TASK = {
    "vowels": ("vowels",), "scale_by": ("vowels",), "shifts": ("digits", *_IMAGES),
    "device": _IMAGES, "dtype": _IMAGES, "data": _IMAGES,
}  # fmt: skip
#: What says where results go and which runs there are, and is no setting of a run.
_AROUND = ("task", "seeds", "method", "save", "json", "plot")
#: Gradients without a nudge.
_WITHOUT_NUDGE = ("adjoint", "finite_difference")
_MOST_EPOCHS = 1_000_000_000
_WIDEST_LAYER = 100_000

_Task = Annotated[
    str,
    typer.Argument(
        help="What to learn: vowels, fm, xor; or digits, iris, wine, breast_cancer, as classifier; or mnist, "
        "fashion_mnist, cifar10, by PyTorch."
    ),
]
_Vowels = Annotated[str | None, typer.Option(help="Vowels to tell apart: a,i (default) or o,u or ae,er,uh.")]
_Seeds = Annotated[str, typer.Option(help="Seeds: one (3), a list (0,2,5) or a range (0:100).")]
_Method = Annotated[
    str | None,
    typer.Option(
        help="paper: its plan, sample by sample; classifier: OscillatorClassifier, in mini-batches (default: paper "
        "where it has the task)."
    ),
]
_Hidden = Annotated[
    str | None,
    typer.Option(help="Hidden oscillators (default: 5; classifier 50; images 1000); not paper: layers, 100,50."),
]
_Learn = Annotated[
    str | None, typer.Option(help="What learns, with rates if you like: omega (default), omega=0.01,coupling=0.5.")
]
_Init = Annotated[
    str | None,
    typer.Option(
        help="Paper: initial frequencies: random (default), zero, spectral, anti-spectral, outputs-positive, "
        "outputs-negative, multi-start or multi-start-signed."
    ),
]
_Epochs = Annotated[
    int | None, typer.Option(min=0, max=_MOST_EPOCHS, help="Epochs to train (default: 200; classifier 100; images 30).")
]
_Rate = Annotated[
    float | None,
    typer.Option(min=0, max=1e6, help="Rate of what has none of its own (default: 0.001; classifier 0.005)."),
]
_Beta = Annotated[
    float | None, typer.Option(min=1e-9, max=1e3, help="Strength of the nudge (default: 0.1; classifier 0.001).")
]
_Margin = Annotated[
    float | None,
    typer.Option(
        min=1e-9, max=4, help="Paper: targets are -margin for the right output, +margin for the others (0.2)."
    ),
]
_Decision = Annotated[str | None, typer.Option(help="Paper: cosine (default) or nearest (what the cost asks for).")]
_Gradient = Annotated[
    str | None, typer.Option(help="two_phase (default), centred (classifier), adjoint or finite_difference.")
]
_Every = Annotated[
    int | None, typer.Option(min=1, max=_MOST_EPOCHS, help="Paper: score the test part every so many epochs (20).")
]
_Scale = Annotated[str | None, typer.Option(help="Scale vowels by the train part (default) or, historical, all rows.")]
_Save = Annotated[Path | None, typer.Option(help="Write the model here; of many seeds the best on its training part.")]
_Json = Annotated[Path | None, typer.Option(help="Also write every run to this JSON file; - is standard output.")]
_Plot = Annotated[
    Path | None, typer.Option(help="Classifier, images: draw confusion matrix and learning curve here, and more.")
]
_Shifts = Annotated[
    bool | None,
    typer.Option(
        "--shifts",
        help="Digits: also train on every image moved by one pixel each way. Images: move them anew in every epoch.",
    ),
]
_Device = Annotated[str | None, typer.Option(help="Images: cpu, or cuda (default where there is one).")]
_Dtype = Annotated[str | None, typer.Option(help="Images: float32 (default), float64 or tf32.")]
_Data = Annotated[Path | None, typer.Option(help="Images: folder of their files (default: PHASEGRAD_DATA names it).")]


def train(
    task: _Task,
    vowels: _Vowels = None,
    seeds: _Seeds = "0",
    method: _Method = None,
    hidden: _Hidden = None,
    learn: _Learn = None,
    init: _Init = None,
    epochs: _Epochs = None,
    learning_rate: _Rate = None,
    beta: _Beta = None,
    margin: _Margin = None,
    decision: _Decision = None,
    gradient: _Gradient = None,
    evaluate_every: _Every = None,
    scale_by: _Scale = None,
    save: _Save = None,
    json: _Json = None,
    plot: _Plot = None,
    shifts: _Shifts = None,
    device: _Device = None,
    dtype: _Dtype = None,
    data: _Data = None,
) -> None:
    """Train oscillator networks, one per seed, all at once.

    The seed drives the network, the split of the data and the order of the samples, as in the paper.

    The first training on a machine compiles its kernel; after that it is read from disk.
    """
    given = {name: value for name, value in locals().items() if value is not None}  # first: what was typed
    from phasegrad.runs import CLASSIFIER_TASKS, TASKS

    check_places(json, model=save, picture=plot)
    choice("task", task, (*CLASSIFIER_TASKS, *_IMAGES), "phasegrad train")
    numbers = seed_list(seeds)
    if task in _IMAGES:
        check_image_options(task, given)
        chosen = _settings({name: value for name, value in given.items() if name not in _AROUND})
        train_images(task, numbers, chosen, {"save": save, "json": json, "plot": plot})
        return
    by_classifier = task not in TASKS if method is None else method == "classifier"
    _check_options(task, method, by_classifier, given, TASKS)
    load = {name: given.pop(name) for name in _OF_TASK if name in given}
    if "vowels" in load:
        load["vowels"] = load["vowels"].split(",")
    options = _settings({name: value for name, value in given.items() if name not in _AROUND})
    places = {"save": save, "json": json, "plot": plot}
    (_train_classifiers if by_classifier else _train_as_published)(task, numbers, load, options, places)


def _check_options(
    task: str, method: str | None, by_classifier: bool, options: Mapping[str, Any], published: Sequence[str]
) -> None:
    """Refuse options that would have no effect."""
    if method not in (None, "paper", "classifier"):
        raise ValueError(f"--method must be paper or classifier. Got {method!r:.80}.")
    used, other = ("classifier", "paper") if by_classifier else ("paper", "classifier")
    for name in options:
        word = "--" + name.replace("_", "-")
        tasks = _OF_TASK.get(name, (task,))
        if task not in tasks:
            raise ValueError(
                f"{word} is for the task{'s' * (len(tasks) > 1)} {', '.join(tasks)}. Leave it out for {task}."
            )
        if name in (_PAPER_ONLY if by_classifier else _CLASSIFIER_ONLY):
            others = (
                f". Leave it out, or add --method {other}."
                if task in published
                else f", and {task} has no other. Leave it out."
            )
            raise ValueError(f"{word} has no effect with --method {used}{others}")
    if method == "paper" and task not in published:
        raise ValueError(f"--method paper is for the tasks {', '.join(published)}. Leave it out for {task}.")
    if "beta" in options and options.get("gradient") in _WITHOUT_NUDGE:
        raise ValueError(
            f"--beta has no effect with --gradient {options['gradient']}, which does not nudge. Leave it out."
        )


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a run with words for lists as lists."""
    if "learn" in options:
        options["learn"] = learn_words(options["learn"])
        if isinstance(options["learn"], dict) and "learning_rate" in options:
            raise ValueError("--learning-rate has no effect where --learn gives every rate. Leave one of them out.")
    if "hidden" in options:
        layers = whole_numbers("hidden", options["hidden"])
        if max(layers) > _WIDEST_LAYER:
            raise ValueError(f"--hidden must be at most {_WIDEST_LAYER} oscillators in a layer. Got {max(layers)}.")
        options["hidden"] = layers[0] if len(layers) == 1 else tuple(layers)
    return options


def _train_as_published(
    task: str, seeds: list[int], load: dict[str, Any], options: dict[str, Any], places: Mapping[str, Path | None]
) -> None:
    """Train by the paper's plan with a live display, show the table, and write what was asked for."""
    from phasegrad.report import training_table
    from phasegrad.runs import Runs

    objectives = {"cosine": phasegrad.PaperPair, "nearest": phasegrad.NearestTarget}
    decision, hidden = options.pop("decision", "cosine"), options.pop("hidden", 5)
    if decision not in objectives:
        raise ValueError(f"--decision must be cosine or nearest. Got {decision!r:.80}.")
    if not isinstance(hidden, int):
        raise ValueError(f"--hidden must be one number with --method paper. Got {hidden}.")
    runs = Runs.plan(task, seeds, hidden, options.pop("init", "random"), **load)
    plan = phasegrad.paper_plan(objective=objectives[decision](options.pop("margin", 0.2)), **options)
    progress = progress_bar("epoch {task.completed:.0f} of {task.total:.0f}")
    many = counted(len(seeds), "seed")
    bar = progress.add_task(f"{many}, preparing", total=max(plan.epochs, 1))

    def show(epoch: int, history: phasegrad.History) -> None:
        accuracy = history.test_accuracy[:, -1].mean()
        progress.update(bar, completed=epoch, description=f"{many}, test accuracy {accuracy:.1%}")

    try:
        with progress:
            result = phasegrad.train(runs.networks, runs.data, plan, seed=seeds, progress=show)
    except KeyboardInterrupt:
        typer.echo("Stopped before the first epoch; nothing was written.", err=True)
        raise typer.Exit(STOPPED) from None
    tables(places["json"]).print(training_table(seeds, result))
    best = runs.best(result)
    put(places["save"], lambda place: runs.save(place, result, best), f" (seed {seeds[best]})", json=places["json"])
    put_json(places["json"], runs.as_dict(result, seeds))
    if result.interrupted:
        words = f"Stopped after epoch {result.state.epoch} of {plan.epochs}; everything above is of that epoch."
        typer.echo(words, err=True)
        raise typer.Exit(STOPPED)


def _train_classifiers(
    task: str, seeds: list[int], load: dict[str, Any], options: dict[str, Any], places: Mapping[str, Path | None]
) -> None:
    """Train one classifier per seed, show the table, write what was asked for; of many seeds the best on training."""
    from phasegrad.report import classifier_table, draw_classifier
    from phasegrad.runs import ClassifierRun, load_task

    runs: list[ClassifierRun] = []
    many = counted(len(seeds), "classifier")
    try:
        with Console(stderr=True).status(f"training {many} ...") as status:
            for seed in seeds:
                runs.append(ClassifierRun.fit(load_task(task, seed, **load), seed, **options))
                if runs[-1].interrupted:
                    break
                status.update(f"{len(runs)} of {many}, the last at {runs[-1].test_accuracy:.1%}")
    except KeyboardInterrupt:
        pass
    if not runs:
        typer.echo("Stopped before the first epoch; nothing was written.", err=True)
        raise typer.Exit(STOPPED)
    tables(places["json"]).print(classifier_table(runs))
    best = max(runs, key=lambda run: run.classifier.history_.train_accuracy[-1])
    put(places["save"], best.save, f" (seed {best.seed})", json=places["json"])
    put(places["plot"], lambda place: draw_classifier(best, place), f" (seed {best.seed})", json=places["json"])
    put_json(places["json"], {"task": task, "runs": [run.as_dict() for run in runs]})
    if len(runs) < len(seeds) or runs[-1].interrupted:
        last = f"the last of them for {counted(runs[-1].classifier.n_iter_, 'epoch')}"
        typer.echo(f"Stopped after {len(runs)} of {many}, {last}; all above is of these.", err=True)
        raise typer.Exit(STOPPED)


def predict(
    model: Annotated[Path, typer.Argument(help="Model file that `phasegrad train --save` wrote.")],
    samples: Annotated[Path, typer.Argument(help="CSV file whose header names the model's features.")],
    json: Annotated[
        Path | None, typer.Option(help="Also write the answers to this JSON file; - is standard output.")
    ] = None,
) -> None:
    """Answer the rows of a CSV file with a trained model; columns that are not features are ignored."""
    from phasegrad.report import prediction_table
    from phasegrad.runs import read_samples

    check_places(json, inputs=[model, samples])
    loaded = phasegrad.load_model(model)
    answer = loaded.predict(read_samples(samples, loaded.features))
    tables(json).print(prediction_table(answer, loaded.classes))
    found = {"classes": answer.names} if answer.values is None else {"values": answer.values.tolist()}
    put_json(json, {**found, "stable": answer.equilibrium.stable.tolist()})
