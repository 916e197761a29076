"""Eight places where training runs until somebody stops it; as a script it goes to one of them.

Every place trains for ever, and touches a file named ``training`` in the present folder when it does.
"""

import sys
from pathlib import Path

ENDLESS = 10_000_000
LIBRARY = ("train", "fit", "cross_val_score", "GridSearchCV")
COMMANDS = {
    "phasegrad train": ["train", "vowels", "--epochs", str(ENDLESS), "--evaluate-every", "10", "--json", "out.json"],
    "phasegrad chip": ["chip", "vowels", "--chips", "2", "--epochs", "10000", "--json", "out.json"],
    "phasegrad bench": ["bench", "--rounds", "1", "--json", "out.json"],
    "phasegrad reproduce": ["reproduce", "ablation", "--seeds", "1", "--workers", "1", "--out", "out"],
}


def begun(*_):
    Path("training").touch()


def in_library(place):
    from sklearn.datasets import load_iris
    from sklearn.model_selection import GridSearchCV, cross_val_score

    import phasegrad as pg

    x, y = load_iris(return_X_y=True)
    classifier = pg.OscillatorClassifier(hidden=5, epochs=ENDLESS, random_state=0, schedule=marking())
    if place == "train":
        network = pg.networks.signed_layers(2, 1, 2, rest=pg.CosineCrossEntropy.undecided)
        print(pg.train(network, pg.datasets.xor(), epochs=ENDLESS, schedule=marking()).ended)
    elif place == "fit":
        try:
            classifier.fit(x, y)
        except KeyboardInterrupt:
            print("interrupted" if classifier.training_.interrupted else "finished")
            raise
    elif place == "cross_val_score":
        cross_val_score(classifier, x, y, cv=3)
    else:
        GridSearchCV(classifier, {"hidden": [3, 5]}, n_jobs=2, cv=2).fit(x, y)


def marking():
    """Return a schedule that says when an epoch begins: the workers of a search tell nobody else."""
    import phasegrad as pg

    class Marking(pg.optim.Cosine):
        def factor(self, progress):
            begun()
            return super().factor(progress)

    return Marking()


def at_command(place):
    from phasegrad.cli import main
    from phasegrad.hardware import _learning
    from phasegrad.training._train import _Run

    block, update = _Run._train_block, _learning._Trainer.update

    def marked(run, last):
        begun()
        return block(run, last)

    def updated(*given):
        begun()
        return update(*given)

    _Run._train_block, _learning._Trainer.update = marked, updated
    sys.argv = ["phasegrad", *COMMANDS[place]]
    main()


if __name__ == "__main__":
    in_library(sys.argv[1]) if sys.argv[1] in LIBRARY else at_command(sys.argv[1])
