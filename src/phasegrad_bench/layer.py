"""The layer for PyTorch among its neighbours, on the 8 x 8 digits: accuracy, CPU time, and samples that did not settle.

One model, of which the layer in the middle is a `PhaseNetwork`, two linear layers with tanh, or an implicit layer of
torchdeq (where that is installed), all with about 6,900 parameters:

    python -m phasegrad_bench.layer OUT.json [--seeds 10] [--unsettled 50]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import platform
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from phasegrad._files import write_json
from phasegrad.datasets import digits
from phasegrad_paper.studies import Table

EPOCHS, BATCH, RATE, RATES = 10, 64, 0.003, (0.003, 0.01)
_TANH, _DEQ = "linear + tanh", "torchdeq"


def layers_of(kind: str, seed: int) -> tuple[list[Any], int]:
    """Return the layers in the middle of the model, and how many numbers come out of them."""
    from torch import nn, tanh, zeros_like

    if kind == _TANH:
        return [nn.Linear(64, 80), nn.Tanh(), nn.Linear(80, 20), nn.Tanh()], 20
    if kind == "phase":
        from phasegrad.torch import PhaseNetwork

        return [PhaseNetwork.layers(64, 80, 20, output="both", seed=seed)], 40

    from torchdeq import get_deq  # type: ignore[import-not-found,unused-ignore]

    class Implicit(nn.Module):
        """The fixed point of z = tanh(W z + U x + b), with the implicit gradient."""

        def __init__(self, solver: str) -> None:
            super().__init__()
            self.given, self.back = nn.Linear(64, 56), nn.Linear(56, 56, bias=False)
            self.solve = get_deq(f_solver=solver, b_solver=solver, ift=True)

        def forward(self, x: Any) -> Any:
            drive = self.given(x)
            return self.solve(lambda z: tanh(self.back(z) + drive), zeros_like(drive))[0][-1]

    solver = "anderson" if "Anderson" in kind else "fixed_point_iter"
    return [Implicit(solver)], 56


def run(kind: str, seed: int, rate: float = RATE, epochs: int = EPOCHS) -> dict[str, Any]:
    """Return what one training in single precision gives; the split into three quarters and one is that of the seed."""
    import torch
    from torch import nn

    whole = digits()
    order = np.random.default_rng(seed).permutation(len(whole.y_train) + len(whole.y_test))
    images = torch.tensor(np.concatenate((whole.x_train, whole.x_test))[order], dtype=torch.float32)
    labels = torch.tensor(np.concatenate((whole.y_train, whole.y_test))[order])
    held_out = len(order) // 4
    x_test, x = images.reshape(-1, 1, 8, 8).tensor_split([held_out])
    y_test, y = labels.tensor_split([held_out])
    torch.manual_seed(seed)
    middle, width = layers_of(kind, seed)
    before = [nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(256, 64), nn.Tanh()]
    model = nn.Sequential(*before, *middle, nn.Linear(width, 10))
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    nn.functional.cross_entropy(model(x[:BATCH]), y[:BATCH]).backward()  # what is loaded once is not counted
    start = time.process_time()
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(BATCH):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
    seconds = time.process_time() - start
    with torch.no_grad():
        accuracy = float((model(x_test).argmax(1) == y_test).float().mean())
    found = {"kind": kind, "seed": seed, "rate": rate, "accuracy": accuracy, "cpu_s": seconds}
    found["nan"] = any(bool(p.isnan().any()) for p in model.parameters())
    if kind == "phase":
        found["unsettled"] = int(middle[0].unsettled_count)
    return found


def measure(seeds: int, unsettled: int, told: Callable[[dict[str, Any]], object]) -> None:
    """Run every kind on each seed, in turn, and the layer alone on more seeds at two rates."""
    kinds = ["phase", _TANH]
    if importlib.util.find_spec("torchdeq") is not None:
        kinds += [_DEQ, f"{_DEQ}, Anderson"]
    for seed in range(seeds):
        for kind in kinds:
            told(run(kind, seed))
    for rate in RATES:
        for seed in range(100, 100 + unsettled):
            told(run("phase", seed, rate))


def tables(results: dict[str, Any]) -> list[Table]:
    """Return the table of stored runs: mean accuracy and median CPU time over the seeds that every kind was run on."""
    words = {
        "phase": '`PhaseNetwork.layers(64, 80, 20, output="both")`',
        _TANH: "`Linear(64, 80), Tanh, Linear(80, 20), Tanh`",
        _DEQ: "torchdeq, 56 units, `ift=True`",
        f"{_DEQ}, Anderson": "torchdeq, 56 units, `ift=True`, Anderson's solver",
    }
    runs = {kind: [each for each in results["runs"] if each["kind"] == kind and each["seed"] < 100] for kind in words}
    accuracy = {kind: 100 * statistics.mean(each["accuracy"] for each in mine) for kind, mine in runs.items()}
    seconds = {kind: statistics.median(each["cpu_s"] for each in mine) for kind, mine in runs.items()}
    rows = [
        [words[kind], f"{accuracy[kind]:.1f}", f"{seconds[kind]:.2f}", f"{seconds[kind] / seconds[_DEQ]:.2f}"]
        for kind in words
    ]
    return [Table("layer", "", ("layer", "test accuracy in %", "CPU seconds", "over torchdeq"), rows)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write all runs to a file as they come."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--unsettled", type=int, default=50, help="seeds of the layer alone, at each of two rates")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    names = ("phasegrad", "numpy", "torch", "torchdeq")
    versions = {name: importlib.metadata.version(name) for name in names if importlib.util.find_spec(name) is not None}
    kept: dict[str, Any] = {"versions": versions, "machine": platform.machine(), "threads": 1, "runs": []}

    def told(found: dict[str, Any]) -> None:
        kept["runs"].append(found)
        write_json(given.out, kept)
        print(found, flush=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measure(given.seeds, given.unsettled, told)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
