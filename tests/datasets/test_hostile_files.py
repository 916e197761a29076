"""Files that nobody should have to fear: hostile ones end in one sentence, and writing never hurts what is there."""

import dataclasses
import json
import os
import resource
import stat
import subprocess
import sys
import threading
import tracemalloc
import warnings
from pathlib import Path

import hostile_files as hostile
import numpy as np
import pytest

import phasegrad as pg
from phasegrad import _files
from phasegrad.cli import main
from phasegrad.runs import read_samples

HERE = Path(__file__).parents[1] / "support"
ENVIRONMENT = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
#: 2000 in all in the slow run, a tenth of them in the normal one.
COUNTS = {"model": 700, "state": 500, "folder": 300, "csv": 500}
linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits and devices as Linux has them")


@pytest.fixture
def model() -> pg.Model:
    return pg.Model(pg.layered(2, 5, 2), pg.objectives.PaperPair(), ("a", "i"), hostile.FEATURES)


@pytest.fixture
def here(monkeypatch, capsys):
    """The command line in this process: its exit status and what it prints."""
    for name in ("COLUMNS", "NO_COLOR", "TERM"):
        monkeypatch.setenv(name, ENVIRONMENT[name])
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)

    def run_here(*words: object) -> subprocess.CompletedProcess:
        monkeypatch.setattr(sys, "argv", ["phasegrad", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return subprocess.CompletedProcess(words, ended.value.code or 0, *capsys.readouterr())

    return run_here


def tried(kind: str, count: int, folder: Path) -> dict:
    """What came of so many hostile files, in a process of its own with little memory."""
    paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
    command = [sys.executable, str(HERE / "hostile_files.py"), kind, str(count), str(folder)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@linux
@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("share", [0.1, pytest.param(1.0, marks=pytest.mark.slow)])
def test_a_hostile_file_loads_properly_or_ends_in_one_sentence(kind, share, tmp_path):
    found = tried(kind, round(share * COUNTS[kind]), tmp_path)
    assert found["failures"] == []
    assert 0 < found["loaded"] < found["tried"] == round(share * COUNTS[kind])


class TestArchives:
    def changed(self, tmp_path, model, change):
        place = tmp_path / "model.npz"
        model.save(place)
        place.write_bytes(change(hostile.members_of(place.read_bytes())))
        return place

    def peak(self, read) -> int:
        tracemalloc.start()
        try:
            read()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    def test_a_member_that_nobody_asked_for_is_not_read(self, tmp_path, model):
        extra = hostile.bomb("extra.npy", 2**30, f"({2**27},)")
        place = self.changed(tmp_path, model, lambda members: hostile.archive([*members, extra]))
        assert self.peak(lambda: pg.Model.load(place)) < 2**24
        assert pg.Model.load(place).network == model.network

    @pytest.mark.parametrize("name", ["edges.npy", "parameter.omega.npy", "header.npy"])
    def test_a_small_file_cannot_ask_for_much_memory(self, tmp_path, model, name):
        bomb = hostile.bomb(name, 2**28, f"({2**25},)")
        place = self.changed(
            tmp_path, model, lambda members: hostile.archive([*(m for m in members if m.name != bomb.name), bomb])
        )

        def read():
            with pytest.raises(ValueError, match="what it holds is larger than 16 MB"):
                pg.Model.load(place)

        assert self.peak(read) < 2**24

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda m: setattr(m, "flags", 1), "'edges' is encrypted"),
            (lambda m: setattr(m, "method", 99), "'edges' is compressed by a method that is not known"),
            (lambda m: (setattr(m, "method", 8), setattr(m, "stored", b"\xff" * 40)), "never loaded: Error -3"),
            (lambda m: setattr(m, "crc", 7), "Bad CRC-32"),
            (lambda m: m.__init__("edges.npy", hostile.npy("<i8", "(10000000000000,)", b"")), "another size than it"),
            (lambda m: m.__init__("edges.npy", hostile.npy("|O", "(1,)", b"\x80\x04N.")), "'edges' is no array"),
            (lambda m: m.__init__("edges.npy", hostile.npy("<i8", "(3L,)", bytes(24))), "'edges' is no array"),
            (lambda m: m.__init__("header.npy", m.content), "it holds 'header' twice"),
        ],
    )
    def test_what_is_wrong_is_said(self, tmp_path, model, change, message):
        def spoil(members):
            (edges,) = (member for member in members if member.name == b"edges.npy")
            change(edges)
            return hostile.archive(members)

        with pytest.raises(ValueError, match=message):
            pg.Model.load(self.changed(tmp_path, model, spoil))

    def test_a_deflated_model_is_read_too(self, tmp_path, model):
        def deflated(members):
            return hostile.archive([hostile.Member(each.name.decode(), each.content, 8) for each in members])

        assert pg.Model.load(self.changed(tmp_path, model, deflated)).network == model.network

    @pytest.mark.parametrize("read", [pg.Model.load, pg.training.TrainingState.load])
    def test_what_is_no_archive_is_said(self, tmp_path, read):
        np.save(tmp_path / "one.npy", np.zeros(3))
        with pytest.raises(ValueError, match=r"it is a single array \(.npy\)"):
            read(tmp_path / "one.npy")
        with pytest.raises(ValueError, match="is a folder"):
            read(tmp_path)
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ValueError, match="is a device or a pipe"):
            read(tmp_path / "pipe")

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("format", '"something else"', "is an .npz file, but not a phasegrad model"),
            ("network", "[" * 100_000, "damaged model file: lists in its JSON are nested too deeply"),
            ("settling", '{"solver": "auto", "tolerance": 1e400}', "the number 1e400 in its JSON is not finite"),
            ("settling", '{"solver": "auto", "tolerance": NaN}', "the number NaN in its JSON is not finite"),
            (
                "settling",
                '{"solver": "auto", "tolerance": ' + "9" * 50 + "}",
                r"the number 9{40}\.\.\. in its JSON is too",
            ),
            ("classes", '["a", ["i"]]', "its classes are not a list of names"),
            ("labels", '"oscillator"', "its labels are not a list of names"),
            ("node_attributes", '["oscillator"]', "its node attributes are not a list of dictionaries"),
            ("interaction", '{"kind": "Cosine"}', "its interaction is not known"),
            ("version", '"\\u001b[31m"', "has model format unknown; this version of phasegrad reads formats 2 and 3"),
        ],
    )
    def test_values_that_cannot_be_are_said(self, tmp_path, model, name, value, message):
        def spoil(members):
            (place,) = (k for k, each in enumerate(members) if each.name == b"header.npy")
            header = json.loads(members[place].content[128:].decode("utf-32-le").strip("\0 \n"))
            text = json.dumps({**header, name: "here"}).replace('"here"', value)
            members[place] = hostile.Member("header.npy", hostile.npy(f"<U{len(text)}", "()", text.encode("utf-32-le")))
            return hostile.signed(hostile.archive(members))

        place = self.changed(tmp_path, model, spoil)
        with pytest.raises(ValueError, match=message):
            pg.Model.load(place)

    def test_any_change_of_a_file_is_noticed(self, tmp_path, model):
        """Every number, every letter of the header and every member counts."""
        before = dataclasses.replace(model, network=model.network.replace(field_strength=0.1, field_phase=0.3))
        place = tmp_path / "model.npz"
        before.save(place)
        with np.load(place) as file:
            content = dict(file)
        for name, values in content.items():
            others = {key: each for key, each in content.items() if key != name}
            changed = (
                np.array(str(values).replace("a", "b", 1)) if values.dtype.kind == "U" else values + np.spacing(1.0)
            )
            for some in (others, {**others, name: changed}, {**others, name: values[None]}):
                np.savez(place, **some)
                with pytest.raises(ValueError, match=r"model\.npz is (a damaged model file|an \.npz file, but not)"):
                    pg.Model.load(place)
        np.savez(place, **content)
        assert pg.Model.load(place).network == before.network

    def test_a_file_without_a_digest_loads_if_it_is_complete(self, tmp_path, model):
        """As versions before 0.8 wrote it; a phase of the fields that is lost would be taken as 0."""
        before = dataclasses.replace(model, network=model.network.replace(field_strength=0.1, field_phase=0.3))
        place = tmp_path / "model.npz"
        before.save(place)
        with np.load(place) as file:
            content = {name: file[name] for name in file.files if name != "digest"}
        content["header"] = np.array(str(content["header"]).replace('"version": 3', '"version": 2'))
        np.savez(place, **content)
        assert pg.Model.load(place).network == before.network
        for name in content:
            np.savez(place, **{key: each for key, each in content.items() if key != name})
            with pytest.raises(ValueError, match=r"is a damaged model file|but not a phasegrad model"):
                pg.Model.load(place)

    def test_a_scaling_of_another_width_is_refused(self, model):
        with pytest.raises(ValueError, match=r"'scaling' of this Model must be of 2 values\. Got 3"):
            dataclasses.replace(model, scaling=pg.datasets.Scaling(np.zeros(3), np.ones(3)))


