"""Finished runs survive, and runs with other settings are not mixed in."""

from __future__ import annotations

import pytest

from opgrow.bench.store import Store


def test_a_run_comes_back_as_it_was(tmp_path):
    store = Store(tmp_path / "runs")
    settings, result = {"seed": 3, "widths": (4, 5)}, {"accuracy": 0.5, "curve": [1.0, None], "text": "é"}
    assert store.load("pima/0/HeMLGOP", settings) is None
    store.save("pima/0/HeMLGOP", settings, result)
    again = Store(tmp_path / "runs")
    assert again.load("pima/0/HeMLGOP", settings) == result
    assert list(again.results()) == [("pima/0/HeMLGOP", result)]


def test_names_that_read_the_same_have_files_of_their_own(tmp_path):
    store = Store(tmp_path)
    names = ["a/b", "a-b", "a b", "a" * 300, "a" * 301, "../x", "C:\\x", "é"]
    for number, name in enumerate(names):
        store.save(name, {}, {"number": number})
    assert [store.load(name, {})["number"] for name in names] == list(range(len(names)))
    assert len(list(tmp_path.iterdir())) == len(names)  # none of them outside of the folder
    assert [name for name, _ in store.results()] == sorted(names)


def test_other_settings_are_refused_in_words(tmp_path):
    store = Store(tmp_path)
    store.save("pima/0/PLN", {"seed": 0}, {"accuracy": 0.5})
    with pytest.raises(ValueError, match="holds the run 'pima/0/PLN' with other settings"):
        store.load("pima/0/PLN", {"seed": 1})


@pytest.mark.parametrize("content", ["", "{", "[]", '{"name": "x"}', "\x00\xff"])
def test_a_file_that_is_no_record_is_named(tmp_path, content):
    store = Store(tmp_path)
    store.save("run", {}, {"accuracy": 0.5})
    [path] = tmp_path.iterdir()
    path.write_text(content, encoding="latin-1")
    with pytest.raises(ValueError, match="is not the record of a run"):
        store.load("run", {})
    with pytest.raises(ValueError, match="is not the record of a run"):
        list(store.results())


def test_a_folder_that_is_not_there_has_no_runs(tmp_path):
    store = Store(tmp_path / "nothing")
    assert list(store.results()) == []
    assert not (tmp_path / "nothing").exists()
