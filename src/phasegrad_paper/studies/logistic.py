"""Logistic regression on the same splits: the control beside every accuracy."""

from __future__ import annotations

from phasegrad_paper.studies.arms import load
from phasegrad_paper.studies.piece import Piece

#: Splits per task: as many as the largest study of it has seeds.
SPLITS = {"ai": 100, "ou": 100, "fm": 20}


def logistic(task: str, seeds: int, columns: list[int] | None = None) -> list[float]:
    """Return the test accuracy of scikit-learn's logistic regression on every split."""
    from sklearn.linear_model import LogisticRegression

    scores = []
    for seed in range(seeds):
        data = load(task, "train", seed)
        chosen = slice(None) if columns is None else columns
        model = LogisticRegression(max_iter=1000).fit(data.x_train[:, chosen], data.y_train)
        scores.append(float(model.score(data.x_test[:, chosen], data.y_test)))
    return scores


def logistic_piece(task: str, seeds: int | None) -> Piece:
    """Return the logistic regression of a task as a piece of work, on at most so many splits."""
    count = min(seeds or SPLITS[task], SPLITS[task])
    return Piece(f"logistic regression, {task}", logistic, {"task": task, "seeds": count}, 0.2)
