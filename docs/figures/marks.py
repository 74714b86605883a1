"""Marks on pages: which figures belong where, and how they get there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["PAGES", "RESULTS", "ROOT", "Figures", "combined", "filled", "markdown_table", "unmarked_tables"]

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
#: The pages that may have marks.
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))

_BLOCK = re.compile(
    r"(?P<start>^<!-- table: (?P<name>[\w-]+) -->\n).*?(?P<end>^<!-- end -->$)", re.DOTALL | re.MULTILINE
)
_VALUE = re.compile(r"[^\s(\[|*`]+(?: ± [^\s(\[|*`<]+)?(?P<mark><!-- =(?P<name>[\w-]+) -->)")
#: What was meant as a mark: a table, its end, or a number.
_MARK = re.compile(r"<!-- *(?:table\b|end\b|=).*?-->")
_REASON = re.compile(r"^<!-- no source: .+? -->$")
_RULE = re.compile(r"^\s*\|(?:\s*:?-+:?\s*\|)+\s*$")


@dataclass(frozen=True)
class Figures:
    """What sources have to show.

    Attributes
    ----------
    tables : Markdown of whole lines, by name
    values : words for the middle of a sentence, by name
    files : texts of whole files, by their path from the root of the repository
    """

    tables: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def combined(parts: Iterable[Figures]) -> Figures:
    """The figures of several sources; no name may occur twice."""
    whole: dict[str, dict[str, str]] = {"tables": {}, "values": {}, "files": {}}
    for part in parts:
        for kind, known in whole.items():
            new = getattr(part, kind)
            if twice := known.keys() & new.keys():
                raise ValueError(f"two sources have {kind} of the name {min(twice)!r}")
            known.update(new)
    return Figures(**whole)


def filled(page: str, figures: Figures) -> str:
    """The text of a page with the figures that its marks ask for."""
    _check(page)

    def block(match: re.Match[str]) -> str:
        return f"{match['start']}{_known(figures.tables, match['name'], 'table').strip()}\n{match['end']}"

    def value(match: re.Match[str]) -> str:
        words = _known(figures.values, match["name"], "number")
        return f"{re.sub(r'^-(?=[0-9])', '−', words)}{match['mark']}"  # in sentences, a minus is no hyphen

    return _VALUE.sub(value, _BLOCK.sub(block, page))


def _check(page: str) -> None:
    """Complain about a mark that nothing would be done about."""
    rest = _VALUE.sub("", _BLOCK.sub(lambda match: "\n" * match[0].count("\n"), page))
    for match in _MARK.finditer(rest):
        where = f"line {rest.count(chr(10), 0, match.start()) + 1}: {match[0]!r}"
        why = (
            "has no '<!-- end -->' in a line of its own" if "table" in match[0] else "is no mark of a figure"
        )
        raise ValueError(f"{where} {why}")


def _known(known: Mapping[str, str], name: str, kind: str) -> str:
    if name not in known:
        raise ValueError(f"no source has a {kind} {name!r}; there are: {', '.join(sorted(known)) or 'none'}")
    return known[name]


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def unmarked_tables(page: str) -> Iterator[int]:
    """Lines, from 1, at which a table begins that has digits, no source, and no reason for it."""
    lines = _BLOCK.sub(lambda match: "\n" * match[0].count("\n"), page).splitlines()
    for number, line in enumerate(lines):
        if not _RULE.match(line):
            continue
        before = next((text for text in reversed(lines[: number - 1]) if text.strip()), "")
        rows = [row for row in _following(lines[number + 1 :]) if not _VALUE.search(row)]
        cells = [cell for row in rows for cell in row.split("|")[2:]]
        if any(re.search(r"\d", cell) for cell in cells) and not _REASON.match(before.strip()):
            yield number


def _following(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if not line.strip().startswith("|"):
            return
        yield line