class TestStates:
    plan = pg.Plan.classifier(
        epochs=4, batch_size=4, validation_fraction=0.25, patience=3, learn=("coupling", "field_strength")
    )

    @pytest.fixture
    def data(self):
        x = np.random.default_rng(0).uniform(-1, 1, (12, 2))
        return x, (x[:, 0] > 0).astype(int)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"held_back": np.array([[0, 99, 3]])}, "This state is damaged: the samples that it holds back"),
            ({"held_back": np.array([[0, 0, 3]])}, "This state is damaged"),
            ({"held_back": np.zeros((1, 0), dtype=np.int64)}, "This state is damaged"),
            ({"streams": ()}, "belongs to another training"),
            ({"epoch": 7}, "Training stands at epoch 7 of 4"),
            ({"best": (np.zeros(1), {})}, "or the best parameters so far"),
        ],
    )
    def test_training_goes_on_from_its_own_state_only(self, data, change, message):
        network = pg.networks.signed_layers(2, 3, 2)
        state = dataclasses.replace(pg.train(network, data, self.plan, until=2).state, **change)
        with pytest.raises(ValueError, match=message):
            pg.train(network, data, self.plan, state=state)

    def test_a_number_that_was_changed_is_noticed(self, data, tmp_path):
        state = pg.train(pg.networks.signed_layers(2, 3, 2), data, self.plan, until=2).state
        place = tmp_path / "state.npz"
        state.save(place)
        with np.load(place) as file:
            content = dict(file)
        content["parameters.coupling"] = content["parameters.coupling"] * 1.5
        np.savez(place, **content)
        with pytest.raises(ValueError, match="something in it was changed or lost after it was written"):
            pg.training.TrainingState.load(place)

    def test_a_state_of_an_earlier_version_is_gone_on_from(self, data, tmp_path):
        network, place = pg.networks.signed_layers(2, 3, 2), tmp_path / "state.npz"
        pg.train(network, data, self.plan, until=2).state.save(place)
        with np.load(place) as file:
            content = {name: file[name] for name in file.files if name != "digest"}
        content["header"] = np.array(str(content["header"]).replace('"version": 3', '"version": 2'))
        np.savez(place, **content)
        again = pg.train(network, data, self.plan, state=pg.training.TrainingState.load(place))
        assert again.network == pg.train(network, data, self.plan).network

    def test_memory_and_parameters_are_checked(self, data):
        network = pg.networks.signed_layers(2, 3, 2)
        state = pg.train(network, data, self.plan, until=2).state
        memory = dataclasses.replace(state.progress.memory, first={})
        lost = dataclasses.replace(state, progress=state.progress._replace(memory=memory))
        with pytest.raises(ValueError, match="belongs to another training"):
            pg.train(network, data, self.plan, state=lost)
        narrow = dataclasses.replace(state, progress=state.progress._replace(phases=np.zeros((1, 2))))
        with pytest.raises(ValueError, match="belongs to another training"):
            pg.train(network, data, self.plan, state=narrow)
        infinite = state.replace(coupling=np.full_like(state.parameters["coupling"], np.inf))
        with pytest.raises(ValueError, match="'coupling' parameter of Network must be finite"):
            pg.train(network, data, self.plan, state=infinite)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda s: {"waited": s.waited - 1}, "whole numbers of at least 0"),
            (lambda s: {"waited": np.zeros(3, dtype=np.int64)}, "not of one number of networks"),
            (lambda s: {"held_back": s.held_back + 0.5}, "whole numbers of at least 0"),
            (lambda s: {"epoch": -1}, "'epoch' parameter of a state must be a whole number"),
            (lambda s: {"streams": ({"bit_generator": "MT19937"},)}, "in no state that there is"),
            (lambda s: {"best": (s.best[0] * np.nan, s.best[1])}, "its lowest cost is no number"),
            (lambda s: {"best": (np.zeros(2), s.best[1])}, "its lowest cost is no number"),
            (lambda s: {"best": (s.best[0], {"coupling": np.zeros((1, 2))})}, "not of one shape by every parameter"),
            (lambda s: {"origin": 3}, "does not say what it belongs to"),
        ],
    )
    def test_a_file_of_what_can_be_no_state_is_refused(self, data, tmp_path, change, message):
        state = pg.train(pg.networks.signed_layers(2, 3, 2), data, self.plan, until=2).state
        dataclasses.replace(state, **change(state)).save(tmp_path / "state.npz")
        with pytest.raises(ValueError, match=message):
            pg.training.TrainingState.load(tmp_path / "state.npz")


