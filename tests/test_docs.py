"""Every Python block of the README and the guide runs, in order, in one namespace a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opgrow import operators

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


@pytest.fixture
def clean_registry():
    before = {kind: operators.registered(kind) for kind in ("nodal", "pool", "activation")}
    yield
    for kind, names in before.items():
        for name in operators.registered(kind):
            if name not in names:
                operators.unregister(kind, name)


@pytest.mark.parametrize("page", [p for p in PAGES if BLOCK.search(p.read_text())], ids=lambda p: p.name)
def test_code_blocks_run(page, tmp_path, monkeypatch, clean_registry):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for number, code in enumerate(BLOCK.findall(page.read_text()), 1):
        exec(compile(code, f"{page.name}, block {number}", "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
