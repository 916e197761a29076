"""CSV files of one's own: what `phasegrad train` and `phasegrad predict` make of them, and what they refuse."""

import csv
import io
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import phasegrad as pg
from phasegrad.datasets import Dataset
from phasegrad.runs import Quantities, Samples, determination, read_more, read_samples, read_table, write_answers

FLOWERS = "width,height,colour,species\n" + "".join(
    f"{k % 7 + 4 * (k % 2)},{k / 10},{('red', 'blue')[k % 3 == 0]},{('rose', 'lily')[k % 2]}\n" for k in range(40)
)
SHORT = ("--hidden", "3", "--epochs", "3")


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Write a table to a file in the folder where commands run."""
    monkeypatch.chdir(tmp_path)

    def write(text: str | bytes = FLOWERS, name: str = "flowers.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


class TestReading:
    def test_columns_become_features_and_classes(self, table):
        found = read_table(table(), "species")
        assert found.features == ("width", "height", "colour=blue", "colour=red")
        assert found.classes == ("lily", "rose")
        rows = rows_of(FLOWERS)[1:]
        assert found.x[:, 0].tolist() == [float(row[0]) for row in rows]
        assert found.x[:, 3].tolist() == [row[2] == "red" for row in rows]
        assert [found.classes[k] for k in found.y] == [row[3] for row in rows]
        assert found.remarks == ("colour holds words: 2 features of 0 and 1 (blue, red).",)

    @pytest.mark.parametrize("separator", [";", "\t"])
    def test_other_separators_are_taken_from_the_first_line(self, table, separator):
        other = table(FLOWERS.replace(",", separator), "other.csv")
        assert np.array_equal(read_table(other, "species").x, read_table(table(), "species").x)

    def test_what_is_not_a_feature_is_left_out(self, table):
        numbered = "".join(f"{k},{line}\n" for k, line in enumerate(FLOWERS.splitlines()))
        path = table(numbered.replace("0,width", ",width", 1))  # as pandas writes its row numbers
        found = read_table(path, "species", ignore=["colour"])
        assert found.features == ("width", "height")
        assert found.remarks == ("Left out: 1 column without a name.",)

    def test_classes_that_are_numbers_stand_in_their_order(self, table):
        rows = "".join(f"{k},{(10, 9, -1)[k % 3]}\n" for k in range(12))
        found = read_table(table(f"x,y\n{rows}"), "y")
        assert found.classes == ("-1", "9", "10")
        assert [found.classes[k] for k in found.y[:3]] == ["10", "9", "-1"]

    def test_a_fifth_of_every_class_is_held_back_by_the_seed(self, table):
        text = "x,y\n" + "".join(f"{k},{'rare' if k < 5 else 'common'}\n" for k in range(55))
        found = read_table(table(text), "y")
        first, again, other = (found.parts(seed) for seed in (0, 0, 1))
        assert isinstance(first, Dataset)
        assert np.bincount(first.y_test).tolist() == [10, 1]
        assert np.bincount(first.y_train).tolist() == [40, 4]
        assert sorted([*first.x_train[:, 0], *first.x_test[:, 0]]) == list(range(55))
        assert np.array_equal(first.x_test, again.x_test)
        assert not np.array_equal(first.x_test, other.x_test)

    def test_another_file_is_matched_by_names(self, table):
        found = read_table(table(), "species")
        swapped = "".join(",".join([row[3], row[2], row[1], row[0]]) + "\n" for row in rows_of(FLOWERS))
        more = read_more(table(swapped, "more.csv"), found)
        assert np.array_equal(more.x, found.x)
        assert np.array_equal(more.y, found.y)
        assert np.array_equal(read_samples(table(swapped, "more.csv"), found.features).x, found.x)
        parts = found.parts(0, more)
        assert np.array_equal(parts.x_train, found.x)

    def test_quantities_are_read_as_numbers(self, table):
        found = read_table(table("x,y\n" + "".join(f"{k},{k / 3}\n" for k in range(30))), "y", regress=True)
        parts = found.parts(3)
        assert isinstance(parts, Quantities)
        assert np.allclose(parts.y_test, parts.x_test[:, 0] / 3)
        assert parts.y_test.size == 6

    def test_a_large_file_takes_a_few_times_the_memory_of_its_numbers(self, table):
        line = ",".join(["-1234.5678"] * 20)
        path = table(
            ",".join([*(f"x{k}" for k in range(20)), "y"]) + "\n" + "".join(f"{line},{k % 2}\n" for k in range(4000))
        )
        tracemalloc.start()
        found = read_table(path, "y")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4 * found.x.nbytes

    def test_the_coefficient_of_determination_is_that_of_scikit_learn(self):
        from sklearn.metrics import r2_score

        truth, guess = np.random.default_rng(0).normal(size=(2, 30))
        assert determination(truth, guess) == pytest.approx(r2_score(truth, guess))
        assert np.isnan(determination(np.ones(3), np.ones(3)))


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        (FLOWERS, (), "--target must name the column of flowers.csv to predict. Its columns are width, height, col"),
        (FLOWERS, ("--target", "Specis"), "has no column 'Specis'. Did you mean 'species'?"),
        (FLOWERS, ("--target", "species", "--ignore", "hight"), "--ignore: flowers.csv has no column 'hight'. Did you"),
        (FLOWERS, ("--target", "species", "--ignore", "species"), "--ignore names the target 'species'"),
        (FLOWERS, ("--target", "species", "--ignore", "width,height,colour"), "no column left to learn from beside"),
        (FLOWERS, ("--target", "height"), "40 different numbers, which looks like a quantity. Add --regress"),
        (FLOWERS, ("--target", "species", "--regress"), "line 2: species is 'rose', not a number."),
        (FLOWERS, ("--target", "species", "--method", "paper"), "--method is for the tasks vowels, fm, xor. Leave it"),
        (FLOWERS, ("--target", "species", "--init", "zero"), "--init has no effect with --method classifier, and flow"),
        (FLOWERS, ("--target", "species", "--device", "cpu"), "--device is for the tasks mnist"),
        (FLOWERS, ("--target", "species", "--test", "gone.csv"), "There is no file gone.csv."),
        (FLOWERS, ("--target", "species", "--json", "flowers.csv"), "flowers.csv is what this command reads."),
        ("", ("--target", "y"), "flowers.csv is empty. Give a table with a header"),
        ("x,y\n", ("--target", "y"), "has a header and no rows under it."),
        ("x,y\n1,a\n2,\n", ("--target", "y"), "line 3: y is empty. Fill it in, or add --drop-missing"),
        ("x,y\n1,a\nNA,b\n", ("--target", "y"), "line 3: x is 'NA', which stands for a missing value."),
        ("x,y\n1,a\n2\n", ("--target", "y"), "line 3: columns in this line 1, in the header 2."),
        ("x,y\n1,a\n2.5x,b\n", ("--target", "y"), "line 3: x is '2.5x', not a number."),
        ("x;y\n1,5;a\n2;b\n", ("--target", "y"), "x is '1,5', not a number. Write decimals with a point."),
        ("x;y\n1;a\n2,5;b\n", ("--target", "y"), "x is '2,5', not a number. Write decimals with a point."),
        ("x,y\nred,a\n2,b\n", ("--target", "y"), "line 3: x is '2', a number among words such as 'red'. Mend the"),
        ("x,x,y\n1,2,a\n", ("--target", "y"), "line 1 names the column 'x' twice."),
        ("x,y\n1,a\n2,a\n", ("--target", "y"), "holds one class only, 'a'. It takes two to tell apart."),
        ("x,y\n1,a\n2,a\n3,b\n", ("--target", "y"), "has one row of the class 'b'. Give at least two of every class"),
        ("x,y\n1,1\n2,1.0\n3,2\n", ("--target", "y"), "writes one number in two ways, among 1, 1.0, 2."),
        ("x,y\n1,1\n2,2\n", ("--target", "y", "--regress"), "has 2 rows. A quantity takes at least 10."),
        ("x,y\n1,inf\n", ("--target", "y", "--regress"), "y is 'inf', not a finite number."),
        ("é,y\n1,a\n".encode("latin-1"), ("--target", "y"), "is not a text file in UTF-8. Save it as CSV in that"),
        (b"PK\x03\x04\0\0", ("--target", "y"), "not a text file in UTF-8."),
        ("x,y\n" + "".join(f"w{k},{k % 2}\n" for k in range(60)), ("--target", "y"), "one of more than 50 different"),
        ("x,y\n" + "".join(f"{k},w{k}\n" for k in range(1100)), ("--target", "y"), "more than 1000 different values."),
        ("x,x=a,y\na,1,p\na,2,q\na,3,p\na,4,q\n", ("--target", "y"), "is called as a word of another would be."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_table_is_said(text, more, message, table, here):
    table(text)
    result = here("train", "flowers.csv", *more)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert [path.name for path in Path().iterdir()] == ["flowers.csv"]


def test_missing_values_are_counted_or_their_rows_left_out(table, here):
    rows = FLOWERS.splitlines()
    rows[1], rows[4], rows[9] = ",,NA,rose", "1,2,?,lily", "3,,red,rose"
    table("\n".join(rows) + "\n")
    refused = here("train", "flowers.csv", "--target", "species")
    assert refused.returncode == 2
    words = " ".join(refused.stderr.split())
    assert (
        "line 2: width is empty. In all 5 values are missing, in 3 rows. Fill them in, or add --drop-missing" in words
    )
    # What is missing in a column that is not read is not missed.
    assert (
        read_table(Path("flowers.csv"), "species", ignore=["width", "height", "colour"][1:], drop_missing=True).y.size
        == 39
    )
    found = read_table(Path("flowers.csv"), "species", drop_missing=True)
    kept = read_table(table("\n".join(row for k, row in enumerate(rows) if k not in (1, 4, 9)), "kept.csv"), "species")
    assert np.array_equal(found.x, kept.x)
    assert np.array_equal(found.y, kept.y)
    result = here("train", "flowers.csv", "--target", "species", "--drop-missing", *SHORT, "--save", "m.npz")
    assert result.returncode == 0, result.stderr
    assert "37 rows and 4 features" in result.stdout
    assert "Left out: 3 rows of flowers.csv with missing values." in result.stdout
    assert here("predict", "m.npz", "flowers.csv").returncode == 2
    told = here("predict", "m.npz", "flowers.csv", "--drop-missing", "--out", "answers.csv")
    assert told.returncode == 0, told.stderr
    assert "37 samples" in told.stdout
    assert "3 rows with missing values left out" in told.stdout
    assert [row[:-2] for row in rows_of(Path("answers.csv").read_text())] == rows_of(Path("kept.csv").read_text())
    table("x,species\n,a\n,b\n", "none.csv")
    assert (
        "a value is missing in every row." in here("train", "none.csv", "--target", "species", "--drop-missing").stderr
    )


def test_a_column_of_ids_and_the_most_frequent_class_are_said(table, here):
    lines = FLOWERS.splitlines()
    numbered = "\n".join(["code," + lines[0], *(f"{7 * k + 2},{line}" for k, line in enumerate(lines[1:]))])
    table(numbered.replace("lily", "rose", 6))
    result = here("train", "flowers.csv", "--target", "species", *SHORT, "--json", "out.json")
    words = " ".join(result.stdout.split())
    assert "code holds a whole number of its own in every row: it looks like an id. --ignore it if it is one." in words
    assert "width holds a whole number" not in words
    (run,) = json.loads(Path("out.json").read_text())["runs"]
    confusion = np.array(run["confusion"])
    assert run["majority_test_accuracy"] == pytest.approx(
        confusion[1].sum() / confusion.sum()
    )  # more roses than lilies
    share = f"{run['test_accuracy']:.1%}; untrained {run['untrained_test_accuracy']:.1%}"
    assert f"test accuracy: {share}; the most frequent class alone {run['majority_test_accuracy']:.1%}" in words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("width,height,colour\n1,2,red\n", "has no column 'species'."),
        ("width,height,colour,species\n1,2,red,tulip\n", "species is 'tulip'. It must be one of lily, rose."),
        ("width,height,colour,species\n1,2,green,rose\n", "colour is 'green'. It must be one of blue, red."),
        ("width,Height,colour,species\n1,2,red,rose\n", "has no column 'height'. Did you mean 'Height'?"),
    ],
)
def test_a_test_file_that_does_not_fit_is_refused(text, message, table, here):
    table()
    table(text, "test.csv")
    result = here("train", "flowers.csv", "--target", "species", "--test", "test.csv")
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())


def test_options_of_tables_are_refused_for_tasks(here):
    for more in (("--target", "y"), ("--regress",), ("--test", "t.csv"), ("--ignore", "a"), ("--drop-missing",)):
        result = here("train", "xor", *more)
        assert result.returncode == 2
        assert f"{more[0]} is for a CSV file of yours. Leave it out for xor." in result.stderr


def test_a_table_is_learned_saved_and_predicted(table, here):
    table()
    places = ("--save", "m.npz", "--json", "out.json", "--plot", "p.svg")
    result = here("train", "flowers.csv", "--target", "species", "--seeds", "0:2", *SHORT, *places)
    assert result.returncode == 0, result.stderr
    words = " ".join(result.stdout.split())
    assert "flowers: 40 rows and 4 features; species is taken as 2 classes (lily, rose)." in words
    assert "colour holds words: 2 features of 0 and 1 (blue, red)." in words
    assert "flowers: 2 runs of a 4-3-2 network, 3 epochs" in words
    runs = json.loads(Path("out.json").read_text())["runs"]
    assert [run["seed"] for run in runs] == [0, 1]
    assert all(sum(map(sum, run["confusion"])) == 8 for run in runs)
    seed = int(result.stdout.split("(seed ")[1].split(")")[0])
    model = pg.Model.load("m.npz")
    # The file holds what the JSON does, and predict finds the columns by their names, the target there or not.
    assert runs[seed]["parameters"] == {name: values.tolist() for name, values in model.network.parameters.items()}
    swapped = "".join(",".join([row[2], "x", row[1], row[0]]) + "\n" for row in rows_of(FLOWERS))
    table(swapped.replace("colour,x", "colour,note"), "new.csv")
    answers = []
    for name in ("flowers.csv", "new.csv"):
        assert here("predict", "m.npz", name, "--json", "classes.json", "--out", "answers.csv").returncode == 0
        answers.append(json.loads(Path("classes.json").read_text()))
        written = rows_of(Path("answers.csv").read_text())
        assert [row[:-2] for row in written] == rows_of(Path(name).read_text())
        assert [row[-2] for row in written] == ["predicted", *answers[-1]["classes"]]
        assert [row[-1] for row in written] == ["stable", *("yes" if each else "no" for each in answers[-1]["stable"])]
    assert answers[0] == answers[1]
    assert "has a column 'predicted' already" in here("predict", "m.npz", "answers.csv", "--out", "more.csv").stderr
    assert set(answers[0]["classes"]) <= {"lily", "rose"}
    table(FLOWERS.replace("red", "green"), "strange.csv")
    refused = here("predict", "m.npz", "strange.csv")
    assert refused.returncode == 2
    assert "colour is 'green'. It must be one of blue, red." in refused.stderr
    picture = Path("p.svg").read_text()
    assert all(picture.count(words) == 1 for words in ("decided", "cost, train (running)", "accuracy, train (running)"))


def test_answers_are_no_formulas_for_a_spreadsheet(tmp_path):
    """Classes come from whoever wrote the model; numbers, and words that only look odd, stay as they are."""
    names = ["=HYPERLINK(1)", "+1", "-1", "-a", "@x", "\tx", "\rx", "a=b", "-1e400"]
    samples = Samples(np.zeros((9, 1)), 0, ("x",), tuple(("=1",) for _ in names))
    write_answers(tmp_path / "a.csv", samples, {"class": names}, [True] * 9)
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    assert [row[1] for row in rows] == ["'=HYPERLINK(1)", "+1", "-1", "'-a", "'@x", "'\tx", "'\rx", "a=b", "-1e400"]
    assert {row[0] for row in rows} == {"=1"}  # the user's own table is as it was
    write_answers(tmp_path / "a.csv", samples, {"y": [-0.5] * 9}, [True] * 9)
    assert "=1,-0.5,yes" in (tmp_path / "a.csv").read_text()


def test_a_wide_table_is_learned_from(table, here):
    """Clamped inputs do not move, and take no part in the matrices that are limited."""
    width = 12_100
    values = np.random.default_rng(0).integers(0, 9, (12, width))
    head = ",".join(f"c{k}" for k in range(width))
    table(f"{head},kind\n" + "".join(",".join(map(str, row)) + f",{'ab'[k % 2]}\n" for k, row in enumerate(values)))
    result = here("train", "flowers.csv", "--target", "kind", "--hidden", "2", "--epochs", "1")
    assert result.returncode == 0, result.stderr
    assert "a 12100-2-2 network" in " ".join(result.stdout.split())


def test_layers_that_are_too_wide_are_refused_in_words_of_the_command(here):
    result = here("train", "xor", "--method", "classifier", "--hidden", "12001", "--epochs", "1")
    assert result.returncode == 2
    assert "--hidden must be at most 12000 oscillators, all layers and the outputs together. Got 12003." in " ".join(
        result.stderr.split()
    )


def test_a_quantity_is_learned_saved_and_predicted(table, here):
    x = np.linspace(-1, 1, 60)
    text = "x;y\n" + "".join(f"{a};{5 + np.sin(3 * a)}\n" for a in x)
    table(text)
    table(text, "test.csv")
    places = ("--save", "m.npz", "--json", "-", "--plot", "p.svg")
    result = here("train", "flowers.csv", "--target", "y", "--regress", "--test", "test.csv", "--hidden", "5", *places)
    assert result.returncode == 0, result.stderr
    assert "y is taken as a quantity. Tested on 60 rows of the other file." in " ".join(result.stderr.split())
    (run,) = json.loads(result.stdout)["runs"]
    assert run["test_r2"] > 0.9 > run["untrained_test_r2"]
    answer = here("predict", "m.npz", "test.csv", "--json", "-", "--out", "answers.csv")
    values = np.array(json.loads(answer.stdout)["values"])[:, 0]
    assert [float(row[2]) for row in rows_of(Path("answers.csv").read_text())[1:]] == values.tolist()
    truth = 5 + np.sin(3 * x)
    assert determination(truth, values) == pytest.approx(run["test_r2"])
    assert np.sqrt(np.mean((truth - values) ** 2)) == pytest.approx(run["test_rmse"])
    assert "y, true" in Path("p.svg").read_text()