class TestFolders:
    @pytest.fixture
    def folder(self, tmp_path):
        from phasegrad_paper.reproduction import reproduce

        self.study = hostile.Folders(tmp_path).study
        self.again = lambda: reproduce([self.study], tmp_path / "folder", workers=1)
        return tmp_path / "folder"

    @pytest.mark.parametrize("name", ["tables", "figures"])
    def test_a_file_in_the_way_of_the_report_is_said_before_anything_is_computed(self, folder, name):
        (folder / name).write_text("mine")
        with pytest.raises(ValueError, match=rf"{name} is a file\. Remove it"):
            self.again()

    @pytest.mark.parametrize("name", ["index.html", "results.json"])
    def test_a_place_that_cannot_be_written_to_is_said_first(self, folder, name):
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()
        with pytest.raises(OSError, match=rf"Could not write .*{name}: Is a directory\. Name a file\."):
            self.again()

    def test_a_piece_too_large_to_be_read_again_is_not_kept(self, folder, monkeypatch):
        from phasegrad_paper.reproduction import folder as folders

        for path in (folder / "pieces").iterdir():
            path.unlink()
        monkeypatch.setattr(folders, "MOST_JSON", 100)
        with pytest.raises(ValueError, match=r"is larger than 0 MB\. Let it return less"):
            self.again()
        monkeypatch.undo()
        (folder / "run.json").write_text(" " * (_files.MOST_JSON + 1))
        with pytest.raises(ValueError, match=r"run\.json is damaged"):
            self.again()


