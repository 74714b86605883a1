"""Measured figures on pages come from results/: what `make figures` would write is what is there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from figures import all_figures  # noqa: E402 - docs/ is no package
from figures.large_problems import large_problems, large_values  # noqa: E402
from figures.marks import PAGES, Figures, combined, filled, unmarked_tables  # noqa: E402

from opgrow.bench.replication.paper_tables import rows_of  # noqa: E402

#: Pages on which every table is measured, or says where else it is from.
GPU_RUNS = """\
commit,machine,dataset,split,model,status,accuracy,parameters,seconds,flops
0a1b,H200,scene15_gist512,0,HeMLGOP.paper,done,0.70,10000,30,20000
0a1b,H200,scene15_gist512,1,HeMLGOP.paper,done,0.68,20000,40,40000
0a1b,H200,scene15_gist512,0,PMLP.paper,done,0.69,40000,5,80000
0a1b,H200,scene15_gist512,1,PMLP.paper,done,0.65,80000,5,90000
0a1b,H200,scene15_gist512,0,POP.paper,over budget,,,,
"0a1b",H200,scene15_gist512,0,"POP.paper epochs=[5,5,5,5,5]",done,0.6,105815,60,300000
"""
RESULTS = sorted((ROOT / "docs" / "results").rglob("*.md"))
SOME = Figures({"rows": "| a | b |\n|---|---|\n| c | 12 |\n"}, {"mean": "-0.31 ± 0.2", "count": "7"})
MARKED = """\
<!-- table: rows -->
| a | b |
|---|---|
| c | 12 |
<!-- end -->

Of 7<!-- =count --> tables, a mean of (−0.31 ± 0.2<!-- =mean --> points).
"""


@pytest.fixture(scope="module")
def figures():
    return all_figures()


def name_of(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_shows_what_its_sources_say(page, figures):
    """`make figures` brings it up to date."""
    text = page.read_text(encoding="utf-8")
    assert filled(text, figures) == text


def test_pictures_and_pages_that_are_written_as_a_whole_are_up_to_date(figures):
    different = [n for n, text in figures.files.items() if (ROOT / n).read_text(encoding="utf-8") != text]
    assert different == []


def test_every_table_of_results_has_a_source_or_says_why_not(figures):
    pages = [page for page in RESULTS if name_of(page) not in figures.files]
    without = {name_of(page) for page in pages if list(unmarked_tables(page.read_text(encoding="utf-8")))}
    assert without == set()


def test_any_number_that_was_edited_by_hand_is_noticed(figures):
    """Every digit of every figure in the README, one after the other."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    places = list(_digits_of_figures(text))
    assert len(places) > 300
    for place in places:
        edited = f"{text[:place]}{(int(text[place]) + 1) % 10}{text[place + 1 :]}"
        assert filled(edited, figures) == text


def _digits_of_figures(text):
    """Places of the digits that marks enclose or follow."""
    blocks = re.finditer(r"<!-- table: \S+ -->\n(.*?)<!-- end -->", text, re.DOTALL)
    values = re.finditer(r"(\S+)<!-- =\S+ -->", text)
    for match in (*blocks, *values):
        yield from (match.start(1) + digit.start() for digit in re.finditer(r"\d", match[1]))


def test_marks_are_filled_and_nothing_else_is_touched():
    old = MARKED.replace("12", "old\n\nlines").replace("7", "?").replace("−0.31 ± 0.2", "0")
    assert filled(old, SOME) == MARKED
    assert filled(MARKED, SOME) == MARKED


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("<!-- table: nosuch -->\n<!-- end -->", "a table 'nosuch'; there are: rows"),
        ("1<!-- =nosuch -->", "a number 'nosuch'; there are: count, mean"),
        ("<!-- table: rows -->\n| a |\n", "line 1: .* has no '<!-- end -->'"),
        ("a\n\n| 12<!-- = count --> |", "line 3: .* is no mark"),
    ],
)
def test_a_mark_without_a_figure_is_an_error(page, complaint):
    with pytest.raises(ValueError, match=complaint):
        filled(page, SOME)


def test_two_figures_of_one_name_are_an_error():
    with pytest.raises(ValueError, match="'count'"):
        combined([SOME, Figures(values={"count": "8"})])


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        ("| a | b |\n|---|---|\n| c | 12 |\n", [1]),
        ("text\n\n| a | b |\n|---|---|\n| c | words |\n", []),
        ("<!-- no source: as published -->\n| a | b |\n|---|---|\n| c | 12 |\n", []),
        (MARKED, []),
        (MARKED + "\n| a | b |\n|---|---|\n| c | 12 |\n", [9]),
        ("| a | b |\n|---|---|\n| c | 12<!-- =count --> |\n", []),
    ],
)
def test_tables_without_a_source_are_found(page, lines):
    assert list(unmarked_tables(page)) == lines


def test_the_gallery_shows_the_pictures_that_its_code_saves():
    page = ROOT / "docs" / "gallery" / "shown.md"
    text = page.read_text(encoding="utf-8")
    saved = re.findall(r'savefig\("(\w+)\.svg"\)', text)
    stored = [path.stem.removeprefix("shown-") for path in (ROOT / "docs" / "images").glob("shown-*.svg")]
    assert len(saved) == 6
    assert re.findall(r"images/shown-(\w+)\.svg", text) == saved
    assert sorted(stored) == sorted(saved)


def test_large_problems_have_their_tables():
    text = large_problems(rows_of(GPU_RUNS))
    assert "5 of 6 runs ended. Commit 0a1b, on H200." in text
    assert "| scene15_gist512, published, other inputs | 92.01 |" in text
    assert (
        "| scene15_gist512, run as printed | 68.00 |  |  |  | 1 of 1 not finished | 65.00 |  |  |\n"
        "| scene15_gist512, run as printed, but `epochs=[5,5,5,5,5]` |  |  |  |  | 60.00 |  |  |  |"
    ) in text
    assert "| PMLP | scene15_gist512 | 2 | +2.0 ± 1.0 | 4 times as many |" in text


def test_numbers_of_large_problems_compare_runs_of_one_split():
    assert large_values(rows_of(GPU_RUNS)) == {
        "large-scene15-pmlp-points": "+2.0 ± 1.0",
        "large-scene15-pmlp-size": "4",
        "large-scene15-pop5-seconds": "60",
        "large-scene15-pop5-times": "2",
        "large-scene15-pop5-gain": "-10.0",
    }
