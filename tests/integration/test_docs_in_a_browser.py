"""The documentation site: built without warnings, complete, and drawn by a real browser without a network."""

from __future__ import annotations

import functools
import html
import http.server
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import opgrow
from opgrow import operators
from opgrow.estimators import listeners as callbacks
from opgrow.estimators.listeners import progress
from opgrow.growth import events
from opgrow.rows import datasets
from opgrow.rows import tables as data

ROOT = Path(__file__).parents[2]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NEEDED = ("sphinx", "furo", "myst_parser", "numpydoc")
pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason='needs the packages that build the site (pip install "opgrow[docs]")',
)
in_a_browser = pytest.mark.skipif(BROWSER is None, reason="needs Chromium (Debian: apt-get install chromium)")

#: What is looked at, in a wide window and on a phone.
PAGES = ("index", "growth", "parameters", "api/estimators/hemlgop")
WIDTHS = (1280, 400)
#: Names in ``__all__`` of a module that other modules need and users do not.
INTERNAL = {"__version__", "broadcast", "check_callbacks", "of_member", "Event"}

PROBE = """<!doctype html><title>probe</title><link rel="icon" href="_static/logo.svg">
<style>body {{ margin: 0; white-space: nowrap }} iframe {{ border: 0; height: 1400px }}</style>
{frames}<pre id="seen"></pre>
<script>
onload = () => {{
  const seen = [...document.querySelectorAll("iframe")].map(frame => {{
    const page = frame.contentDocument;
    const sizes = [...page.querySelectorAll("math")].map(math => math.getBoundingClientRect());
    const style = frame.contentWindow.getComputedStyle(page.body);
    return {{
      page: frame.title, width: frame.clientWidth, content: page.documentElement.scrollWidth,
      equations: sizes.length, drawn: sizes.filter(size => size.width > 3 && size.height > 3).length,
      links: [...page.querySelectorAll(".sidebar-tree a")].map(link => link.textContent.trim()),
      ink: style.color, paper: style.backgroundColor,
    }};
  }});
  document.getElementById("seen").textContent = JSON.stringify(seen);
}};
</script>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going"]
    made = subprocess.run([*command, str(ROOT / "docs"), str(folder)], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture
def served(site):
    """The site on this machine: its address, and the requests that were made, with their answers."""
    requests: list[tuple[str, int]] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            requests.append((self.path, int(code)))

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(site))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", requests
    server.shutdown()
    server.server_close()


def browse(address: str, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    command += ["--hide-scrollbars", "--window-size=1700,5700", f"--user-data-dir={profile}"]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", *options, address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def write_probe(site: Path) -> None:
    frames = "".join(
        f'<iframe title="{page}" src="{page}.html" style="width: {width}px"></iframe>'
        + ("<br>" if width == WIDTHS[-1] else "")
        for page in PAGES
        for width in WIDTHS
    )
    (site / "probe.html").write_text(PROBE.format(frames=frames))


def seen_by(dom: str) -> list[dict]:
    return json.loads(html.unescape(re.search(r'<pre id="seen">(.*?)</pre>', dom, re.DOTALL).group(1)))


def brightness(colour: str) -> int:
    """Of the "rgb(...)" that a browser reports."""
    return sum(int(part) for part in re.findall(r"\d+", colour)[:3])


def test_every_public_name_is_in_the_reference(site):
    anchors = re.compile(r'id="(opgrow\.[\w.]+)"')
    described = {name for page in site.glob("api/**/*.html") for name in anchors.findall(page.read_text())}
    known = {name.rpartition(".")[2] for name in described}
    for module in (opgrow, callbacks, data, datasets, events, operators, progress):
        missing = [name for name in module.__all__ if name not in known and name not in INTERNAL]
        assert not missing, f"{module.__name__}: {missing} are not in docs/api"


def test_nothing_is_loaded_from_elsewhere(site):
    """Links to other sites are for people to follow; scripts, styles, fonts and images are all here."""
    loads = re.compile(
        r"<(?:script|img|iframe|source|link)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//", re.IGNORECASE
    )
    for page in site.rglob("*.html"):
        assert not loads.search(page.read_text()), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text()), sheet


@in_a_browser
def test_pages_are_drawn(site, served, tmp_path):
    """A picture of all views stays in the folder that OPGROW_SCREENSHOTS names, if it does."""
    address, requests = served
    write_probe(site)
    picture = Path(os.environ.get("OPGROW_SCREENSHOTS") or tmp_path) / "docs.png"
    result = browse(f"{address}/probe.html", tmp_path / "profile", "--dump-dom", f"--screenshot={picture}")
    assert "CONSOLE" not in result.stderr, result.stderr
    assert [request for request in requests if request[1] >= 400] == []
    views = seen_by(result.stdout)
    assert len(views) == len(PAGES) * len(WIDTHS)
    for view in views:
        assert view["drawn"] == view["equations"], view
        assert view["content"] <= view["width"], f"{view['page']} is wider than its window"
        assert {"Getting started", "How growth works", "API reference"} <= set(view["links"])
        assert brightness(view["paper"]) > 700 > brightness(view["ink"])
    assert {view["equations"] > 40 for view in views if view["page"] == "growth"} == {True}


@in_a_browser
def test_pages_are_dark_where_the_reader_wants_it(site, served, tmp_path):
    write_probe(site)
    picture = Path(os.environ.get("OPGROW_SCREENSHOTS") or tmp_path) / "docs-dark.png"
    dark = "--blink-settings=preferredColorScheme=0"
    result = browse(
        f"{served[0]}/probe.html", tmp_path / "profile", dark, "--dump-dom", f"--screenshot={picture}"
    )
    for view in seen_by(result.stdout):
        assert brightness(view["paper"]) < 150 < brightness(view["ink"])


@in_a_browser
def test_search_works_from_a_disk(site, tmp_path):
    address = (site / "search.html").as_uri() + "?q=leverage"
    result = browse(address, tmp_path / "profile", "--virtual-time-budget=10000", "--dump-dom")
    assert 'href="growth.html' in result.stdout.partition('id="search-results"')[2]
    assert "CONSOLE" not in result.stderr, result.stderr
