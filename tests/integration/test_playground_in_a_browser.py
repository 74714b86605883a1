"""The playground in a real browser: a growth is watched, stopped, finished, saved, and opened as a file."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import urllib.request

import pytest
from browser import NEEDED, PROGRAM, Browser

from opgrow import HeMLGOPClassifier, load
from opgrow.cli.playing.server import PlaygroundServer
from opgrow.cli.playing.session import Session, Table
from tests.report.live.tables import sales
from tests.report.test_page import small


def until(browser, expression):
    """Wait in the page, which hears of the growth every 300 ms."""
    look = f"const look = () => ({expression}) ? done(1) : setTimeout(look, 20)"
    browser.look(f"new Promise(done => {{ {look}; look(); }})")


@pytest.fixture
def playground(tmp_path):
    """A growth that takes minutes unless it is stopped, of a table with hostile names."""
    X, y = sales()
    model = small(
        HeMLGOPClassifier, epochs=(400,), max_neurons=300, block_threshold=-1.0, layer_threshold=-1.0
    )
    table = Table("<img src=x onerror=alert(3)>", (X[:200], y[:200]), (X[200:], y[200:]))
    session = Session(model, table, tmp_path / "model.safetensors")
    with PlaygroundServer(session, "Playground: <script>alert(4)</script>", "about") as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        session.end()
        server.shutdown()


@pytest.mark.skipif(PROGRAM is None, reason=NEEDED)
def test_a_growth_is_watched_stopped_gone_on_with_saved_and_reloaded(playground, tmp_path):
    session = playground.session
    session.tell("stop")
    session.start()
    status, shown = (
        "document.body.dataset.status",
        "[...document.querySelectorAll('button[data-do]:not([hidden])')]",
    )
    click = "document.querySelector('[data-do={}]').click()"
    with Browser(tmp_path) as browser:
        browser.open(playground.address, width=1200)
        until(browser, f"{status} === 'stopped'")
        assert browser.look(f"{shown}.map(b => b.textContent)") == ["Go on", "Finish", "Save"]
        assert browser.look("document.querySelectorAll('.chip').length") == 0
        browser.look(click.format("go"))
        until(browser, "document.querySelectorAll('.chip').length > 1")
        browser.look(click.format("stop"))
        until(browser, f"{status} === 'stopped'")
        steps = session.state()["steps"]
        until(browser, f"opgrow.steps.length >= {len(steps)}")
        assert browser.look("document.getElementById('step-words').textContent").startswith("Step ")
        browser.keep("playground-growing.png")
        browser.look(click.format("save"))
        until(browser, "document.querySelector('#report iframe')")
        until(browser, "document.getElementById('status').textContent.startsWith('Saved as')")
        inner = "document.querySelector('#report iframe').contentWindow"
        until(browser, f"{inner}.opgrow && {inner}.opgrow.model")
        model = load(tmp_path / "model.safetensors")
        values = browser.look(f"{inner}.opgrow.data.rows.values")
        X, _ = sales()
        predicted = "opgrow.data.rows.values.map(v => opgrow.model.predict(v).label)"
        labels = browser.look(f"(opgrow => {predicted})({inner}.opgrow)")
        assert len(values) == 40
        assert (model.classes_[labels] == model.predict(X[200:])).all()
        browser.keep("playground-finished.png")
        browser.open(playground.address)
        until(browser, "document.querySelector('#report iframe')")
        assert browser.complaints == []
        assert all(address.startswith((playground.address, "about:")) for address in browser.fetched)
        browser.open(tmp_path / "model.html")
        until(browser, "globalThis.opgrow && opgrow.model")
        assert browser.look(predicted) == labels
        assert (tmp_path / "model.html").read_text() == session.page
        assert browser.look("document.images.length") == 0
        assert browser.complaints == []


def test_the_command_plays_until_it_is_interrupted(tmp_path):
    X, y = sales()
    X.assign(target=y).to_csv(tmp_path / "sales.csv", index=False)
    command = [sys.executable, "-m", "opgrow", "playground", "sales.csv", "--no-open", "-p", "n_min=3"]
    command += ["-p", "preset=None", "-p", "max_layers=1", "-o", "out.safetensors"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        line = process.stdout.readline()
        assert line.startswith("Playground of sales.csv on http://127.0.0.1:"), process.stderr.read()
        address = line.split(" on ")[1].split(" ")[0]
        with urllib.request.urlopen(f"{address}state") as answer:
            assert json.loads(answer.read())["status"] in ("growing", "finished")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert not (tmp_path / "out.safetensors").exists()
