"""Commands that train networks and use them: `train`, `predict`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import phasegrad
from phasegrad._files import printable
from phasegrad._validation import choice, counted
from phasegrad.cli.completing import one_of, starts, tasks, tasks_and_tables
from phasegrad.cli.estimating import train_classifiers, train_table
from phasegrad.cli.images import check_image_options, train_images
from phasegrad.cli.signals import STOPPED
from phasegrad.cli.words import (
    RESULTS,
    check_places,
    learn_words,
    progress_bar,
    put,
    put_json,
    seed_list,
    tables,
    whole_numbers,
)
from phasegrad.gradients import METHODS

#: How the commands are used, for their help.
EXAMPLES = {
    "train": (
        "phasegrad train flowers.csv --target species --save model.npz",
        "phasegrad train vowels --seeds 0:100 --init spectral --json out.json",
    ),
}


#: Options that only one of the two methods has, and options that belong to some tasks.
_PAPER_ONLY = ("init", "margin", "decision", "evaluate_every", "scale_by")
_CLASSIFIER_ONLY = ("plot", "shifts")
_IMAGES = phasegrad.datasets.IMAGES
_OF_TASK = {
    "vowels": ("vowels",), "scale_by": ("vowels",), "shifts": ("digits", *_IMAGES),
    "device": _IMAGES, "dtype": _IMAGES, "data": _IMAGES,
}  # fmt: skip
#: Options of tasks that say which samples there are, less those of images; options that say what is in a table.
_OF_DATA = ("vowels", "scale_by", "shifts")
_OF_TABLE = ("target", "regress", "test", "ignore", "drop_missing")
#: What says where results go and which runs there are, and is no setting of a run.
_AROUND = ("task", "seeds", "method", "save", "json", "plot", *_OF_TABLE)
#: Gradients that need nothing but their nudge, if they have one.
_GRADIENTS = tuple(name for name, method in METHODS.items() if method.trains and not any(method.options.values()))
_MOST_EPOCHS = 1_000_000_000
_WIDEST_LAYER = 100_000
#: Panels of the help.
_WHAT, _HOW, _PAPER, _PICTURES = "What to learn", "How", "How the paper does it", "Images"

_Task = Annotated[
    str,
    typer.Argument(
        autocompletion=tasks_and_tables,
        help="What to learn: vowels, fm, xor, by the paper's plan; digits, iris, wine, breast_cancer, as classifier; "
        "mnist, fashion_mnist, cifar10, by PyTorch; or a CSV file of yours.",
    ),
]
_Target = Annotated[
    str | None, typer.Option(metavar="NAME", rich_help_panel=_WHAT, help="CSV file: the column to predict.")
]
_Regress = Annotated[
    bool | None, typer.Option("--regress", rich_help_panel=_WHAT, help="CSV file: the target is a quantity, no class.")
]
_Test = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", rich_help_panel=_WHAT, help="CSV file to test on (default: a fifth of the rows, by the seed)."
    ),
]
_Ignore = Annotated[
    str | None, typer.Option(metavar="NAMES", rich_help_panel=_WHAT, help="CSV file: columns to leave out, by commas.")
]
_Drop = Annotated[
    bool | None,
    typer.Option("--drop-missing", rich_help_panel=_WHAT, help="CSV file: leave out rows in which a value is missing."),
]
_Vowels = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES", rich_help_panel=_WHAT, help="Vowels to tell apart: a,i (default) or o,u or ae,er,uh."
    ),
]
_Scale = Annotated[
    str | None,
    typer.Option(
        metavar="WORD", rich_help_panel=_WHAT, autocompletion=one_of(lambda: ("train", "all")),
        help="Scale vowels by the train part (default) or, historical, by all rows.",
    ),
]  # fmt: skip
_Seeds = Annotated[
    str,
    typer.Option(
        metavar="SEEDS", rich_help_panel=_WHAT, help="A network for each: one (3), a list (0,2,5), a range (0:100)."
    ),
]
_Method = Annotated[
    str | None,
    typer.Option(
        metavar="WORD", rich_help_panel=_HOW, autocompletion=one_of(lambda: ("paper", "classifier")),
        help="paper: its plan, sample by sample; classifier: OscillatorClassifier, in mini-batches (default: paper "
        "where it has the task).",
    ),
]  # fmt: skip
_Hidden = Annotated[
    str | None,
    typer.Option(
        metavar="SIZES", rich_help_panel=_HOW,
        help="Hidden oscillators (default: 5; classifier 50; images 1000), or layers of them: 100,50 (not paper).",
    ),
]  # fmt: skip
_Learn = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES", rich_help_panel=_HOW,
        help="What learns, with rates if you like: omega (default of the paper), omega=0.01,coupling=0.5.",
    ),
]  # fmt: skip
_Epochs = Annotated[
    int | None,
    typer.Option(
        min=0, max=_MOST_EPOCHS, metavar="N", rich_help_panel=_HOW,
        help="Epochs to train (default: 200; classifier 100; images 30).",
    ),
]  # fmt: skip
_Rate = Annotated[
    float | None,
    typer.Option(
        min=0, max=1e6, metavar="X", rich_help_panel=_HOW,
        help="Rate of what has none of its own (default: 0.001; classifier 0.005; quantities 0.01).",
    ),
]  # fmt: skip
_Beta = Annotated[
    float | None,
    typer.Option(
        min=1e-9, max=1e3, metavar="X", rich_help_panel=_HOW,
        help="Strength of the nudge (default: 0.1; classifier 0.001).",
    ),
]  # fmt: skip
_Gradient = Annotated[
    str | None,
    typer.Option(
        metavar="WORD", rich_help_panel=_HOW,
        autocompletion=one_of(lambda: _GRADIENTS),
        help=f"{', '.join(_GRADIENTS[:-1])} or {_GRADIENTS[-1]}; two_phase by default, centred in the classifier.",
    ),
]  # fmt: skip
_Init = Annotated[
    str | None,
    typer.Option(
        metavar="WORD", rich_help_panel=_PAPER, autocompletion=one_of(starts),
        help="Initial frequencies: random (default), zero, spectral, anti-spectral, outputs-positive, "
        "outputs-negative, multi-start or multi-start-signed.",
    ),
]  # fmt: skip
_Margin = Annotated[
    float | None,
    typer.Option(
        min=1e-9, max=4, metavar="X", rich_help_panel=_PAPER,
        help="Targets are -margin for the right output, +margin for the others (default: 0.2).",
    ),
]  # fmt: skip
_Decision = Annotated[
    str | None,
    typer.Option(
        metavar="WORD", rich_help_panel=_PAPER, autocompletion=one_of(lambda: ("cosine", "nearest")),
        help="cosine (default) or nearest, which is what the cost asks for.",
    ),
]  # fmt: skip
_Every = Annotated[
    int | None,
    typer.Option(
        min=1, max=_MOST_EPOCHS, metavar="N", rich_help_panel=_PAPER,
        help="Score the test part every so many epochs (default: 20).",
    ),
]  # fmt: skip
_Shifts = Annotated[
    bool | None,
    typer.Option(
        "--shifts", rich_help_panel=_PICTURES,
        help="Digits: also train on every image moved by one pixel each way. Others: move them anew in every epoch.",
    ),
]  # fmt: skip
_Device = Annotated[
    str | None,
    typer.Option(
        metavar="WORD", rich_help_panel=_PICTURES, autocompletion=one_of(lambda: ("cpu", "cuda")),
        help="cpu, or cuda (default where there is one).",
    ),
]  # fmt: skip
_Dtype = Annotated[
    str | None,
    typer.Option(
        metavar="WORD", rich_help_panel=_PICTURES, autocompletion=one_of(lambda: ("float32", "float64", "tf32")),
        help="float32 (default), float64 or tf32.",
    ),
]  # fmt: skip
_Data = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", rich_help_panel=_PICTURES, help="Where their files are (default: PHASEGRAD_DATA names it)."
    ),
]
_Save = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=RESULTS,
        help="Write the model, an .npz file; of many seeds the best on its training part.",
    ),
]
_Json = Annotated[
    Path | None,
    typer.Option(metavar="FILE", rich_help_panel=RESULTS, help="Write every run, a .json file; - is standard output."),
]
_Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", rich_help_panel=RESULTS,
        help="Draw answers and learning curve (not paper); ends in .svg, .png or .pdf.",
    ),
]  # fmt: skip


def train(
    task: _Task,
    target: _Target = None,
    regress: _Regress = None,
    test: _Test = None,
    ignore: _Ignore = None,
    drop_missing: _Drop = None,
    vowels: _Vowels = None,
    scale_by: _Scale = None,
    seeds: _Seeds = "0",
    method: _Method = None,
    hidden: _Hidden = None,
    learn: _Learn = None,
    epochs: _Epochs = None,
    learning_rate: _Rate = None,
    beta: _Beta = None,
    gradient: _Gradient = None,
    init: _Init = None,
    margin: _Margin = None,
    decision: _Decision = None,
    evaluate_every: _Every = None,
    shifts: _Shifts = None,
    device: _Device = None,
    dtype: _Dtype = None,
    data: _Data = None,
    save: _Save = None,
    json: _Json = None,
    plot: _Plot = None,
) -> None:
    """Train oscillator networks, one per seed, on a task or on a CSV file of yours.

    The seed drives the network, the split of the data and the order of the samples.

    The first training on a machine compiles its kernel; after that it is read from disk.
    """
    given = {name: value for name, value in locals().items() if value is not None}  # first: what was typed
    own, places = is_table(task), {"save": save, "json": json, "plot": plot}
    inputs = [Path(task)] * own + ([] if test is None else [test])
    check_places(json, model=save, picture=plot, inputs=inputs)
    numbers = seed_list(seeds)
    _check_task(task, own, given)
    if own:
        ignored = [name.strip() for name in (ignore or "").split(",") if name.strip()]
        reading = {"regress": bool(regress), "ignore": ignored, "drop_missing": bool(drop_missing)}
        table = {"target": target, "test": test, **reading}
        train_table(Path(task), numbers, table, _settings(given), places)
    elif task in _IMAGES:
        train_images(task, numbers, _settings(given), places)
    else:
        load = {name: given.pop(name) for name in _OF_DATA if name in given}
        if vowels is not None:
            load["vowels"] = vowels.split(",")
        function = train_classifiers if _by_classifier(task, method) else _train_as_published
        function(task, numbers, load, _settings(given), places)


def is_table(task: str) -> bool:
    """Whether what to learn is a file, not a task that has a name."""
    return task not in tasks() and (Path(task).suffix.lower() in (".csv", ".tsv", ".txt") or Path(task).is_file())


def _by_classifier(task: str, method: str | None) -> bool:
    """Whether the classifier trains, not the paper's plan."""
    from phasegrad.runs import TASKS

    return task not in TASKS if method is None else method == "classifier"


