"""The paper's tables: printed figures, its procedure, and our defaults, in rows of their own."""

from __future__ import annotations

from opgrow.bench.published import METHODS
from opgrow.bench.replication.paper_tables import operator_counts, paper_tables, rows_of
from opgrow.bench.runs import DONE, OVER_BUDGET

HEAD = "dataset,split,model,status,accuracy,parameters,seconds,flops,operators"


def rows(*lines):
    return rows_of("\n".join([HEAD, *lines]))


def tables(*lines):
    return {table.name: table for table in paper_tables(rows(*lines))}


LINES = (
    f"pima,0,HeMLGOP.paper,{DONE},0.75,522,1.5,1282,dog/sum/elu:40",
    f"pima,1,HeMLGOP.paper,{DONE},0.80,9000,2.5,20000,dog/sum/elu:40 gaussian/sum/relu:20",
    f"pima,2,HeMLGOP.paper,{DONE},0.76,782,2.0,1922,",
    f"pima,0,HeMLGOP,{DONE},0.70,300,1.0,600,",
    f"pima,0,POP.paper,{OVER_BUDGET},,,,,",
)


def test_there_are_six_tables_in_the_papers_order():
    actual = paper_tables(rows(*LINES))
    numbers = [table.title.split(":")[0] for table in actual]
    assert numbers == [f"Table {number}" for number in ("I", "II", "III", "IV", "V", "VI")]
    assert all(len(row) == len(t.head) for t in actual for row in t.rows)


def test_figures_are_those_of_the_median_run_below_the_printed_ones():
    actual = tables(*LINES)
    place = 1 + METHODS.index("HeMLGOP")
    shown = {name: [(row[0], row[place]) for row in actual[name].rows] for name in actual}
    kinds = ("pima, published", "pima, run as printed", "pima, our defaults")
    assert shown["accuracy"] == list(zip(kinds, ("81.81", "76.00", "70.00"), strict=True))
    assert shown["parameters"] == list(zip(kinds, ("0.8k", "0.8k", "0.3k"), strict=True))
    assert shown["seconds"] == list(zip(kinds, ("217", "2", "1"), strict=True))
    assert shown["flops"] == list(zip(kinds, ("2.2k", "1.9k", "0.6k"), strict=True))


def test_what_did_not_finish_and_what_did_not_run_are_told_apart():
    [_, printed, ours] = tables(*LINES)["accuracy"].rows
    place = 1 + METHODS.index("POP")
    assert (printed[place], ours[place]) == ("1 of 1 not finished", "")


def test_stand_ins_say_that_their_inputs_are_others():
    [published, _] = tables(f"scene15_gist512,0,PMLP.paper,{DONE},0.7,1000,1.0,2000,")["accuracy"].rows
    assert published[0] == "scene15_gist512, published, other inputs"
    assert published[1 + METHODS.index("PMLP")] == "91.68"


def test_changes_of_the_papers_settings_have_rows_of_their_own():
    changed = "pima,0,{}.paper epochs=20,done,{},1000,1.0,2000,"
    lines = changed.format("POP", 0.7), changed.format("PMLP", 0.6), "pima,0,PMLP epochs=20,done,0.5,9,1,9,"
    [*_, ours, last] = tables(*LINES, *lines)["accuracy"].rows
    assert ours[0] == "pima, our defaults"
    assert last == ("pima, run as printed, but `epochs=20`", *[""] * 4, "70.00", "60.00", "", "")


def test_operators_are_counted_by_neurons_for_the_papers_settings():
    assert list(operator_counts(rows(*LINES))) == [
        ("HeMLGOP", "dog/sum/elu", 40),
        ("HeMLGOP", "dog/sum/elu", 40),
        ("HeMLGOP", "gaussian/sum/relu", 20),
    ]
