"""The page about the served model: what it takes, and how to call it. It loads nothing from elsewhere."""

from __future__ import annotations

import json
from html import escape

from opgrow.cli.common import label_text
from opgrow.cli.serving.limits import Limits
from opgrow.cli.serving.model import Column, ServedModel
from opgrow.cli.serving.openapi import example_row
from opgrow.common.texts import printable
from opgrow.common.version import __version__

__all__ = ["page"]

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem;"
    "color:#1a1a1a;background:#fff}"
    "code,pre{font:14px/1.5 ui-monospace,monospace;background:#f2f2f2;border-radius:4px}"
    "code{padding:.1em .3em}pre{padding:1rem;overflow-x:auto}pre code{padding:0}"
    "table{border-collapse:collapse}th,td{text-align:left;padding:.3rem 1rem .3rem 0;vertical-align:top;"
    "border-bottom:1px solid #ddd}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#1b1b1b}code,pre{background:#2b2b2b}"
    "th,td{border-color:#444}}"
)
#: Columns and categories that the page shows at most; openapi.json has all columns.
_MAX_COLUMNS, _MAX_CATEGORIES = 200, 12


def page(model: ServedModel, limits: Limits, address: str) -> str:
    """The page as HTML; ``address`` is where the server is, as the reader has called it."""
    target = model.target or "the target"
    kind = "classes" if model.classes is not None else "numbers"
    body = json.dumps({"rows": [example_row(model)]}, ensure_ascii=False)
    quoted = body.replace("'", "'\\''")
    line = " \\\n     "
    call = line.join((f"curl {address}/predict", "-H 'Content-Type: application/json'", f"-d '{quoted}'"))
    csv = ("-H 'Content-Type: text/csv' -H 'Accept: text/csv'", "--data-binary @rows.csv")
    file = line.join((f"curl {address}/predict", *csv))
    python = (
        "import json\nfrom urllib.request import Request, urlopen\n\n"
        f"body = {{'rows': [{_text(repr(example_row(model)))}]}}\n"
        f"request = Request('{address}/predict', json.dumps(body).encode(),\n"
        "                  {'Content-Type': 'application/json'})\n"
        "print(json.load(urlopen(request))['predictions'])"
    )
    parts = [
        f"<h1>{_html(target[:1].upper() + target[1:])}</h1>",
        f"<p>This server predicts {_html(target)} ({kind}) for the rows of a table, by the "
        f"{type(model.estimator).__name__} in <code>{_html(model.name)}</code>.</p>",
        _classes(model),
        f"<h2>Columns</h2>{_table(model.columns)}",
        "<h2>Calls</h2><p>One row as JSON:</p>" + _code(call),
        "<p>Instead of <code>rows</code>, the object may have <code>columns</code> "
        '(<code>{"columns": {"name": [value, ...]}}</code>) or <code>matrix</code> '
        '(<code>{"matrix": [[value, ...]]}</code>, with the columns in the order of the table above). '
        "<code>null</code> is a missing value.</p>",
        "<p>A CSV file with a header:</p>" + _code(file),
        "<p>From Python:</p>" + _code(python),
        _more(model, limits),
        f"<p>opgrow {__version__}</p>",
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_html(target)}</title><style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>"
    )


def _classes(model: ServedModel) -> str:
    if model.classes is None:
        return ""
    labels = [label_text(label) for label in model.classes]
    return f"<p>The classes are {_listed(labels)}. Answers have the probability of each.</p>"


def _more(model: ServedModel, limits: Limits) -> str:
    interval = (
        ""
        if model.classes is not None
        else "<li><code>/predict?interval=0.9</code> adds bounds between which 90 % of the true numbers "
        "should lie.</li>"
    )
    return (
        "<h2>More</h2><ul>"
        "<li><code>Accept: text/csv</code> asks for CSV, and <code>application/json</code> (the default) for "
        f"JSON.</li>{interval}"
        f"<li>A request may have {limits.max_body:,} bytes and {limits.max_rows:,} rows. A server that is "
        "busy answers 503; ask again after <code>Retry-After</code> seconds.</li>"
        '<li><a href="/openapi.json">openapi.json</a> describes all of this for programs, and '
        '<a href="/health">health</a> says whether the server is well.</li></ul>'
    )


def _table(columns: tuple[Column, ...]) -> str:
    rows = "".join(
        f"<tr><td><code>{_html(column.name)}</code></td><td>{_kind(column)}</td>"
        f"<td><code>{_html(json.dumps(column.example, ensure_ascii=False))}</code></td></tr>"
        for column in columns[:_MAX_COLUMNS]
    )
    more = len(columns) - _MAX_COLUMNS
    rest = f"<p>And {more:,} more: openapi.json lists all.</p>" if more > 0 else ""
    return f"<table><tr><th>Column</th><th>Values</th><th>Example</th></tr>{rows}</table>{rest}"


def _kind(column: Column) -> str:
    gaps = "may be missing" if column.gaps else "never missing"
    if column.kind == "number":
        return f"number, {gaps}" + ("; text counts as missing" if column.also_text else "")
    if not column.used:
        return "not used"
    if column.kind == "any":
        return "number or text"
    if column.kind in ("date", "time", "duration"):
        return f"{column.kind}, {gaps}; other text counts as missing"
    return f"text, {gaps}" + (f": {_listed(list(column.categories))}" if column.categories else "")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_CATEGORIES:,} more" if len(names) > _MAX_CATEGORIES else ""
    return ", ".join(f"<code>{_html(name)}</code>" for name in names[:_MAX_CATEGORIES]) + more


def _code(text: str) -> str:
    return f"<pre><code>{_html(text)}</code></pre>"


def _text(words: str) -> str:
    return words if len(words) < 2000 else "{...}"


def _html(words: str) -> str:
    return escape(printable(words))
