"""The README and the guide: code runs, commands and links exist, and nothing is left out without a reason."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import opgrow
from opgrow import operators

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "results" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def _blocks_module() -> ModuleType:
    """docs/blocks.py, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("docs_blocks", ROOT / "docs" / "blocks.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


blocks = _blocks_module()
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


@pytest.fixture
def clean_registry():
    before = {kind: operators.registered(kind) for kind in ("nodal", "pool", "activation")}
    yield
    for kind, names in before.items():
        for name in operators.registered(kind):
            if name not in names:
                operators.unregister(kind, name)


def write_page(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text)
    return path


@each_page
def test_code_blocks_run(page, tmp_path, monkeypatch, clean_registry):
    """All blocks of a page in order, in one namespace and one folder."""
    monkeypatch.chdir(tmp_path)
    opened = blocks.Page(page)
    if opened.needs_data() and not os.environ.get("OPGROW_DATA"):
        pytest.skip(
            f"{page.name} needs a folder with data sets: name it in the environment variable OPGROW_DATA"
        )
    for block in opened.blocks():
        if block.not_run is None:
            try:
                opened.run(block)
            except blocks.MissingTool as missing:
                pytest.skip(f"{page.name}, line {block.line}: {missing}")


@each_page
def test_every_block_has_a_language(page):
    for block in blocks.Page(page).blocks():
        assert block.language in blocks.LANGUAGES, f"{page.name}, line {block.line}: {block.language!r}"


@each_page
def test_commands_and_their_options_exist(page):
    """Also of blocks that are not run, and of sentences."""
    opened = blocks.Page(page)
    for block in opened.blocks():
        if block.language == "console" and block.not_run is not None:
            lines = blocks.commands(block)
            assert lines, f"{page.name}, line {block.line}: no line begins with '$ '"
            for line in lines:
                blocks.check_command(line)
        elif block.language == "python":
            compile(block.code, page.name, "exec")
    for words in opened.inline_commands():
        blocks.check_options(words[1:])


@each_page
def test_modules_files_and_what_is_in_them_exist(page):
    assert list(blocks.Page(page).missing_names()) == []


def test_a_name_that_does_not_exist_is_noticed(tmp_path):
    right = (
        "`load` and `read` in `estimators/files/__init__.py`, `docs/blocks.py`, `opgrow.data.read_table`, "
    )
    wrong = "`load` and `nosuch` in `estimators/files/__init__.py`, `docs/nosuch.py`, `opgrow.data.nosuch`"
    assert list(blocks.Page(write_page(tmp_path, right)).missing_names()) == []
    missing = ["opgrow.data.nosuch", "docs/nosuch.py", "nosuch"]
    assert list(blocks.Page(write_page(tmp_path, wrong)).missing_names()) == missing


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("opgrow fit data.csv --no-such-option 1", "--no-such-option"),
        ("opgrow fit data.csv --method nosuch", "nosuch"),
        ("opgrow nosuch", "no command 'nosuch'"),
        ("opgrow bench nosuch", "no command 'nosuch' in bench"),
        ('pip install "opgrow[tables,nosuch]"', "no extra 'nosuch'"),
        ("rm -r folder", "expected opgrow, pip or make"),
    ],
)
def test_what_does_not_exist_is_noticed(command, complaint):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of the command line's own kinds, too
        blocks.check_command(command)
    assert complaint in str(caught.value)


def test_failures_and_wrong_options_in_sentences_are_noticed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = blocks.Page(
        write_page(tmp_path, "By `opgrow fit --colour x`:\n\n```console\n$ opgrow fit no.csv\n```\n")
    )
    with pytest.raises(ValueError, match="--colour"):
        blocks.check_options(page.inline_commands()[0][1:])
    with pytest.raises(RuntimeError, match=r"no\.csv"):
        page.run(next(page.blocks()))


def test_output_is_written_into_a_page(tmp_path):
    text = "```python\nprint(6 * 7)\n```\n\n```text\n41\n```\n\n```console\n$ opgrow --version\nold\n```\n"
    path = write_page(tmp_path, text)
    blocks.refresh(path)
    version = f"opgrow {opgrow.__version__}"
    assert path.read_text() == text.replace("41", "42").replace("old", version)


@each_page
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