class TestTables:
    def read(self, tmp_path, content: bytes):
        (tmp_path / "samples.csv").write_bytes(content)
        return read_samples(tmp_path / "samples.csv", hostile.FEATURES)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"f1_hz,f2_hz\n5_1,2\n", "line 2: f1_hz is '5_1', not a number"),
            ("f1_hz,f2_hz\n٣,2\n".encode(), "line 2: f1_hz is '٣', not a number"),
            (b"f1_hz,f2_hz\n1e400,2\n", "line 2: f1_hz is '1e400', not a finite number"),
            (b"f1_hz,f2_hz,f1_hz\n1,2,3\n", "line 1 names the column 'f1_hz' twice"),
            (b"\n\nf1_hz,f2_hz,f2_hz\n1,2,3\n", "line 3 names the column 'f2_hz' twice"),
            (b"f1_hz,f2_hz\n\n\n1,2,3\n", "line 4: columns in this line 3, in the header 2"),
            (b"f1_hz,f2_hz\r\n\r\n1\r\n", "line 3: columns in this line 1, in the header 2"),
            (b'f1_hz,f2_hz,word\n1,2,"a\nb\nc"\n\n1,2,"d\ne",9\n', "line 6: columns in this line 4, in the header 3"),
            (b"f1_hz,f2_hz,word\n1,2," + b"x" * 131_073, "line 2 cannot be read as CSV: a field has more than 131072"),
            (b'f1_hz,f2_hz\n1,"2\n3,4\n', "line 2 cannot be read as CSV: unexpected end of data"),
            (b"f1_hz,f2_hz\n1,2\0\n", "line 2 holds a character of code 0"),
            (b"\0" * 9_000_000, "line 1 has more than 4194304 characters"),
            ("f1_hz,f2_hz\n1,2\n".encode("utf-16"), "is not a text file in UTF-8. Save it as CSV in that encoding"),
            (b"f1_hz,f2_hz,gr\xfcn\n1,2,3\n", "is not a text file in UTF-8"),
            (b"", "samples.csv is empty"),
            (b"\xef\xbb\xbf", "samples.csv is empty"),
            (b"f1_hz,f2_hz\n\n", "has a header and no rows under it"),
            (b"f1_hz,\x1b[31mf2\n1,2\n", r"the file has f1_hz, \\x1b\[31mf2\."),
        ],
    )
    def test_a_wrong_table_is_refused_with_its_line(self, tmp_path, content, message):
        with pytest.raises(ValueError, match=message) as caught:
            self.read(tmp_path, content)
        assert type(caught.value) is ValueError
        assert str(caught.value).isprintable()

    @pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
    def test_a_right_table_is_read(self, tmp_path, end):
        lines = (b"\xef\xbb\xbff2_hz,word,f1_hz", b"", b'2,"a, b",1e1', b" 3 ,,-.5")
        np.testing.assert_array_equal(self.read(tmp_path, end.join(lines)).x, [[10, 2], [-0.5, 3]])


