"""The places of a page that its scripts fill, with the words around them."""

from __future__ import annotations

from typing import Any

from ...growth.model import GrownModel
from ...network import Network
from ...network.drawing.svg import shades
from ..html import document, escape, paragraph, section
from .data import as_json
from .scripts import EVALUATOR, scripts_for

__all__ = [
    "block_parts",
    "computed_parts",
    "moving_sections",
    "navigation",
    "page_script",
    "replay_parts",
    "watching_page",
]

_VIEWS = ("curves", "inputs", "prediction", "contributions", "why", "neurons", "portraits", "blocks")
_MOVING = ("dom", "tips", "replay", *EVALUATOR, *_VIEWS, "main")
_STILL = ("dom", "tips", "replay", "portraits", "main")
_WATCHING = ("dom", "tips", "replay", "watch")
_WITHOUT = "<noscript><p>This part needs JavaScript, which is part of this file.</p></noscript>"
_LINKS = (
    ("try-it", "Try it"),
    ("one-row", "Why it says so"),
    ("what-it-computes", "What it computes"),
    ("what-was-grown", "What was grown"),
    ("how-it-grew", "How it grew"),
    ("how-it-went-on", "How it went on"),
    ("how-good", "How good it is"),
    ("what-it-costs", "What it costs"),
)


def page_script(network: Network, *, moves: bool) -> str:
    """The script of a page; a network that does not compute in it needs no evaluator."""
    return scripts_for(network, _MOVING) if moves else scripts_for(Network(1, 1), _STILL)


def navigation(*, moves: bool, streams: bool) -> str:
    """Links to the sections."""
    there = {"one-row": moves, "how-it-went-on": streams}
    links = (f'<a href="#{name}">{words}</a>' for name, words in _LINKS if there.get(name, True))
    return f'<nav aria-label="Sections">{" ".join(links)}</nav>'


def moving_sections(reason: str | None) -> list[str]:
    """What can be tried, and how a row goes through the network; or why that is not here."""
    if reason is not None:
        return [section("try-it", "Try it", [paragraph(reason, "note")])]
    about = paragraph(
        "The network itself computes in this page: move an input, and the prediction follows. Each blue "
        "curve shows what would be predicted if that input alone had another value; the dot is where it is. "
        "Grey bars show how often values occur in the data. A dashed line is the average curve of many rows."
    )
    return [
        section("try-it", "Try it", [about, f'<div id="live">{_WITHOUT}</div>']),
        section("one-row", "Why it says so", [f'<div id="neurons" class="pair">{_WITHOUT}</div>']),
    ]


def computed_parts(data: dict[str, Any] | None) -> list[str]:
    """What the network computes, as far as that is explained."""
    if data is not None:
        return [f'<div id="portraits">{_WITHOUT}</div>']
    return [
        paragraph(
            "Explaining this network would take longer than a report should, or there are no rows to explain "
            "it by. In Python, explain(X) of the estimator does it.",
            "note",
        )
    ]


def block_parts(reason: str | None) -> list[str]:
    """Blocks that can be taken out."""
    return [] if reason is not None else [f'<div id="blocks">{_WITHOUT}</div>']


def replay_parts(estimator: GrownModel) -> list[str]:
    """The replay of growth."""
    return [f'<div id="replay">{_WITHOUT}</div>'] if estimator.history_ else []


def watching_page(heading: str, about: str) -> str:
    """The page of a growth that is under way; it asks the server that it comes from for news."""
    buttons = " ".join(
        f'<button type="button" data-do="{name}" hidden>{words}</button>'
        for name, words in (("stop", "Stop"), ("go", "Go on"), ("finish", "Finish"), ("save", "Save"))
    )
    parts = [
        f"<h1>{escape(heading)}</h1>",
        paragraph(about),
        f'<div class="watched"><p class="said" role="status" id="status">Starting.</p>'
        f'<div class="row">{buttons}</div><p class="note" id="doing"></p></div>',
        f'<details id="growth" open><summary>Growth</summary><div id="replay">{_WITHOUT}</div></details>',
        '<div id="report"></div>',
    ]
    data = {"palette": shades(24), "criterion": "score"}
    script = scripts_for(Network(1, 1), _WATCHING)
    return document(heading, parts, script=script, data=as_json(data), talks=True)
