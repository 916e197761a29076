"""Settings shared by all tests: marks by folder, the same examples on every run, one browser per process.

Commands run in the process of the tests, which need not start first, unless a test is about the process itself.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import warnings

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("repeatable")

# A shell's background jobs ignore Ctrl-C, and so would every command that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

HAS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """Skip a test whose fixtures ask for PyTorch where it is not installed."""
    return (yield from _skipping_without_torch())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip a test that asks for PyTorch where it is not installed, as on Pythons without a build of it."""
    return (yield from _skipping_without_torch())


def _skipping_without_torch():
    try:
        return (yield)
    except ImportError as error:
        if not HAS_TORCH and ("needs PyTorch" in str(error) or error.name == "torch"):
            pytest.skip(str(error))
        raise


ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


#: Folders whose tests have a mark; tests that open a page get theirs from the fixture they ask for.
_FOLDERS = {"docs": "docs", "paper": "paper", "process": "process"}


def pytest_collection_modifyitems(items):
    """Mark tests by their folder, and those that need a browser."""
    for item in items:
        mark = _FOLDERS.get(item.path.parent.name)
        if mark is not None:
            item.add_marker(mark)
        if "browser" in item.fixturenames:
            item.add_marker("browser")


@pytest.fixture
def here(monkeypatch, capsys):
    """The command line in this process: its exit status and what it prints."""
    from phasegrad.cli import main

    for name, value in (("COLUMNS", "100"), ("NO_COLOR", "1"), ("TERM", "dumb")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # the command has a way of its own

    def run_here(*words: str) -> subprocess.CompletedProcess:
        monkeypatch.setattr(sys, "argv", ["phasegrad", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return subprocess.CompletedProcess(words, ended.value.code or 0, *capsys.readouterr())

    return run_here


@pytest.fixture
def one_thread():
    """PyTorch on one thread: on small tensors more only wait for each other, and for those of other tests."""
    pytest.importorskip("torch")
    from phasegrad._process import one_torch_thread

    with one_torch_thread():
        yield


@pytest.fixture(scope="session")
def spice():
    """Skip, in words, where ngspice is missing; fail where it is demanded."""
    if shutil.which("ngspice") is None:
        words = "Circuits are not simulated: install ngspice (Debian: apt-get install ngspice)."
        if os.environ.get("PHASEGRAD_REQUIRE_NGSPICE") == "1":
            pytest.fail(words)
        pytest.skip(words)


@pytest.fixture(scope="session")
def browser():
    program = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sync_playwright = None
    if program is None or sync_playwright is None:
        words = (
            "The page is not tested in a browser: install Chromium (Debian: apt-get install chromium) and playwright "
            "(pip install playwright)."
        )
        if os.environ.get("PHASEGRAD_REQUIRE_BROWSER") == "1":
            pytest.fail(words)
        pytest.skip(words)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def window(browser):
    """Open a page in a window of its own and return it, with what it asked for and complained about."""
    contexts = []

    def open_page(path, *, width=1280, height=900, scheme="light", fragment="", scripts=True):
        size = {"width": width, "height": height}
        context = browser.new_context(viewport=size, color_scheme=scheme, java_script_enabled=scripts)
        contexts.append(context)
        page = context.new_page()
        page.requests, page.complaints = [], []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(path.as_uri() + fragment)
        return page

    yield open_page
    for context in contexts:
        context.close()