class TestWriting:
    def test_permissions_are_kept_and_new_files_have_those_of_the_umask(self, tmp_path, model):
        old, new = tmp_path / "old.npz", tmp_path / "new.npz"
        old.write_text("before")
        old.chmod(0o640)
        before = os.umask(0o027)
        try:
            model.save(old)
            model.save(new)
            secret = tmp_path / "secret"
            secret.touch(0o600)
            seen = []
            _files.write_whole(secret, lambda file: seen.append(stat.S_IMODE(os.fstat(file.fileno()).st_mode)))
        finally:
            os.umask(before)
        assert stat.S_IMODE(old.stat().st_mode) == 0o640
        assert stat.S_IMODE(new.stat().st_mode) == 0o640
        assert seen == [0o600]  # never open to others, not even before it is moved
        old.chmod(0o666)
        model.save(old)
        assert stat.S_IMODE(old.stat().st_mode) == 0o666

    def test_a_link_stays_and_its_target_is_replaced(self, tmp_path):
        (tmp_path / "folder").mkdir()
        target, link, twice = tmp_path / "folder" / "target", tmp_path / "link", tmp_path / "twice"
        target.write_text("before")
        link.symlink_to("folder/target")
        twice.symlink_to("link")
        _files.write_json(twice, 1)
        assert target.read_text() == "1\n"
        target.unlink()
        _files.write_json(link, 2)
        assert target.read_text() == "2\n"
        assert link.is_symlink()
        assert twice.is_symlink()
        assert list((tmp_path / "folder").iterdir()) == [target]

    @linux
    def test_devices_and_pipes_are_written_to(self, tmp_path, model):
        model.save("/dev/null")
        assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
        with pytest.raises(OSError, match="Could not write /dev/full: No space left on device"):
            model.save("/dev/full")
        pipe, read = tmp_path / "pipe", []
        os.mkfifo(pipe)
        reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
        reader.start()
        model.save(pipe)
        reader.join()
        assert pipe.is_fifo()
        model.save(tmp_path / "model.npz")
        assert len(read[0]) == (tmp_path / "model.npz").stat().st_size
        (tmp_path / "through.npz").write_bytes(read[0])
        assert pg.Model.load(tmp_path / "through.npz").network == model.network

    @linux
    def test_a_file_that_is_standard_output_is_written_to_in_turn(self, tmp_path):
        script = (
            "import sys, pathlib, phasegrad._files as f\n"
            "print('first'); f.write_json(pathlib.Path(sys.argv[1]), 2); print('third')"
        )
        for name in ("/dev/stdout", tmp_path / "out"):
            with (tmp_path / "out").open("w") as out:
                subprocess.run([sys.executable, "-c", script, str(name)], stdout=out, check=True)
            assert (tmp_path / "out").read_text() == "first\n2\nthird\n"

    @linux
    def test_standard_output_is_told_from_the_stream_of_errors(self, capfd, tmp_path):
        assert _files.is_standard_output(Path("/dev/fd/1"))
        assert not _files.is_standard_output(Path("/dev/fd/2"))
        assert not _files.is_standard_output(tmp_path / "nothing")

    @pytest.mark.parametrize("write", [lambda path: _files.write_bytes(path, b"x"), _files.check_place])
    def test_a_place_that_cannot_be_is_said(self, tmp_path, write):
        (tmp_path / "old").write_text("before")
        (tmp_path / "old").chmod(0o444)
        (tmp_path / "loop").symlink_to("loop")
        (tmp_path / "lost").symlink_to("gone/file")
        for name, words in (
            ("old", "It is read-only"),
            ("loop", "Too many levels of symbolic links"),
            ("lost", "No such file or directory. Make its folder first"),
            ("x" * 300, "File name too long"),
            ("", "Is a directory. Name a file"),
            ("old/below", "Not a directory"),
            ("\x1b[31m/x", "No such file"),
        ):
            with pytest.raises(OSError, match=words) as caught:
                write(tmp_path / name)
            assert type(caught.value) is OSError
            assert str(caught.value).isprintable()
        assert (tmp_path / "old").read_text() == "before"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["loop", "lost", "old"]
        write(tmp_path / ("x" * 250))  # the longest names have unfinished files too

    def test_checking_a_place_leaves_it_as_it_was(self, tmp_path):
        (tmp_path / "old").write_text("before")
        for name in ("old", "new"):
            _files.check_place(tmp_path / name)
        assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("old", "before")]

    def test_a_disk_that_fills_up_leaves_the_previous_file_whole(self, tmp_path):
        """The limit on a file's size stands for the end of the disk: it stops the writing itself, not only its end."""
        script = (
            "import resource, sys, pathlib, phasegrad._files as f\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))\n"
            "try: f.write_json(pathlib.Path(sys.argv[1]), 'x' * 10**6)\n"
            "except OSError as error: print(error)"
        )
        place = tmp_path / "out.json"
        place.write_text("before")
        done = subprocess.run([sys.executable, "-c", script, str(place)], capture_output=True, text=True, check=True)
        assert done.stdout == f"Could not write {place}: File too large. Choose another place.\n"
        assert place.read_text() == "before"
        assert list(tmp_path.iterdir()) == [place]


