"""`make audit` says what it found, and that it found nothing where there was nobody to ask."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "audit.py"


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    if not SCRIPT.exists():
        pytest.skip("the script is no part of a source distribution")
    spec = importlib.util.spec_from_file_location("audit", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed(*dependencies: dict[str, object]) -> str:
    return json.dumps({"dependencies": list(dependencies), "fixes": []})


FINE = {"name": "numpy", "version": "2.4.0", "vulns": []}
BAD = {"name": "old", "version": "1.0", "vulns": [{"id": "CVE-1", "fix_versions": ["1.1"]}]}
UNKNOWN = {"name": "torch", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("output", "errors", "said", "code"),
    [
        (printed(FINE), "", "1 versions were audited: 0 vulnerabilities.", 0),
        (printed(FINE, BAD), "", "old 1.0: CVE-1, mended in 1.1\n2 versions were audited: 1 vulnerab", 1),
        (printed(FINE, UNKNOWN), "", "1 versions were audited, 1 are not known there", 0),
        (printed(UNKNOWN), "", "could not be reached: nothing was audited (1 versions are not", 0),
        ("", "ERROR\nConnectionError: no route", "nothing was audited (ConnectionError: no route).", 0),
        ("", "", "nothing was audited (it gave no answer).", 0),
    ],
)
def test_the_verdict(audit: ModuleType, output: str, errors: str, said: str, code: int) -> None:
    found, exit_code = audit.verdict(output, errors)
    assert said in found
    assert exit_code == code
