"""Packages of exported C: what is in them, and that their programs, built by tools, say what Python says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_diabetes, load_iris
from typer.testing import CliRunner

from opgrow.cli import app
from opgrow.export.c_packages import PACKAGES
from tests.export.compiled import FLAGS, needs_compiler

ARDUINO = Path("/usr/share/arduino/hardware/arduino/avr")
MICROPYTHON = os.environ.get("OPGROW_MICROPYTHON")
CLASSES, NUMBERS = load_iris(return_X_y=True)[0], load_diabetes(return_X_y=True)[0][:150]


def run(*command: Any, **options: Any) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)


def check_classes(printed: str) -> None:
    """Five rows whose classes are those of Python, and not all the same."""
    rows = re.findall(r"row (\d): class (\d), in Python (\d)", printed)
    assert [row for row, _, _ in rows] == ["0", "1", "2", "3", "4"]
    assert all(actual == expected for _, actual, expected in rows)
    assert len({actual for _, actual, _ in rows}) > 1


def check_numbers(printed: str) -> None:
    rows = re.findall(r"row \d \(thousandths\): (-?\d+), in Python (-?\d+)", printed)
    assert len(rows) == 5
    for actual, expected in rows:
        assert int(actual) == pytest.approx(int(expected), rel=0.01)


def said_by_a_sketch(program: Path) -> str:
    """What a sketch prints up to its last row; it never ends by itself."""
    command = ["timeout", "60", "simavr", "-m", "atmega328p", "-f", "16000000", str(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as simulated:
        assert simulated.stdout is not None
        printed = ""
        for line in simulated.stdout:
            printed += line
            if "row 4" in line:
                break
        simulated.terminate()
    return re.sub(r"\x1b\[[0-9;]*m", "", printed)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_files_are_where_the_tool_looks_for_them(
    package: str, fitted: dict[str, Any], tmp_path: Path
) -> None:
    model = fitted["HeMLGOPClassifier"]
    check = model.export_c(tmp_path / "flower", package=package, calibration=CLASSES)
    model.export_c(tmp_path / "flower.c", calibration=CLASSES)
    assert check.rows == 150
    folder, sketch = tmp_path / "flower", "examples/flower_rows/flower_rows.ino"
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    module = {
        "flower/micropython.mk",
        "flower/micropython.cmake",
        "flower/flower_module.c",
        "flower/flower.c",
    }
    wanted = {
        "arduino": {"library.properties", "src/flower.c", "src/flower.h", sketch},
        "platformio": {"platformio.ini", "lib/flower/flower.c", "lib/flower/flower.h", "src/main.cpp"},
        "zephyr": {"CMakeLists.txt", "prj.conf", "src/main.c", "src/flower.c", "src/flower.h"},
        "cmake": {"CMakeLists.txt", "include/flower.h", "src/flower.c", "example/main.c"},
        "micropython": {"micropython.cmake", "flower_rows.py", "flower/flower.h", *module},
    }
    assert wanted[package] <= files
    source = next(path for path in (tmp_path / "flower").rglob("flower.c"))
    assert source.read_text() == (tmp_path / "flower.c").read_text()


@needs_compiler
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_cmake_builds_a_library_and_its_example(fitted: dict[str, Any], tmp_path: Path) -> None:
    fitted["HeMLGOPClassifier"].export_c(tmp_path / "flower", package="cmake", calibration=CLASSES)
    fitted["PLNRegressor"].export_c(
        tmp_path / "sugar", package="cmake", arithmetic="integer", calibration=NUMBERS, min_agreement=0.9
    )
    for name, check in (("flower", check_classes), ("sugar", check_numbers)):
        flags = f"-DCMAKE_C_FLAGS={' '.join(FLAGS[1:])}"
        run("cmake", "-S", tmp_path / name, "-B", tmp_path / f"{name}_build", flags)
        run("cmake", "--build", tmp_path / f"{name}_build")
        check(run(tmp_path / f"{name}_build" / f"{name}_rows"))


@needs_compiler
def test_the_program_for_zephyr_prints_what_python_says(fitted: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "flower"
    fitted["HeMLGOPClassifier"].export_c(folder, package="zephyr", calibration=CLASSES)
    (tmp_path / "zephyr" / "sys").mkdir(parents=True)
    (tmp_path / "zephyr" / "sys" / "printk.h").write_text("#include <stdio.h>\n#define printk printf\n")
    sources = [folder / "src" / "main.c", folder / "src" / "flower.c"]
    run("cc", *FLAGS, f"-I{tmp_path}", *sources, "-o", tmp_path / "program")
    check_classes(run(tmp_path / "program"))


@pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in ("arduino-builder", "avr-g++", "simavr"))
    or not ARDUINO.is_dir(),
    reason="needs arduino-builder, arduino-core-avr, gcc-avr, avr-libc and simavr, packages of Debian",
)
def test_the_sketch_runs_on_an_arduino(fitted: dict[str, Any], tmp_path: Path) -> None:
    libraries, build = tmp_path / "libraries", tmp_path / "build"
    libraries.mkdir()
    build.mkdir()
    fitted["HeMLGOPClassifier"].export_c(libraries / "flower", package="arduino", calibration=CLASSES)
    said = run(
        *("arduino-builder", "-compile", "-fqbn", "arduino:avr:uno", "-warnings", "all"),
        *("-hardware", "/usr/share/arduino-builder", "-hardware", ARDUINO.parents[1], "-tools", "/usr/bin"),
        *("-prefs", "compiler.cpp.extra_flags=-DDECIMAL_DIG=10"),  # which Debian's avr-libc lacks for C++
        *("-libraries", libraries, "-build-path", build),
        libraries / "flower" / "examples" / "flower_rows" / "flower_rows.ino",
    )
    assert "flower" not in said.split("Sketch uses")[0], "a warning about the library"
    check_classes(said_by_a_sketch(build / "flower_rows.ino.elf"))


@needs_compiler
@pytest.mark.skipif(
    MICROPYTHON is None, reason="needs the sources of MicroPython in the folder that OPGROW_MICROPYTHON names"
)
def test_micropython_has_the_network_as_a_module(fitted: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "flower"
    fitted["HeMLGOPClassifier"].export_c(folder, package="micropython", calibration=CLASSES)
    without = ["MICROPY_PY_FFI=0", "MICROPY_PY_SSL=0", "MICROPY_PY_BTREE=0", "MICROPY_SSL_MBEDTLS=0"]
    without += ["MICROPY_VFS_LFS1=0", "MICROPY_VFS_LFS2=0", "FROZEN_MANIFEST="]
    unix = Path(str(MICROPYTHON)) / "ports" / "unix"
    run("make", "-C", unix, "-j2", f"BUILD={tmp_path / 'build'}", f"USER_C_MODULES={folder}", *without)
    printed = run(tmp_path / "build" / "micropython", folder / "flower_rows.py")
    rows = re.findall(r"^(\d) in Python (\d)$", printed, re.MULTILINE)
    assert len(rows) == 5
    assert all(actual == expected for actual, expected in rows)
    assert len({actual for actual, _ in rows}) > 1


def test_errors_are_a_sentence(fitted: dict[str, Any], tmp_path: Path) -> None:
    model = fitted["HeMLGOPClassifier"]
    with pytest.raises(ValueError, match="package must be one of 'arduino', .* got 'mbed'"):
        model.export_c(tmp_path / "flower", package="mbed")
    with pytest.raises(ValueError, match="the folder's name 'my-flower' cannot begin"):
        model.export_c(tmp_path / "my-flower", package="cmake")
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        model.export_c(tmp_path / "nowhere" / "flower", package="cmake")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is not a folder that a package can be written to"):
        model.export_c(tmp_path / "file", package="cmake")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_packages_from_the_command_line(fitted: dict[str, Any], tmp_path: Path) -> None:
    model = tmp_path / "model.safetensors"
    fitted["HeMLGOPClassifier"].save(model)
    command = [
        "export",
        str(model),
        "--package",
        "arduino",
        "--weights",
        "int8",
        "--out",
        str(tmp_path / "flower"),
    ]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "agreement with the estimator" in done.stdout
    assert (tmp_path / "flower" / "library.properties").is_file()
    done = CliRunner().invoke(app, [*command, "--format", "onnx"])
    assert done.exit_code != 0
