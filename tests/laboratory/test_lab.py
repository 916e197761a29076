"""The lab: the page's physics against the library's, what a person does on it, and what it refuses."""

import functools
import http.server
import json
import math
import re
import shutil
import threading
import warnings
import webbrowser
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from urllib.parse import urlparse

import numpy as np
import pytest
from random_networks import INTERACTIONS, RECIPROCAL, inputs_for, make_network

import phasegrad as pg
from phasegrad.laboratory import lab, page_data, scene
from phasegrad.training import Shuffle

BETA = 0.01


# What Python makes of a network.


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="module")
def paper_page(place):
    return lab(out=place / "paper.html", open=False)


@pytest.fixture(scope="module")
def model(place):
    """A model with two inputs, two classes and a scaling, as `Model.save` writes it."""
    data = pg.datasets.vowels(("a", "i"), seed=0)
    made = pg.Model(
        pg.initial.spectral_frequencies(pg.layered(2, 5, 2)),
        pg.objectives.NearestTarget(),
        data.classes,
        data.features,
        data.scaling,
    )
    made.save(place / "model.npz")
    return made


def test_a_scene_is_plain_and_holds_the_network_as_it_is():
    network = make_network(8, 3, kind="all terms")
    plain = json.loads(json.dumps(scene(network)))
    assert plain["network"]["parameters"] == {name: each.tolist() for name, each in network.parameters.items()}
    assert plain["network"]["edges"] == network.edges.tolist()
    assert plain["inputs"] == (network.omega[list(network.inputs)] / network.input_scale).tolist()
    assert plain["objective"] == {"kind": "PhaseTargets", "nodes": list(network.outputs)}
    assert scene()["network"]["parameters"]["omega"] == pg.layered(2, 5, 2).omega.tolist()


def test_shared_parameters_are_spread_over_all_oscillators_and_edges():
    network = pg.layers((1, 4, 4), pg.Convolution(2, 3, padding=1), pg.Dense(2), field=2.0)
    plain = scene(network)["network"]
    assert plain["size"] == network.size
    assert len(plain["parameters"]["coupling"]) == len(plain["edges"]) == network.n_edges > network.coupling.size


def test_a_fitted_estimator_is_shown_as_its_model():
    x = np.random.default_rng(0).uniform(-1, 1, (12, 2))
    fitted = pg.OscillatorClassifier(hidden=3, epochs=0, random_state=0).fit(x, x[:, 0] > 0)
    plain = scene(fitted)
    assert plain["classes"] == ["False", "True"]
    assert plain["objective"]["kind"] == "CosineCrossEntropy"
    assert plain["scaling"][0] == fitted.scaling_.low.tolist()


class Third(pg.terms.NodeField):
    every = (pg.terms.Parameter("third_strength"), pg.terms.Parameter("third_phase", default=0.0))
    interaction = pg.terms.OddSeries((0, 0, 1))


class Tangent(pg.terms.Interaction):
    def value(self, phi):
        return np.sin(phi) * np.exp(np.cos(phi))

    def derivative(self, phi):
        return (np.cos(phi) - np.sin(phi) ** 2) * np.exp(np.cos(phi))

    def potential(self, phi):
        return -np.exp(np.cos(phi))