class TestCommands:
    @pytest.fixture
    def files(self, tmp_path, model):
        model.save(tmp_path / "model.npz")
        (tmp_path / "samples.csv").write_text("f1_hz,f2_hz\n0.5,0.1\n0.2,-0.3\n")
        return tmp_path / "model.npz", tmp_path / "samples.csv"

    def test_a_dash_is_standard_output_and_nothing_else_is_there(self, files, here, tmp_path):
        save = tmp_path / "new.npz"
        for words in (
            ("predict", *files, "--json", "-"),
            ("studies", "--json", "-"),
            ("train", "xor", "--epochs", "1", "--save", save, "--json", "-"),
            ("train", "xor", "--method", "classifier", "--epochs", "1", "--json", "-"),
            ("grid", "case9", "--json", "-"),
        ):
            result = here(*words)
            assert result.returncode == 0
            assert json.loads(result.stdout)
            assert result.stderr  # the tables
        assert pg.Model.load(save)
        assert not list(tmp_path.glob("-"))

    @linux
    def test_a_pipeline_reads_plain_json(self, files):
        command = [sys.executable, "-m", "phasegrad", "predict", *map(str, files)]
        for name in ("-", "/dev/stdout"):
            done = subprocess.run([*command, "--json", name], capture_output=True, text=True, env=ENVIRONMENT)
            assert set(json.loads(done.stdout)) == {"classes", "stable"}
            assert "2 samples" in done.stderr

    def test_a_model_does_not_go_to_standard_output(self, here):
        result = here("train", "xor", "--save", "-")
        assert result.returncode == 2
        assert "A model is not text and needs a file of its own" in result.stderr

    @pytest.mark.parametrize("which", ["samples.csv", "model.npz", "hard link", "symbolic link"])
    def test_no_command_writes_onto_what_it_reads(self, files, here, tmp_path, which):
        os.link(files[1], tmp_path / "hard link")
        (tmp_path / "symbolic link").symlink_to(files[0])
        before = [path.read_bytes() for path in files]
        result = here("predict", *files, "--json", tmp_path / which)
        assert result.returncode == 2
        assert f"{which} is what this command reads" in " ".join(result.stderr.split())
        assert [path.read_bytes() for path in files] == before

    @pytest.mark.parametrize("option", ["--json", "--save"])
    def test_a_place_that_cannot_be_is_refused_before_training(self, here, tmp_path, monkeypatch, option):
        monkeypatch.setattr(pg, "train", lambda *_, **__: pytest.fail("It trained."))
        (tmp_path / "old").write_text("before")
        (tmp_path / "old").chmod(0o400)
        (tmp_path / "loop").symlink_to("loop")
        for name in ("old", "loop", "gone/file", "", "x" * 300):
            result = here("train", "xor", option, tmp_path / name)
            assert result.returncode == 2
            assert "Error:" in result.stderr
        assert (tmp_path / "old").read_text() == "before"

    @pytest.mark.parametrize("name", ["\x1b[31mred", "[red]red[/red]", "two\nlines", "\x07\x08\r\x9b31m", "\u202eder"])
    def test_names_do_not_take_hold_of_the_terminal(self, tmp_path, model, here, name):
        shown = dataclasses.replace(model, classes=(name, f"{name} too"), features=(name, "f2_hz"))
        shown.save(tmp_path / "model.npz")
        quoted = name.replace('"', '""')
        table, wrong = tmp_path / "samples.csv", tmp_path / "wrong.csv"
        table.write_text(f'"{quoted}",f2_hz\n0.5,0.1\n', newline="")
        wrong.write_text(f'"{quoted} too",f2_hz,"{quoted} too"\n0.5,0.1,0\n', newline="")
        place = tmp_path / f"{name.replace('/', '|')}.json"
        for words, status in (
            ((tmp_path / "model.npz", table, "--json", place), 0),
            ((tmp_path / "model.npz", wrong), 2),
            ((place.with_suffix(".npz"), table), 2),
            ((tmp_path / "model.npz", place.with_suffix(".csv")), 2),
        ):
            result = here("predict", *words)
            assert result.returncode == status
            said = result.stdout + result.stderr
            assert "red" not in name or "red" in said  # what looks like markup is not taken for it
            assert not [each for each in said if not each.isprintable() and each != "\n"]
            if "[red]" in name:
                assert "[red]" in said
        assert json.loads(place.read_text())["classes"][0] in (name, f"{name} too")

    def test_whatever_an_error_says_stays_on_its_line(self, here, monkeypatch):
        def load(path):
            raise ValueError("x\nError: \x1b[31mall is lost")

        monkeypatch.setattr(pg.Model, "load", load)
        assert here("predict", "x", "y").stderr == "Error: x\\nError: \\x1b[31mall is lost\n"


def test_numbers_beyond_all_range_are_refused_in_words():
    for value in (10**400, -(10**400)):
        with pytest.raises(ValueError, match="must be a float greater than 0"):
            pg.objectives.PaperPair(value)
        with pytest.raises(ValueError, match="must be an array of real numbers"):
            pg.networks.ring(4, coupling=value)


@linux
def test_the_limit_of_the_campaign_holds(tmp_path):
    """A file that did take more memory than the campaign allows would be noticed."""
    script = (
        "import hostile_files as h, numpy as np\n"
        "h.limit_memory()\n"
        "try: np.ones(2**26)\n"
        "except MemoryError: print('refused')"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.stdout == "refused\n"
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY


def test_json_has_no_nan():
    text = _files.json_text({"r2": float("nan"), "list": [1.0, float("inf")], "pair": (float("-inf"), 2)})
    assert json.loads(text) == {"r2": None, "list": [1.0, None], "pair": [None, 2]}
