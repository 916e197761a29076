"""`phasegrad train` on images: a layered network for each seed, by PyTorch, with a line for every epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import phasegrad
from phasegrad._validation import choice, counted
from phasegrad.cli.epochs import EpochBar
from phasegrad.cli.signals import STOPPED
from phasegrad.cli.words import put, put_json, require_torch, tables
from phasegrad.gradients import METHODS

if TYPE_CHECKING:
    from phasegrad.runs import ImageRun

_GRADIENTS = tuple(name for name, method in METHODS.items() if method.signs is not None)
_WITHOUT_EFFECT = ("vowels", "scale_by", "method", "init", "margin", "decision", "evaluate_every")


def check_image_options(task: str, given: Mapping[str, Any]) -> None:
    """Refuse options that would have no effect on images."""
    for name in _WITHOUT_EFFECT:
        if name in given:
            raise ValueError(f"--{name.replace('_', '-')} has no effect on {task}. Leave it out.")
    gradient = given.get("gradient", "centred")
    if gradient not in _GRADIENTS:
        raise ValueError(f"--gradient must be {', '.join(_GRADIENTS)} for {task}. Got {gradient!r:.80}.")
    if not METHODS[gradient].signs and "beta" in given:
        raise ValueError(f"--beta has no effect with --gradient {gradient}, which does not nudge. Leave it out.")


def train_images(
    task: str, seeds: list[int], options: dict[str, Any], places: Mapping[str, Path | None]
) -> None:  # fmt: skip
    """Train one network per seed, show the table, write what was asked for; of many seeds the best on training."""
    require_torch(f"phasegrad train {task}", options.get("device") or "cpu")
    from phasegrad.cli.tables.train import draw_images, image_table
    from phasegrad.runs import load_images
    from phasegrad.training import DTYPES

    choice("dtype", options.get("dtype", "float32"), DTYPES, "phasegrad train")
    runs = _runs(load_images(task, options.pop("data", None)), seeds, {"device": _device(), **options})
    if not runs:
        typer.echo("Stopped before the first epoch; nothing was written.", err=True)
        raise typer.Exit(STOPPED)
    tables(places["json"]).print(image_table(runs))
    best = max(runs, key=lambda run: run.history.train_accuracy[0, -1])
    put(places["save"], best.save, f" (seed {best.seed})", json=places["json"])
    put(places["plot"], lambda place: draw_images(best, place), f" (seed {best.seed})", json=places["json"])
    put_json(places["json"], {"task": task, "runs": [run.as_dict() for run in runs]})
    if len(runs) < len(seeds) or runs[-1].interrupted:
        last = f"the last of them for {counted(runs[-1].training.state.epoch, 'epoch')}"
        typer.echo(
            f"Stopped after {len(runs)} of {counted(len(seeds), 'network')}, {last}; all above is of these.", err=True
        )
        raise typer.Exit(STOPPED)


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _runs(data: phasegrad.datasets.Dataset, seeds: Sequence[int], options: Mapping[str, Any]) -> list[ImageRun]:
    """Train seed after seed until one is stopped, with a bar of its epochs and a line for each that is done."""
    from phasegrad.runs import ImageRun

    found: list[ImageRun] = []
    epochs = phasegrad.Plan.images(**{"epochs": options["epochs"]} if "epochs" in options else {}).epochs
    try:
        with EpochBar(epochs) as bar:
            for seed in seeds:
                bar.begin(f"seed {seed}")
                run = ImageRun.fit(
                    data,
                    seed,
                    progress=lambda epoch, history, seconds: bar.show(epoch, history, f", {seconds:.2f} s each"),
                    **options,
                )
                found.append(run)
                line = f"seed {seed}: test {run.test_accuracy:.2%} after {counted(run.training.state.epoch, 'epoch')}"
                bar.say(f"{line} of {run.seconds_per_epoch:.2f} s")
                if run.interrupted:
                    break
    except KeyboardInterrupt:
        pass
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        raise ValueError(
            f"The memory of {options['device']} does not hold this training. Give fewer --hidden oscillators, or train "
            "with --device cpu."
        ) from None
    return found