class Own(pg.Cost):
    def cost(self, phases, target):
        return np.sum(phases * target, axis=-1)


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (
            lambda: pg.networks.ring(401, outputs=[3]),
            "at most 400 oscillators and 10000 edges. This network has 401 and 401",
        ),
        (lambda: pg.networks.complete(200, outputs=[3]), "This network has 200 and 19900"),
        (lambda: pg.networks.ring(4, outputs=[2], terms=[Third()], third_strength=0.3), "but not Third."),
        (lambda: pg.networks.ring(4, outputs=[2], anisotropy=0.2), "but not Anisotropy. Use simulate"),
        (lambda: pg.networks.ring(4, outputs=[2], global_coupling=0.2), "but not MeanField."),
        (lambda: pg.networks.ring(4, outputs=[2], lag=0.2), "but not PhaseLag."),
        (lambda: make_network(6, 0, kind="non-reciprocal"), "Leave 'coupling_reverse' out."),
        (lambda: pg.networks.ring(4), "Name some: network.replace(outputs=[...])."),
        (
            lambda: pg.networks.ring(4, outputs=[2], interaction=Tangent()),
            "knows Sine and OddSeries interactions, not Tangent",
        ),
        (lambda: pg.Model(pg.networks.ring(4, outputs=[2]), Own(), ("y",), ()), "Got Own."),
        (lambda: 3, "The lab shows a Network, a Model, a fitted"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_words(shown, words, tmp_path):
    with pytest.raises((ValueError, TypeError)) as refused:
        lab(shown(), out=tmp_path / "lab.html", open=False)
    assert words in str(refused.value)
    assert str(refused.value).count(". ") <= 2
    assert list(tmp_path.iterdir()) == []


def test_the_page_is_light_and_complete_in_itself(paper_page):
    text = paper_page.read_text(encoding="utf-8")
    assert len(text.encode("utf-8")) < 200_000
    assert "default-src 'none'" in text
    for mark in ("style", "modules", "stills", "data", "policy"):
        assert f"<!-- {mark} -->" not in text


def test_names_from_a_stranger_cannot_leave_their_place_in_the_page(tmp_path):
    network = pg.networks.ring(3, outputs=[1], labels=["</script><script>alert(1)</script>", "b", "c"])
    assert "</script><script>alert" not in lab(network, out=tmp_path / "lab.html", open=False).read_text("utf-8")


# The command line.


def test_the_command_writes_a_page_and_never_replaces_a_file(here, tmp_path, model, place, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    page = tmp_path / "lab.html"
    assert here("lab", str(place / "model.npz"), "--out", str(page), "--no-open").returncode == 0
    assert '"classes":["a","i"]' in page.read_text(encoding="utf-8")
    assert opened == []
    page.write_text("mine")
    refused = here("lab", "--out", str(page))
    assert refused.returncode == 2
    assert "lab.html is there already. Name another place, or delete it first." in refused.stderr.replace("\n", "")
    assert page.read_text() == "mine"
    assert "needs a file of its own" in here("lab", "--out", "-").stderr
    assert "does not exist" in here("lab", "--out", str(tmp_path / "no" / "lab.html")).stderr
    assert here("lab", str(tmp_path / "none.npz")).returncode == 2
    assert here("lab", "--out", str(tmp_path / "other.html")).returncode == 0
    assert opened == [(tmp_path / "other.html").as_uri()]
    assert "Example: phasegrad lab" in here("lab", "--help").stdout


def test_without_a_place_the_page_lies_in_a_temporary_folder(monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    page = pg.lab(pg.layered(2, 3, 2))
    assert page.is_relative_to(tmp_path)
    assert opened == [page.as_uri()]


# The page in a browser.


def watched(context):
    """Return a new page that remembers what it asked for and complained about."""
    page = context.new_page()
    page.requests, page.complaints = [], []
    page.on("request", lambda request: page.requests.append(request.url))
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    return page


def check_peace(page):
    """Nothing was complained about, and nothing fetched but the page itself."""
    assert page.complaints == []
    assert {urlparse(url).scheme for url in page.requests} <= {"file", "data", "blob"}
    assert {url.partition("#")[0] for url in page.requests if url.startswith("file:")} == {page.url.partition("#")[0]}


@pytest.fixture
def visit(browser):
    """Open a page with reduced motion unless it is said otherwise; it must neither complain nor fetch anything."""
    contexts = []

    def open_page(path, *, width=1280, height=900, motion="reduce", **look):
        context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion=motion, **look)
        contexts.append(context)
        page = watched(context)
        page.goto(path if isinstance(path, str) else path.as_uri())
        if look.get("java_script_enabled", True):
            page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield open_page
    for context in contexts:
        for page in context.pages:
            check_peace(page)
        context.close()


@pytest.fixture(scope="module")
def shared(browser, paper_page):
    """One page with reduced motion for all tests that leave nothing behind but what a step of the tour sets anew."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = watched(context)
    page.goto(paper_page.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    yield page
    check_peace(page)
    context.close()


@pytest.fixture
def page(shared):
    """The shared page, at the first step of the tour."""
    shared.set_viewport_size({"width": 1280, "height": 900})
    shared.emulate_media(reduced_motion="reduce", color_scheme="light")
    shared.evaluate("document.getElementById('message').textContent = ''; lab.tour.open(0)")
    return shared


PHYSICS = """async cases => {
  const {System, settle, adjoint, nudgedGradient, raw} = await import("lab/physics.js");
  const {costOf, objectiveOf} = await import("lab/objectives.js");
  const plain = slopes => Object.fromEntries(Object.entries(slopes).map(([name, each]) => [name, Array.from(each)]));
  return cases.map(({scene, inputs, target, beta}) => {
    const system = new System(scene.network, inputs);
    const free = settle(system, new Float64Array(system.size));
    const {nodes} = scene.objective;
    const cost = costOf(objectiveOf(scene.objective), target, nodes.length);
    const exact = adjoint(system, free.phases, cost, nodes);
    return {
      phases: Array.from(free.phases), stable: free.stable, energy: system.energy(free.phases),
      adjoint: plain(exact), raw: Array.from(raw(system, exact.omega)),
      two_phase: plain(nudgedGradient(system, free.phases, cost, nodes, beta)),
      centred: plain(nudgedGradient(system, free.phases, cost, nodes, beta, true)),
    };
  });
}"""

OBJECTIVES = [
    pg.PhaseTargets(),
    pg.objectives.PaperPair(),
    pg.objectives.NearestTarget(0.4),
    pg.objectives.OutputDifferences(),
    pg.objectives.PeriodicDistance(),
    pg.objectives.OneHotPhases(),
    pg.CosineCrossEntropy(2.0),
]


def random_case(number):
    """Return a network, its data, an objective and its target: all kinds of networks, all objectives."""
    kind = RECIPROCAL[number % len(RECIPROCAL)]
    network = make_network(5 + number % 9, number, kind=kind, spread=0.2)
    network = network.replace(interaction=INTERACTIONS[number % len(INTERACTIONS)])
    if number % 7 == 6:
        network = pg.networks.signed_layers(2, 4, 2, seed=number)
    objective = OBJECTIVES[number % len(OBJECTIVES)]
    stream = np.random.default_rng(number)
    target = stream.uniform(-0.3, 0.3, len(network.outputs)) if number % len(OBJECTIVES) == 0 else number % 2
    return network, inputs_for(network, (), number), objective, target


@pytest.mark.parametrize(
    "first", [0, pytest.param(20, marks=pytest.mark.slow), pytest.param(40, marks=pytest.mark.slow)]
)
def test_equilibria_and_gradients_are_those_of_python(first, page):
    """Both find the same states to rounding, which a gradient from nudges divides by beta."""
    cases = [random_case(number) for number in range(first, first + 20)]
    given = [
        {
            "scene": scene(pg.Model(network, objective, range(len(network.outputs)), range(len(network.inputs)))),
            "inputs": [] if inputs is None else inputs.tolist(),
            "target": np.asarray(target).tolist(),
            "beta": BETA,
        }
        for network, inputs, objective, target in cases
    ]
    seen = page.evaluate(PHYSICS, given)
    for (network, inputs, objective, target), found in zip(cases, seen, strict=True):
        free = pg.find_equilibrium(network, inputs)
        assert free.stable
        assert found["stable"]
        assert np.max(np.abs(np.array(found["phases"]) - free.phases)) < 1e-9
        assert abs(found["energy"] - pg.dynamics.energy(network, free.phases, inputs)) < 1e-9
        question = (network, free, objective, target)
        names = tuple(network.parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pg.gradients.GradientWarning)  # some nudges here are strong
            for method, options in ((pg.adjoint, {}), (pg.two_phase, {"beta": BETA}), (pg.centred, {"beta": BETA})):
                gradient = method(*question, wrt=names, **options)
                for name in names:
                    far = np.array(found[method.__name__][name]) - getattr(gradient, name)
                    assert np.max(np.abs(far)) < 1e-9, (method.__name__, name)
        raw = pg.adjoint(*question, frequencies="raw").omega
        assert np.max(np.abs(np.array(found["raw"]) - raw)) < 1e-9


COSTS = """async ([settings, phases, targets]) => {
  const {costOf, objectiveOf} = await import("lab/objectives.js");
  const objective = objectiveOf(settings);
  return phases.map((theta, k) => {
    const cost = costOf(objective, targets[k], theta.length);
    const decision = objective.decide ? objective.decide(theta) : null;
    return [cost.cost(theta), Array.from(cost.force(theta)), Array.from(cost.hessian(theta)), decision];
  });
}"""


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda each: type(each).__name__)
def test_objectives_are_those_of_python(objective, page):
    stream = np.random.default_rng(3)
    phases = stream.uniform(-2, 2, (6, 3))
    with_classes = isinstance(objective, pg.objectives.ClassObjective)
    targets = stream.integers(0, 3, 6) if with_classes else stream.uniform(-1, 1, (6, 3))
    rows = objective.table(3)[targets] if with_classes else targets
    settings = {"kind": type(objective).__name__, **vars(objective)}
    found = page.evaluate(COSTS, [settings, phases.tolist(), targets.tolist()])
    for k, (cost, force, hessian, decision) in enumerate(found):
        assert cost == pytest.approx(float(objective.cost(phases[k], rows[k])), abs=1e-12)
        assert force == pytest.approx(objective.force(phases[k], rows[k]), abs=1e-12)
        assert hessian == pytest.approx(np.ravel(objective.hessian(phases[k], rows[k])), abs=1e-12)
        assert decision == (int(objective.decide(phases[k])) if with_classes else None)


class Natural(Shuffle):
    """Samples in the order in which they are given."""

    def order(self, stream, size, epoch):
        return np.arange(size)


EPOCH = """async ([name, start, recipe, rounds]) => {
  const {Learner} = await import("lab/learning.js");
  const learner = new Learner(lab.data.tasks[name], start, recipe);
  const order = Array.from({length: learner.train.x.length}, (_, k) => k);
  for (let k = 0; k < rounds; k++) learner.epoch(order);
  return {parameters: learner.current().parameters, before: learner.history[0], after: learner.history.at(-1)};
}"""


@pytest.mark.parametrize(
    ("name", "recipe"),
    [("vowels", "paper"), pytest.param("vowels", "matched", marks=pytest.mark.slow), ("xor", "matched")],
)
def test_an_epoch_of_learning_is_that_of_python(name, recipe, page):
    from phasegrad.laboratory import _tasks

    plan = {"paper": _tasks.PAPER, "matched": _tasks.MATCHED}[recipe] if name == "vowels" else _tasks.XOR
    plan = plan.replace(epochs=1, shuffle=Natural())
    if name == "vowels":
        network, data = pg.layered(2, 5, 2, seed=1), pg.datasets.vowels(("a", "i"), seed=0)
    else:
        network = pg.networks.signed_layers(2, 3, 2, skip=True, seed=1, input_scale=math.pi / 2)
        data = pg.datasets.xor()
    result = pg.train(network, data, plan, engine="batch")
    found = page.evaluate(EPOCH, [name, "random, seed 1", recipe, 1])
    for parameter, values in result.networks[0].parameters.items():
        # 220 updates, each a difference of phases over a nudge of 0.1.
        assert np.max(np.abs(np.array(found["parameters"][parameter]) - values)) < 1e-9, parameter
    assert found["after"]["test"] == pytest.approx(float(result.history.test_accuracy[0, -1]))
    assert found["before"]["test"] == pytest.approx(float(result.history.test_accuracy[0, 0]))


@pytest.mark.slow
def test_the_sign_of_d_decides_and_the_matched_decision_always_learns(page):
    ahead, behind = "d > 0: the spectral seed", "d < 0: its sign reversed"
    for start, recipe, accuracy in ((ahead, "paper", 0.96), (behind, "paper", 0.04), (behind, "matched", 1.0)):
        found = page.evaluate(EPOCH, ["vowels", start, recipe, 200])["after"]
        assert found["test"] == pytest.approx(accuracy, abs=0.03)
        assert recipe == "matched" or (found["difference"] > 0) == (start == ahead)
    assert page.evaluate(EPOCH, ["xor", "random, seed 0", "matched", 300])["after"]["test"] == 1.0


def text(page, place):
    return page.inner_text(place)


def test_a_nudge_shows_the_gradient_and_says_how_near_it_is(page):
    press(page, "Close")
    assert text(page, "#status").startswith("Settled and stable.")
    page.click("#nudge")
    assert page.get_attribute("#nudge", "aria-pressed") == "true"
    assert text(page, "#status") == "Nudged by β = 0.1: settled again."
    network, inputs = pg.layered(2, 5, 2), [0.8, -0.6]
    free = pg.find_equilibrium(network, inputs)
    exact, nudged = (
        method(network, free, pg.PhaseTargets(), [-0.2, 0.2], **options)
        for method, options in ((pg.adjoint, {}), (pg.two_phase, {"beta": 0.1}))
    )
    assert f"Cosine with the exact gradient {pg.gradients.cosine(nudged, exact):.6f}" in text(page, "#result")
    page.click("summary")
    page.wait_for_selector("#numbers tbody tr")
    rows = page.eval_on_selector_all("#numbers tbody tr", "rows => rows.map(row => row.innerText.split('\\t'))")
    assert [float(row[2].replace("−", "-")) for row in rows] == pytest.approx(exact.omega, rel=1e-3)
    assert [float(row[1].replace("−", "-")) for row in rows] == pytest.approx(nudged.omega, rel=1e-3)
    page.click("#nudge")
    assert page.get_attribute("#nudge", "aria-pressed") == "false"


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def error_shown(page):
    return page.evaluate("lab.bench.agreement.error")


def test_strong_nudges_are_biased_noise_drowns_and_the_centred_nudge_comes_back(page):
    page.evaluate("location.hash = '#tour=4'")
    page.get_by_text("Step 4 of 6").wait_for()
    weak = error_shown(page)
    press(page, "Strong nudge")
    assert error_shown(page) > 5 * weak
    press(page, "Noisy meter")
    assert error_shown(page) > 0.5
    before = page.evaluate("Array.from(lab.bench.reading)")
    press(page, "Read again")
    assert page.evaluate("Array.from(lab.bench.reading)") != before
    press(page, "Centred and strong")
    assert error_shown(page) < 0.15
    assert page.is_checked("#scheme-centred")
    assert text(page, "label[for=noise] + output") == "0.0005 rad"


def test_the_tour_tells_six_steps_by_keyboard_alone(page):
    titles, counts = [], []
    for step in range(6):
        counts.append(text(page, "[data-tour=count]"))
        titles.append(text(page, "#tour-title"))
        page.focus("[data-tour=next]")
        if step < 5:
            page.keyboard.press("Enter")
            assert page.evaluate("document.activeElement.id") == "tour-title"
    assert counts == [f"Step {k} of 6" for k in range(1, 7)]
    assert titles[2] == "The shift is the gradient"
    assert page.is_visible("#panel-learning")
    assert "d = 0.062: output 1 is ahead, a classifier." in text(page, "#learned")
    page.select_option("#start", "d < 0: its sign reversed")
    assert "output 2 is ahead, an inverted classifier." in text(page, "#learned")
    page.focus("[data-tour=next]")
    page.keyboard.press("Enter")
    assert page.is_hidden("#tour")
    assert page.evaluate("document.activeElement.id") == "open-tour"


def test_everything_has_a_name_and_answers_keys(page):
    unnamed = page.evaluate("""() => [...document.querySelectorAll('input, select, button, canvas')].filter(each =>
      !(each.labels?.length || each.getAttribute('aria-label') || each.innerText?.trim())).map(each => each.id)""")
    assert unnamed == []
    page.focus("#beta")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("lab.bench.beta") == pytest.approx(10**-0.95)
    assert page.get_attribute("#beta", "aria-valuetext") == "0.11"
    page.focus("#input-0")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("lab.bench.inputs[0]") == pytest.approx(0.79)
    page.focus("#tab-gradient")
    page.keyboard.press("ArrowRight")
    assert page.get_attribute("#tab-learning", "aria-selected") == "true"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    live = page.eval_on_selector_all("[aria-live=polite]", "all => all.map(each => each.id)")
    assert {"status", "result", "learned", "message"} <= set(live)


def test_frequencies_and_couplings_follow_a_drag_and_lose_lock_in_words(page):
    box = page.locator("#network").bounding_box()
    x, y = page.evaluate("lab.stage.picture.places[4]")
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.down()
    before = page.evaluate("lab.bench.system.parameters.omega[4]")
    page.mouse.move(box["x"] + x + 60, box["y"] + y, steps=3)
    page.mouse.up()
    assert page.evaluate("lab.bench.system.parameters.omega[4]") == pytest.approx(before + 0.5)
    assert page.input_value("#node") == "4"
    page.select_option("#edge", "3")
    page.fill("#coupling", "0.5")
    assert page.evaluate("lab.bench.system.parameters.coupling[3]") == 0.5
    page.evaluate("lab.change(() => lab.bench.system.parameters.coupling.fill(0.05))")
    page.fill("#omega", "4")
    assert text(page, "#status") == "Cannot lock: oscillator 4 is too fast for its couplings."
    assert text(page, "#result") == "No equilibrium, no gradient."
    assert page.is_disabled("#nudge")


def test_a_state_is_shared_by_its_address(page, visit):
    page.fill("#input-0", "0.33")
    page.fill("#beta", "-2")
    page.check("#scheme-centred")
    page.select_option("#kind", "coupling")
    page.select_option("#node", "5")
    page.fill("#omega", "0.25")
    page.click("#nudge")
    page.click("#share")
    page.wait_for_url(re.compile("#s="))
    there = visit(page.url)
    assert there.evaluate("lab.state()") == page.evaluate("lab.state()")
    assert there.evaluate("Array.from(lab.bench.reading)") == page.evaluate("Array.from(lab.bench.reading)")
    assert there.is_hidden("#tour")
    broken = visit(page.url[:-9])
    assert "holds no state of the lab" in text(broken, "#message")


def test_a_model_is_shown_saved_and_opened_again(model, place, page, visit):
    other, page = page, visit(lab(model, out=place / "model.html", open=False))
    assert text(page, "#shown") == "Model of 9 oscillators: 2 inputs, 2 outputs"
    assert page.is_hidden("#tour")
    raw = [[700.0, 1400.0], [300.0, 2300.0]]
    inputs = model.scaling.apply(raw)
    expected = model.predict(raw).labels.tolist()
    decide = "x => { lab.change(() => lab.bench.inputs = x); return lab.bench.decision }"
    assert [page.evaluate(decide, row) for row in inputs.tolist()] == expected
    with page.expect_download() as download:
        page.click("#save")
    saved = Path(download.value.path())
    other.set_input_files("#file", {"name": "mine.json", "mimeType": "application/json", "buffer": saved.read_bytes()})
    other.get_by_text("Opened mine.json").wait_for()
    assert other.evaluate("lab.state()") == page.evaluate("lab.state()")
    written = lab(model, out=place / "model.json")
    other.set_input_files("#file", str(written))
    other.get_by_text("Opened model.json").wait_for()
    assert other.evaluate("lab.bench.scene") == json.loads(written.read_text(encoding="utf-8"))


BAD_FILES = [
    (lambda plain: "no json {", "is not JSON"),
    (lambda plain: json.dumps([1]), "not a scene of the lab"),
    (lambda plain: json.dumps(plain | {"network": plain["network"] | {"size": 500}}), "at most 400 oscillators"),
    (
        lambda plain: json.dumps(
            plain | {"network": plain["network"] | {"parameters": plain["network"]["parameters"] | {"mass": [1]}}}
        ),
        "but not mass",
    ),
    (lambda plain: json.dumps(plain | {"inputs": ["<b>", None]}), "one number for each input"),
    (lambda plain: json.dumps(plain | {"objective": {"kind": "PhaseTargets", "nodes": [0]}}), "needs nodes that move"),
    (lambda plain: json.dumps(plain | {"objective": {"kind": "Own", "nodes": [7]}}), "must be one of PhaseTargets"),
    (lambda plain: json.dumps(plain | {"network": plain["network"] | {"edges": [[0, 99]]}}), "pairs of different"),
]


def test_files_that_cannot_be_shown_are_refused_in_a_sentence(page):
    plain = scene()
    before = page.evaluate("lab.state()")
    for number, (make, words) in enumerate(BAD_FILES):
        name = f"bad{number}.json"
        content = make(plain).encode("utf-8")
        page.set_input_files("#file", {"name": name, "mimeType": "application/json", "buffer": content})
        page.get_by_text(f"Could not open {name}.").wait_for()
        assert words in text(page, "#message")
    assert page.evaluate("lab.state()") == before


def test_bars_grow_with_the_shift_and_end_where_the_equilibrium_is(page):
    page.emulate_media(reduced_motion="no-preference")
    size = "Math.hypot(...(lab.readout.values ?? [0]))"
    page.evaluate("lab.stage.nudge()")
    sizes = page.evaluate(f"""() => new Promise(done => {{
      const sizes = [];
      const look = () => {{
        if (lab.stage.busy) sizes.push({size});
        if (lab.stage.busy || !sizes.length) requestAnimationFrame(look); else done([...sizes, {size}]);
      }};
      // Before the first frame the bars are those of what was shown last.
      requestAnimationFrame(() => requestAnimationFrame(look));
    }})""")
    assert len(sizes) > 5
    assert sizes[0] < 0.5 * sizes[-1]
    assert np.all(np.diff(sizes) > -1e-9)
    # The flow is stopped after nine lifetimes of the slowest mode.
    assert sizes[-2] == pytest.approx(sizes[-1], rel=0.02)
    assert page.evaluate("lab.stage.phases === lab.bench.states.plus.phases")
    page.evaluate("lab.stage.shake()")
    assert page.evaluate("lab.stage.busy && lab.bench.settled")


CLASSES = ("Adelie", "Chinstrap", "Gentoo")
FEATURES = ("bill length", "bill depth", "flipper", "mass", "Biscoe", "Dream", "Torgersen", "female", "male")


@pytest.fixture(scope="module")
def penguins(place):
    """A page of one's own model: nine inputs, fifty hidden oscillators, three classes; and the model."""
    x = np.random.default_rng(0).uniform(-1, 1, (30, 9))
    fitted = pg.OscillatorClassifier(hidden=50, epochs=0, random_state=0).fit(x, np.arange(30) % 3).to_model()
    made = pg.Model(fitted.network, fitted.objective, CLASSES, FEATURES, fitted.scaling, fitted.settling)
    return lab(made, out=place / "penguins.html", open=False), made


DRAWN = """async draw => {
  const [seen, bars] = [[], []];
  const {fillText, fillRect} = CanvasRenderingContext2D.prototype;
  const own = CanvasRenderingContext2D.prototype;
  own.fillText = function (text, x, y) { seen.push([text, x, y]); return fillText.call(this, text, x, y); };
  own.fillRect = function (...box) { bars.push(box); return fillRect.apply(this, box); };
  eval(draw);
  Object.assign(own, {fillText, fillRect});
  return {texts: seen, bars};
}"""


def drawn(page, what):
    """Return the texts with their places and the rectangles that a piece of the page draws on its canvas."""
    found = page.evaluate(DRAWN, what)
    return [words for words, *_ in found["texts"]], found


def test_a_model_says_what_it_decides_with_names_and_a_nudge_that_suits_it(penguins, visit):
    path, made = penguins
    page = visit(path)
    names, _ = drawn(page, "lab.stage.draw()")
    low, high = made.scaling.low, made.scaling.high
    (decided,) = made.predict([(low + high) / 2]).names
    assert text(page, "#answer") == f"The network decides: {decided}."
    assert {*FEATURES, *CLASSES} - {decided} | {f"✓ {decided}"} <= set(names)
    assert "Inputs are scaled: −1 and 1 are the ends of the training data." in text(page, "#controls-data")
    page.click("#nudge")
    assert 0.001 < error_shown(page) < 0.06
    assert page.evaluate("lab.bench.bias(0.1, false)") > 0.3
    page.select_option("#kind", "coupling")
    labels, found = drawn(page, "lab.readout.rest({reading: true})")
    assert len(found["bars"]) == 2 * made.network.n_edges
    assert min(wide for _, _, wide, _ in found["bars"]) >= 1
    assert sum("–" in label for label in labels) > 3
    assert "change of −cos(θᵢ − θⱼ) / β" in text(page, "#formula")
    page.set_viewport_size({"width": 390, "height": 844})
    names, _ = drawn(page, "lab.stage.draw()")
    assert {"in 1", "in 9", "Adelie"} - {decided} <= set(names)


def test_a_regression_says_that_its_phase_is_the_scaled_quantity(place, visit):
    x = np.random.default_rng(0).uniform(-1, 1, (12, 3))
    fitted = pg.OscillatorRegressor(hidden=6, epochs=0, random_state=0).fit(x, x[:, 0]).to_model()
    made = pg.Model(fitted.network, fitted.objective, ("price",), fitted.features, fitted.scaling, fitted.settling)
    page = visit(lab(made, out=place / "price.html", open=False))
    assert text(page, "#answer").startswith("The output’s phase stands for the scaled quantity: price ")
    page.click("#tab-learning")
    names, _ = drawn(page, "lab.classroom.draw()")
    assert "output 1: price" in " ".join(names)
    assert "output 2" not in " ".join(names)


def test_learning_and_the_tour_leave_a_way_back_to_ones_own_network(penguins, visit):
    page = visit(penguins[0])
    page.click("#tab-learning")
    assert page.is_hidden("#map")
    _, found = drawn(page, "lab.classroom.draw()")
    rings = [(words, x, y) for words, x, y in found["texts"] if words.startswith("output")]
    assert [words.partition(" (")[0] for words, *_ in rings] == [f"output {k + 1}: {c}" for k, c in enumerate(CLASSES)]
    assert np.min(np.diff([y for *_, y in rings])) >= 12
    assert "takes the place of yours, which is kept" in text(page, "#learned")
    assert page.is_hidden("#home")
    page.evaluate("lab.change(() => (lab.bench.system.parameters.omega[12] = 0.123))")
    mine = page.evaluate("lab.bench.current()")
    page.click("#step")
    assert page.is_visible("#map")
    page.click("#home")
    assert page.evaluate("lab.bench.current()") == mine
    assert page.is_hidden("#home")
    assert page.get_attribute("#open-tour", "title") == "Shows the paper’s network in place of yours"
    page.click("#open-tour")
    assert "Yours is kept: Back to my network shows it again." in text(page, "#message")
    press(page, "Next")
    page.click("#home")
    assert page.is_hidden("#tour")
    assert page.evaluate("lab.bench.current()") == mine


def within(page, selector):
    """Whether a part lies wholly in view, not below what sticks to the top."""
    return page.evaluate(
        """selector => {
          const box = document.querySelector(selector).getBoundingClientRect();
          const tour = document.getElementById('tour');
          const stuck = tour.contains(document.querySelector(selector)) ? 0 : tour.getBoundingClientRect().bottom;
          return box.height > 0 && box.top >= Math.max(0, stuck) - 1 && box.bottom <= innerHeight + 1;
        }""",
        selector,
    )


def test_a_phone_sees_what_a_step_changes_and_goes_on_from_there(page):
    page.set_viewport_size({"width": 390, "height": 844})
    for step, name, chart in ((2, "Nudge", "#bars"), (3, "Noisy meter", "#errors")):
        page.evaluate(f"lab.tour.open({step})")
        assert not within(page, chart)
        page.click(f"[data-tour=actions] >> text={name}")
        assert within(page, chart)
        assert within(page, "[data-tour=next]")
    pressed = page.eval_on_selector_all("[data-tour=actions] button", "all => all.map(each => each.ariaPressed)")
    assert pressed == ["false", "true", "false"]
    press(page, "Text")
    assert page.is_visible("[data-tour=text]")
    page.click("[data-tour=actions] >> text=Strong nudge")
    press(page, "Next")
    assert text(page, "[data-tour=count]") == "Step 5 of 6"
    assert within(page, "#tour-title")
    assert page.is_visible("[data-tour=text]")
    names, _ = drawn(page, "lab.tour.open(0)")
    assert {"in 1", "in 2", "out 1", "out 2"} <= set(names)


def test_the_action_of_a_step_comes_before_its_dots(page):
    page.focus("#tour-title")
    order = []
    for _ in range(3):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.textContent"))
    assert order == ["Close", "Shake", "1"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_everything_without_sideways_scrolling_and_with_contrast(scheme, page):
    """Text reaches the ratio of 4.5 to its background that WCAG asks for at level AA."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme=scheme)
    for step in (0, 3, 5):
        page.evaluate(f"lab.tour.open({step})")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    worst = page.evaluate("""() => {
      const light = colour => {
        const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map(c => c / 255)
          .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const back = element => {
        for (let e = element; e; e = e.parentElement) {
          const colour = getComputedStyle(e).backgroundColor;
          if (!/^rgba.*, 0\\)$/.test(colour)) return colour;
        }
      };
      const kinds = 'h1, h2, h3, p, label, legend, output, figcaption, summary, button:not(:disabled)';
      return [...document.querySelectorAll(kinds)].filter(each => each.offsetParent).map(each => {
        const pair = [light(getComputedStyle(each).color), light(back(each))];
        return [(Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05), each.className + each.textContent];
      }).sort((a, b) => a[0] - b[0])[0];
    }""")
    assert worst[0] >= 4.5, worst


def test_without_javascript_the_story_is_told_in_six_pictures(paper_page, visit):
    page = visit(paper_page, java_script_enabled=False, width=390)
    assert page.locator(".stills svg").count() == 6
    assert page.locator(".stills li").last.is_visible()
    assert "the sign of d" in page.locator(".stills li").last.inner_text()
    assert page.locator("main").is_hidden()
    assert page.locator(".stills svg").first.bounding_box()["width"] > 250


@contextmanager
def served(folder):
    """Serve a folder on this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/index.html"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_files_work_one_by_one_as_well(tmp_path, visit):
    for each in resources.files("phasegrad.laboratory").joinpath("web").iterdir():
        shutil.copy(str(each), tmp_path / each.name)
    (tmp_path / "scene.json").write_text(json.dumps(page_data(None)), encoding="utf-8")
    with served(tmp_path) as address:
        page = visit(address)
        assert text(page, "#tour-title") == "Oscillators settle"
        assert page.complaints == []
        page.close()


def test_a_file_that_is_there_is_replaced_only_on_request(tmp_path):
    place = tmp_path / "lab.html"
    place.write_text("mine")
    with pytest.raises(FileExistsError, match=r"lab\.html is there already"):
        pg.lab(out=place, open=False)
    assert place.read_text() == "mine"
    pg.lab(out=place, open=False, replace=True)
    assert place.read_text(encoding="utf-8").startswith("<!doctype html>")