def _check_task(task: str, own: bool, options: Mapping[str, Any]) -> None:
    """Refuse a task that there is not, and options that would have no effect on it."""
    from phasegrad.runs import TASKS

    if not own:
        choice("task", task, (*tasks(), "FILE.csv"), "phasegrad train")
    of_task = {**_OF_TASK, "method": TASKS} if own else _OF_TASK
    for name in options:
        word = "--" + name.replace("_", "-")
        if name in _OF_TABLE and not own:
            raise ValueError(f"{word} is for a CSV file of yours. Leave it out for {task}.")
        allowed = of_task.get(name, (task,))
        if task not in allowed:
            raise ValueError(
                f"{word} is for the task{'s' * (len(allowed) > 1)} {', '.join(allowed)}. Leave it out for "
                f"{'a CSV file' if own else task}."
            )
    if task in _IMAGES:
        check_image_options(task, options)
    else:
        _check_method(printable(task), options)


def _check_method(task: str, options: Mapping[str, Any]) -> None:
    """Refuse a method that there is not, and options that would have no effect with it."""
    from phasegrad.runs import TASKS

    method = options.get("method")
    if method not in (None, "paper", "classifier"):
        raise ValueError(f"--method must be paper or classifier. Got {method!r:.80}.")
    by_classifier = _by_classifier(task, method)
    used, other = ("classifier", "paper") if by_classifier else ("paper", "classifier")
    for name in options:
        if name in (_PAPER_ONLY if by_classifier else _CLASSIFIER_ONLY):
            others = (
                f". Leave it out, or add --method {other}."
                if task in TASKS
                else f", and {task} has no other. Leave it out."
            )
            raise ValueError(f"--{name.replace('_', '-')} has no effect with --method {used}{others}")
    if method == "paper" and task not in TASKS:
        raise ValueError(f"--method paper is for the tasks {', '.join(TASKS)}. Leave it out for {task}.")
    method = METHODS.get(options.get("gradient", ""))
    if "beta" in options and method is not None and method.scheme is None:
        raise ValueError(
            f"--beta has no effect with --gradient {options['gradient']}, which does not nudge. Leave it out."
        )


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run, words for lists as lists."""
    options = {name: value for name, value in given.items() if name not in _AROUND}
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
    from phasegrad.cli.tables.train import training_table
    from phasegrad.runs import Runs
    from phasegrad.training import Interrupted, train_whole

    objectives = {"cosine": phasegrad.objectives.PaperPair, "nearest": phasegrad.objectives.NearestTarget}
    decision, hidden = options.pop("decision", "cosine"), options.pop("hidden", 5)
    if decision not in objectives:
        raise ValueError(f"--decision must be cosine or nearest. Got {decision!r:.80}.")
    if not isinstance(hidden, int):
        raise ValueError(f"--hidden must be one number with --method paper. Got {hidden}.")
    runs = Runs.plan(task, seeds, hidden, options.pop("init", "random"), **load)
    plan = phasegrad.Plan.paper(objective=objectives[decision](options.pop("margin", 0.2)), **options)
    progress = progress_bar("epoch {task.completed:.0f} of {task.total:.0f}")
    many = counted(len(seeds), "seed")
    bar = progress.add_task(f"{many}, preparing", total=max(plan.epochs, 1))

    def show(epoch: int, history: phasegrad.training.History) -> None:
        accuracy = history.test_accuracy[:, -1].mean()
        progress.update(bar, completed=epoch, description=f"{many}, test accuracy {accuracy:.1%}")

    try:
        with progress:
            result = train_whole(runs.networks, runs.data, plan, seed=seeds, progress=show)
    except Interrupted as stop:
        result = stop.training
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
