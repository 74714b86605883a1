"""The house: which package may import which, and how long functions may be.

The order of the packages is `ORDER` in docs/import_graph.py, which also draws it. All imports count, those
inside functions and those for type checkers as well. What does not keep a rule yet is listed at the top; an
entry that is no longer needed fails, so that the lists can only become shorter.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest
from sklearn.datasets import load_iris

from opgrow import HeMLGOPClassifier
from opgrow.cli import app

ROOT = Path(__file__).parents[1]

#: Imports of a package that stands above: (importer, imported).
UPWARD = {
    # This script also runs in earlier commits, whose modules have other names: it needs the public ones.
    ("opgrow.bench.worker", "opgrow"),
}
#: Functions with more than 7 parameters.
MANY_PARAMETERS = {
    # A public function and the method that calls it, whose keywords are all that users can ask of a C file.
    ("opgrow.export.c", "export_c"),
    ("opgrow.estimators.publishing", "PublishingEstimator.export_c"),
}

#: Tests in the folder of a package that are of several of its modules, or of its C sources.
CROSSING = {
    "cli/test_cli.py",
    "distributed/test_clusters.py",
    "engine/test_fuzz.py",
    "engine/test_operators_in_c.py",
    "estimators/files/test_model_files.py",
    "estimators/test_estimators.py",
    "growth/checkpoints/test_device_checkpoints.py",
    "growth/methods/test_closed_form_on_a_device.py",
    "operators/test_operator_facts.py",
    "operators/test_operators.py",
    "training/test_gradients.py",
}

MAX_PARAMETERS = 7
MAX_LINES = 60
MAX_PACKAGES = 14
MAX_FRAMES = 10


def _graph() -> ModuleType:
    """docs/import_graph.py, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("import_graph", ROOT / "docs" / "import_graph.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


graph = _graph()


@cache
def imports() -> list[Any]:
    """All imports of the library: read when a test asks, because every worker collects this file."""
    return list(graph.all_imports())


# --- packages ---


def test_the_root_has_few_packages_and_all_of_them_are_in_the_order():
    names = {path.name for path in graph.SOURCES.iterdir() if path.name != "__pycache__"}
    packages = names - {"__init__.py", "__main__.py", "py.typed"}
    assert packages == set(graph.ORDER)
    assert len(packages) <= MAX_PACKAGES


def test_packages_import_only_those_below():
    upward = {
        (one.importer, one.imported)
        for one in imports()
        if graph.level_of(one.imported) > graph.level_of(one.importer)
    }
    assert upward == UPWARD


def test_tests_are_where_their_modules_are():
    """Folders of other names hold other kinds of tests: of whole flows, of faults and of random input."""
    tests = [
        path.relative_to(ROOT / "tests")
        for package in graph.ORDER
        for path in (ROOT / "tests" / package).rglob("test_*.py")
    ]
    modules = {path.relative_to(graph.SOURCES) for path in graph.SOURCES.rglob("*.py")}
    modules |= {
        path.parent.with_suffix(".py") for path in modules if path.name == "__init__.py" and path.parent.name
    }
    without = {
        path.as_posix() for path in tests if path.with_name(path.name.removeprefix("test_")) not in modules
    }
    assert without == CROSSING


def test_no_modules_import_each_other():
    assert set(cycles({(one.importer, one.imported) for one in imports()})) == set()


def cycles(pairs: set[tuple[str, str]]) -> Iterator[frozenset[str]]:
    """Groups of two or more modules that can all be reached from each other."""
    following: dict[str, set[str]] = {}
    for importer, imported in pairs:
        following.setdefault(importer, set()).add(imported)
        following.setdefault(imported, set())
    reached = {module: _reached(module, following) for module in following}
    groups = {
        frozenset(other for other in reached[module] if module in reached[other]) | {module}
        for module in following
    }
    return (group for group in groups if len(group) > 1)


def _reached(start: str, following: dict[str, set[str]]) -> set[str]:
    result, waiting = set(), [start]
    while waiting:
        for module in following[waiting.pop()] - result:
            result.add(module)
            waiting.append(module)
    return result


def test_a_cycle_is_noticed():
    chain = {("a", "b"), ("b", "c"), ("c", "d")}
    assert set(cycles(chain)) == set()
    assert set(cycles(chain | {("c", "a")})) == {frozenset("abc")}


@pytest.mark.parametrize(
    "line",
    [
        "from ..b import thing",
        "from opgrow.b import thing",
        "import opgrow.b",
        "from .. import b",
        "def f():\n    from ..b import thing",
        "if TYPE_CHECKING:\n    from opgrow import b",
    ],
)
def test_an_import_is_found_wherever_and_however_it_is_written(line, tmp_path):
    for name, content in (("__init__", ""), ("a/__init__", ""), ("a/inner", line), ("b", "thing = 1")):
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    result = {(one.importer, one.imported) for one in graph.all_imports(tmp_path)}
    assert result == {("opgrow.a.inner", "opgrow.b")}


# --- functions ---


@dataclass(frozen=True)
class Function:
    """A function: where it is, its parameters but self and cls, and its lines."""

    module: str
    name: str
    n_parameters: int
    n_lines: int
    raises_not_implemented: bool

    @property
    def key(self) -> tuple[str, str]:
        return self.module, self.name


@cache
def functions() -> list[Function]:
    """All functions of the library but kernels, which are written for a compiler."""
    paths = {m: path for m, path in graph.module_paths().items() if not path.name.startswith("triton_")}
    trees = {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in paths.items()}
    return [function for module, tree in trees.items() for function in _functions(module, tree, ())]


def _functions(module: str, node: ast.AST, outer: tuple[str, ...]) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            a = child.args
            names = [one.arg for one in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if one]
            yield Function(
                module,
                ".".join([*outer, child.name]),
                len([name for name in names if name not in ("self", "cls")]),
                _n_lines(child),
                any(_raises_not_implemented(one) for one in ast.walk(child)),
            )
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        yield from _functions(module, child, (*outer, child.name) if named else outer)


def _n_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body, from the first statement after the docstring to the last, blank ones included."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def _raises_not_implemented(node: ast.AST) -> bool:
    if not isinstance(node, ast.Raise) or node.exc is None:
        return False
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def _commands() -> set[tuple[str, str]]:
    """The functions that are commands: their parameters are options for users."""
    apps = [app, *(group.typer_instance for group in app.registered_groups)]
    callbacks = [one.callback for each in apps if each for one in each.registered_commands]
    return {(one.__module__, one.__qualname__.replace(".<locals>", "")) for one in callbacks if one}


COMMANDS = _commands()


def test_functions_have_few_parameters():
    many = {
        f.key
        for f in functions()
        if f.n_parameters > MAX_PARAMETERS and f.key not in COMMANDS and not f.name.endswith("__init__")
    }
    assert many == MANY_PARAMETERS


def test_commands_are_found():
    assert {("opgrow.cli.fit", "fit"), ("opgrow.cli.studies", "_study_command.command")} <= COMMANDS


def test_functions_are_short():
    assert {f.key for f in functions() if f.n_lines > MAX_LINES} == set()


def test_nothing_is_left_to_be_implemented():
    assert {f.key for f in functions() if f.raises_not_implemented} == set()


# --- a fit ---


def _frames_of_a_fit(*names: str) -> dict[str, list[str]]:
    """The functions between ``fit`` and functions of the engine, where these are called deepest."""
    stacks: dict[str, list[str]] = {name: [] for name in names}

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or frame.f_code.co_name not in stacks:
            return
        above, stack = frame.f_back, []
        while above is not None and above.f_code.co_name != "fit":
            stack.append(above.f_code.co_qualname)
            above = above.f_back
        if above is not None and len(stack) > len(stacks[frame.f_code.co_name]):
            stacks[frame.f_code.co_name] = stack

    x, y = load_iris(return_X_y=True)
    brief = {"n_min": 4, "max_neurons": 4, "max_layers": 1, "epochs": (2, 2), "fine_tune_epochs": 2}
    model = HeMLGOPClassifier(preset=None, n_jobs=1, random_state=0, **brief)
    before = sys.getprofile()
    sys.setprofile(look)
    try:
        model.fit(x, y)
    finally:
        sys.setprofile(before)
    return stacks


def test_ten_functions_at_most_lie_between_fit_and_the_engine():
    stacks = _frames_of_a_fit("search_features", "search_sums", "train_epoch")
    assert all(stacks.values())
    assert max(map(len, stacks.values())) <= MAX_FRAMES, stacks
