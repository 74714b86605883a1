"""What tests do with a report that is open in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from browser import Browser

from opgrow.report.live.data import as_json

__all__ = ["frame_of", "opened", "said", "set_input", "settled"]


def opened(browser: Browser, folder: Path, name: str, **window: Any) -> None:
    """Open a page of the folder, which has no complaints."""
    browser.complaints.clear()
    browser.open(folder / f"{name}.html", **window)
    browser.look("opgrow.ready")
    settled(browser)
    assert browser.complaints == []


def settled(browser: Browser) -> None:
    """After two frames everything that was asked for is drawn."""
    browser.look("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")


def set_input(browser: Browser, place: int, value: Any, event: str = "input") -> None:
    """Move an input, as somebody would."""
    element = f"document.getElementById('input-{place}')"
    browser.look(f"({element}.value = {as_json(value)}, {element}.dispatchEvent(new Event('{event}')))")
    settled(browser)


def said(browser: Browser) -> str:
    """The prediction, in words."""
    return str(browser.look("document.querySelector('.panel .said').textContent"))


def frame_of(X: Any, values: list[Any]) -> Any:
    """One row of a table, or of an array, with other values."""
    if not hasattr(X, "iloc"):
        return np.array([values], float)
    row = {
        name: np.nan if v is None and X[name].dtype.kind == "f" else v
        for name, v in zip(X.columns, values, strict=True)
    }
    return X.iloc[:1].assign(**row).astype(X.dtypes)
