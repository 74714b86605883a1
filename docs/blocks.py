"""The code blocks of the README and the guide: found, run and, as a script, followed by what they print.

    python docs/blocks.py docs/tutorial.md

runs a page in a temporary folder and writes into it what its commands print, and what its Python blocks
print where a block of text follows them directly. The tests run all pages with the same functions.

Languages are ``python``, ``console`` (lines with "$ " are commands, the others are what they printed), ``c``
(saved as main.c, for a compiler on the same page), ``text``, ``bibtex`` and ``html``. What is not run says
why in a comment in front of it, ``<!-- not run: it needs a GPU -->``; its commands and options must still
exist.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from opgrow.cli import app
from opgrow.common.atomic import write_atomically

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = ("python", "console", "c", "text", "bibtex", "html")
#: Folders of pages whose commands took minutes to hours: records of measurements, with their figures.
RECORDS = (ROOT / "docs" / "results",)

_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>.+?) -->\n+)?^ *```(?P<language>[^\n`]*)\n(?P<code>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
_INLINE = re.compile(r"`(opgrow\s[a-z][^`]*)`")
_MODULE = re.compile(r"`(opgrow(?:\.\w+)+)`")
_FILE = re.compile(r"`((?:[a-z_-]+/)+\w+\.(?:py|c|h|md))`")
_NAMES_IN_FILE = re.compile(r"((?:`[\w.]+`(?:,| and)?\s)+)in `((?:\w+/)+\w+\.(?:py|c|h))`")


class MissingTool(Exception):
    """A program that a page needs is not on this machine."""


@dataclass
class Block:
    """A fenced block: where its text is in the page, and why it is not run, if so."""

    language: str
    code: str
    line: int
    start: int
    end: int
    not_run: str | None = None


@dataclass
class Page:
    """A page and what its blocks have in common: variables and, while it runs, the working folder."""

    path: Path
    text: str = ""
    names: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.text = self.path.read_text(encoding="utf-8")

    def blocks(self) -> Iterator[Block]:
        record = any(folder in self.path.parents for folder in RECORDS)
        for found in _BLOCK.finditer(self.text):
            language, code = found["language"].strip(), found["code"]
            if language.startswith("{"):  # a directive of the site
                continue
            if not language and code.lstrip().startswith("$ "):
                language = "console"
            reason = found["reason"] or ("a record of measurements" if record else None)
            line = self.text.count("\n", 0, found.start("language")) + 1
            yield Block(language, code, line, *found.span("code"), reason)

    def inline_commands(self) -> list[list[str]]:
        """Commands within sentences."""
        return [shlex.split(text) for text in _INLINE.findall(self.text)]

    def missing_names(self) -> Iterator[str]:
        """Modules and files that sentences name and that do not exist, and names that their file lacks."""
        for name in _MODULE.findall(self.text):
            if not _exists(name):
                yield name
        for name in _FILE.findall(self.text):
            if _file(name) is None:
                yield name
        for names, file in _NAMES_IN_FILE.findall(self.text):
            path = _file(file)
            words = set() if path is None else set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
            for name in re.findall(r"`([\w.]+)`", names):
                if name.rpartition(".")[2] not in words:
                    yield name

    def needs_data(self) -> bool:
        """Whether its code reads tables from the folder in the environment variable OPGROW_DATA."""
        return any("OPGROW_DATA" in block.code for block in self.blocks() if block.language == "python")

    def run(self, block: Block) -> str:
        """Run a block in the working folder; what it printed. Commands come before their output."""
        if block.language == "python":
            return self._run_python(block)
        if block.language == "console":
            return "".join(f"$ {line}\n{_run_command(line)}" for line in commands(block))
        if block.language == "c":
            Path("main.c").write_text(block.code)
        return ""

    def _run_python(self, block: Block) -> str:
        printed = io.StringIO()
        # Empty lines in front, so that an error names the line of the page.
        code = compile("\n" * block.line + block.code, self.path.name, "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, self.names)
        return printed.getvalue()


def _exists(name: str) -> bool:
    """Whether there is a module, or something in a module, by this name."""
    try:
        pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


def _file(name: str) -> Path | None:
    """A file of the repository, or of the package."""
    return next(
        (folder / name for folder in (ROOT, ROOT / "src" / "opgrow") if (folder / name).exists()), None
    )


def commands(block: Block) -> list[str]:
    """The commands of a console block, without "$ "."""
    return [line.strip()[2:] for line in block.code.splitlines() if line.strip().startswith("$ ")]


def _run_command(line: str) -> str:
    words = shlex.split(line, comments=True)
    if words[0] == "opgrow":
        result = CliRunner().invoke(app, words[1:], env={"COLUMNS": "100"})
        if result.exit_code:
            raise RuntimeError(f"{line}: {result.output}")
        return str(result.stdout)
    if shutil.which(words[0]) is None:
        raise MissingTool(f"needs the program {words[0]}")
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def check_command(line: str) -> None:
    """Complain unless a command exists and takes what it is given: opgrow, extras of pip, targets of make."""
    words = shlex.split(line, comments=True)
    if words[0] == "torchrun" and "-m" in words:  # what it starts is ours
        words = words[words.index("-m") + 1 :]
    program, arguments = words[0], words[1:]
    if program.startswith("opgrow."):
        if importlib.util.find_spec(program) is None:
            raise ValueError(f"there is no module {program!r}")
    elif program == "opgrow":
        command, rest, parent = _command(arguments)
        command.make_context(command.name, rest, parent=parent)
    elif program == "pip":
        known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        for extra in re.findall(r"[\w-]+", "".join(re.findall(r"opgrow\[(.*?)\]", line))):
            if extra not in known:
                raise ValueError(f"pyproject.toml has no extra {extra!r}")
    elif program == "make":
        subprocess.run(["make", "--dry-run", *arguments], cwd=ROOT, check=True, capture_output=True)
    else:
        raise ValueError(f"expected opgrow, pip or make, got {program!r}")


def check_options(arguments: list[str]) -> None:
    """Complain unless a command that a sentence mentions, perhaps not in full, and its options exist."""
    command, rest, _ = _command(arguments)
    known = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    for word in rest:
        if word.startswith("-") and word not in known:
            raise ValueError(f"opgrow {command.name} has no option {word}")


def _command(arguments: list[str]) -> tuple[Any, list[str], Any]:
    """The command that words lead to, the words after its name, and the context to read them in."""
    command, parent, rest = get_command(app), None, list(arguments)
    while rest and hasattr(command, "get_command"):
        parent = type(command).context_class(command, parent=parent, info_name=command.name or "opgrow")
        found = command.get_command(parent, rest[0])
        if found is None:
            raise ValueError(f"there is no command {rest[0]!r} in {command.name or 'opgrow'}")
        command, rest = found, rest[1:]
    return command, rest, parent


def refresh(path: Path) -> None:
    """Run a page and write into it what it prints."""
    page = Page(path.resolve())
    blocks = list(page.blocks())
    changes: list[tuple[int, int, str]] = []
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for block, following in zip(blocks, [*blocks[1:], None], strict=True):
                if block.not_run is not None or block.language == "text":
                    continue
                printed = "".join(f"{line.rstrip()}\n" for line in page.run(block).splitlines())
                if block.language == "console":
                    changes.append((block.start, block.end, printed))
                elif following is not None and following.language == "text":
                    between = page.text[block.end : following.start]
                    if between.count("\n") == 3:  # the closing fence, an empty line, the opening fence
                        changes.append((following.start, following.end, printed))
        finally:
            os.chdir(here)
    text = page.text
    for start, end, printed in reversed(changes):
        text = text[:start] + printed + text[end:]
    write_atomically(path, text.encode())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        refresh(Path(name))
