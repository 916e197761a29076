"""What training leaves behind: a score per evaluation, the trained networks, and the state to go on from."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from phasegrad.network import Network
from phasegrad.training.protocol import Protocol
from phasegrad.validation import FloatArray, IntArray, choice

if TYPE_CHECKING:
    import pandas as pd

_SCORES = ("final", "best")


@dataclass(frozen=True, eq=False)
class History:
    """Scores at every evaluation; R networks, T evaluations, the first of them before any training.

    Attributes
    ----------
    epoch : ndarray of int, shape (T,)
    train_accuracy, train_loss : ndarray, shape (R, T)
        Running values over the epoch that ended there, taken while the parameters moved, as the paper does; at epoch 0
        those of the untrained network on the training part.
    test_accuracy, test_loss : ndarray, shape (R, T)
        On the test part. A sample without equilibrium counts as wrong and has no part in the mean loss.
    skipped : ndarray of int, shape (R, T)
        Training samples without update since the last evaluation, because an equilibrium was not found.
    unstable : ndarray of int, shape (R, T)
        Training samples since the last evaluation whose free equilibrium was unstable.
    test_skipped : ndarray of int, shape (R, T)
        Test samples without equilibrium.
    separation, common_phase : ndarray, shape (R, T)
        First output phase minus last, and mean of the output phases, averaged over the test part.
    condition : ndarray, shape (R, T), or None
        Condition number of the reduced Laplacian at the first training sample, if it was asked for.
    """

    epoch: IntArray
    train_accuracy: FloatArray
    train_loss: FloatArray
    test_accuracy: FloatArray
    test_loss: FloatArray
    skipped: IntArray
    unstable: IntArray
    test_skipped: IntArray
    separation: FloatArray
    common_phase: FloatArray
    condition: FloatArray | None = None

    def score(self, kind: str = "final") -> FloatArray:
        """Return one test accuracy per network, (R,): of the last epoch, or the best of all evaluations.

        "best" includes the untrained network and chooses on test data: it exists to match published files that did so.
        """
        choice("kind", kind, _SCORES, "History.score")
        return self.test_accuracy[:, -1] if kind == "final" else self.test_accuracy.max(axis=1)

    def join(self, later: History) -> History:
        """Return this history followed by one that went on from it; the later one's first row repeats our last."""
        parts = {
            item.name: np.concatenate([getattr(self, item.name), getattr(later, item.name)[..., 1:]], axis=-1)
            for item in fields(self)
            if getattr(self, item.name) is not None
        }
        return History(**parts)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per network and evaluation. Needs pandas."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "A table needs pandas, which is not installed. Install it with 'pip install pandas'."
            ) from None
        networks, evaluations = self.test_accuracy.shape
        columns: dict[str, Any] = {
            "network": np.repeat(np.arange(networks), evaluations),
            "epoch": np.tile(self.epoch, networks),
        }
        for item in fields(self):
            if item.name != "epoch" and getattr(self, item.name) is not None:
                columns[item.name] = getattr(self, item.name).ravel()
        return pd.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class TrainingState:
    """All that is needed to go on exactly where training stopped, between two epochs.

    Attributes
    ----------
    epoch : int
    networks : tuple of Network
        With their current frequencies and couplings; replace them to intervene.
    streams : tuple of dict
        States of the shuffling streams.
    phases : ndarray, shape (R, N)
        Warm starts.
    """

    epoch: int
    networks: tuple[Network, ...]
    streams: tuple[dict[str, Any], ...]
    phases: FloatArray


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """Trained networks, their history and the state to go on from.

    Attributes
    ----------
    networks : tuple of Network
    history : History
    state : TrainingState
    protocol : Protocol
    interrupted : bool
        Whether the training was stopped from outside before the last epoch asked for.
    """

    networks: tuple[Network, ...]
    history: History
    state: TrainingState
    protocol: Protocol
    interrupted: bool = False

    @property
    def network(self) -> Network:
        """The trained network, if it is a single one."""
        if len(self.networks) != 1:
            raise ValueError(f"This result holds {len(self.networks)} networks: use 'networks'.")
        return self.networks[0]

    def __str__(self) -> str:
        first, last = self.history.test_accuracy[:, 0], self.history.test_accuracy[:, -1]
        count = len(self.networks)
        return (
            f"{count} network{'' if count == 1 else 's'}, {self.state.epoch} epochs: test accuracy "
            f"{first.mean():.1%} untrained, {last.mean():.1%} trained (worst {last.min():.1%}, best {last.max():.1%}), "
            f"{int(self.history.skipped.sum())} samples skipped"
        )
