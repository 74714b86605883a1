"""Exported C as a folder that a tool takes as it is: Arduino, PlatformIO, Zephyr, CMake or MicroPython.

Each has the source and its header where the tool looks for them, the files that describe them to the tool,
and a program that prints what the network says of a few stored rows beside what the estimator says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..common.version import __version__
from . import c_text as text

__all__ = ["PACKAGES", "Contents", "package_files"]


@dataclass(frozen=True)
class Contents:
    """What a package is made of.

    Attributes
    ----------
    name : prefix of the functions
    source, header : the C files
    number : type of inputs and outputs, "float" or "int32_t"
    output_bits : fractional bits of outputs; 0 for floats
    about : a line about the network
    rows : a few rows (n, n_inputs), as the functions take them
    expected : what the estimator says of them: (n,) indices of classes, or (n, n_outputs) values
    """

    name: str
    source: str
    header: str
    number: str
    output_bits: int
    about: str
    rows: np.ndarray
    expected: np.ndarray

    @property
    def classifies(self) -> bool:
        return self.expected.ndim == 1

    def files(self, folder: str) -> dict[str, str]:
        """The two C files in a folder."""
        return {f"{folder}{self.name}.c": self.source, f"{folder}{self.name}.h": self.header}


def package_files(package: str, contents: Contents) -> dict[str, str]:
    """Paths inside the folder of a package, and their texts."""
    return PACKAGES[package](contents)


def _tables(contents: Contents, in_flash: str = "") -> str:
    """The rows and what is expected of them."""
    n, n_inputs = contents.rows.shape
    rows = contents.rows.astype(np.float32) if contents.number == "float" else contents.rows
    n_outputs = 1 if contents.classifies else contents.expected.shape[1]
    kind = "int" if contents.classifies else "float"
    expected = contents.expected.reshape(n, n_outputs)
    values: np.ndarray = expected if contents.classifies else expected.astype(np.float32)
    return (
        text.array(f"{contents.number} rows[{n} * {n_inputs}]{in_flash}", rows)
        + "\n/* What the estimator says of them in Python. */\n"
        + text.array(f"{kind} expected[{n} * {n_outputs}]", values)
    )


def _body(contents: Contents, show_number: Callable[[str], str], show_text: Callable[[str], str]) -> str:
    """Statements that print the predictions of row i, which is in x, by the given ways of printing."""
    name, upper = contents.name, contents.name.upper()
    lines = [show_text("row "), show_number("i")]
    if contents.classifies:
        lines += [show_text(": class "), show_number(f"{name}_predict(x)"), show_text(", in Python ")]
        lines += [show_number("expected[i]"), show_text("\\n")]
        return "".join(f"        {line}\n" for line in lines)
    scale = f" / {float(2**contents.output_bits):.1f}f" if contents.output_bits else ""
    scale = f" * {float(2.0**-contents.output_bits)!r}f" if contents.output_bits < 0 else scale
    n = contents.expected.shape[1]
    lines.insert(0, f"{name}_scores(x, out);")
    lines.append(show_text(" (thousandths): "))
    lines.append(f"for (int j = 0; j < {n}; j++) {{")
    lines.append("    " + show_number(f"(long)(1000.0f * ((float)out[j]{scale}))"))
    lines.append("    " + show_text(", in Python "))
    lines.append("    " + show_number(f"(long)(1000.0f * expected[i * {n} + j])"))
    lines += ["    " + show_text("\\n"), "}"]
    return f"        {contents.number} out[{upper}_N_OUTPUTS];\n" + "".join(
        f"        {line}\n" for line in lines
    )


def _sketch(contents: Contents) -> str:
    """A sketch, as Arduino and PlatformIO have them."""
    n, n_inputs = contents.rows.shape
    body = _body(
        contents,
        lambda value: f"Serial.print({value});",
        lambda words: "Serial.println();" if words == "\\n" else f"Serial.print({text.string(words)});",
    )
    return (
        f"// Predicts {n} stored rows and prints the results at 9600 baud.\n\n"
        f"#include <{contents.name}.h>\n\n{_tables(contents, ' PROGMEM')}\n"
        f"void setup()\n{{\n    Serial.begin(9600);\n    for (int i = 0; i < {n}; i++) {{\n"
        f"        {contents.number} x[{n_inputs}];\n"
        f"        memcpy_P(x, rows + i * {n_inputs}, sizeof x);\n{body}    }}\n}}\n\nvoid loop()\n{{\n}}\n"
    )


def _program(contents: Contents, printer: str, include: str) -> str:
    """A C program that prints by a function such as printf."""
    n, n_inputs = contents.rows.shape
    body = _body(
        contents,
        lambda value: f'{printer}("%ld", (long)({value}));',
        lambda words: f'{printer}("{words}");',
    )
    return (
        f"/* Predicts {n} stored rows and prints the results. */\n#include {include}\n\n"
        f'#include "{contents.name}.h"\n\n{_tables(contents)}\n'
        f"int main(void)\n{{\n    for (int i = 0; i < {n}; i++) {{\n"
        f"        const {contents.number} *x = rows + i * {n_inputs};\n{body}    }}\n    return 0;\n}}\n"
    )


def _arduino(contents: Contents) -> dict[str, str]:
    name = contents.name
    properties = (
        f"name={name}\nversion={_version()}\nauthor=opgrow\nmaintainer=opgrow\nsentence={contents.about}\n"
        "paragraph=A network of Generalized Operational Perceptrons as plain C, without dependencies.\n"
        f"category=Data Processing\nurl=\narchitectures=*\nincludes={name}.h\n"
    )
    return {
        **contents.files("src/"),
        "library.properties": properties,
        "keywords.txt": "".join(f"{name}_{function}\tKEYWORD2\n" for function in ("predict", "scores")),
        f"examples/{name}_rows/{name}_rows.ino": _sketch(contents),
    }


def _platformio(contents: Contents) -> dict[str, str]:
    return {
        **contents.files(f"lib/{contents.name}/"),
        "platformio.ini": "[env:uno]\nplatform = atmelavr\nboard = uno\nframework = arduino\n",
        "src/main.cpp": f"#include <Arduino.h>\n\n{_sketch(contents)}",
    }


def _zephyr(contents: Contents) -> dict[str, str]:
    name = contents.name
    return {
        **contents.files("src/"),
        "CMakeLists.txt": (
            "cmake_minimum_required(VERSION 3.20.0)\nfind_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})\n"
            f"project({name})\ntarget_sources(app PRIVATE src/main.c src/{name}.c)\n"
        ),
        "prj.conf": "CONFIG_PRINTK=y\n",
        "src/main.c": _program(contents, "printk", "<zephyr/sys/printk.h>"),
    }


def _cmake(contents: Contents) -> dict[str, str]:
    name = contents.name
    return {
        f"src/{name}.c": contents.source,
        f"include/{name}.h": contents.header,
        "example/main.c": _program(contents, "printf", "<stdio.h>"),
        "CMakeLists.txt": (
            f"cmake_minimum_required(VERSION 3.13)\nproject({name} VERSION {_version()} LANGUAGES C)\n\n"
            f"add_library({name} STATIC src/{name}.c)\ntarget_include_directories({name} PUBLIC include)\n"
            f"set_target_properties({name} PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)\n\n"
            f"# The example, unless this folder is a part of another project.\n"
            "if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)\n"
            f"  add_executable({name}_rows example/main.c)\n"
            f"  target_link_libraries({name}_rows {name})\nendif()\n"
        ),
    }


_MODULE = """\
/* A network as a module of MicroPython: {name}.predict(row) and {name}.scores(row). */
#include "py/obj.h"
#include "py/runtime.h"

#include "{name}.h"
{floats}
static void {name}_row(mp_obj_t sequence, {number} *x)
{{
    size_t length;
    mp_obj_t *items;
    mp_obj_get_array(sequence, &length, &items);
    if (length != {upper}_N_INPUTS) {{
        mp_raise_ValueError(MP_ERROR_TEXT("{name} takes {n_inputs} numbers"));
    }}
    for (size_t i = 0; i < length; i++) {{
        x[i] = ({number}){get}(items[i]);
    }}
}}
{predict}
static mp_obj_t {name}_scores_of(mp_obj_t sequence)
{{
    {number} x[{upper}_N_INPUTS], out[{upper}_N_OUTPUTS];
    mp_obj_t items[{upper}_N_OUTPUTS];
    {name}_row(sequence, x);
    {name}_scores(x, out);
    for (int j = 0; j < {upper}_N_OUTPUTS; j++) {{
        items[j] = {make}(({made})out[j]);
    }}
    return mp_obj_new_tuple({upper}_N_OUTPUTS, items);
}}
static MP_DEFINE_CONST_FUN_OBJ_1({name}_scores_object, {name}_scores_of);

static const mp_rom_map_elem_t {name}_table[] = {{
    {{MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR_{name})}},
{entry}    {{MP_ROM_QSTR(MP_QSTR_scores), MP_ROM_PTR(&{name}_scores_object)}},
}};
static MP_DEFINE_CONST_DICT({name}_globals, {name}_table);

const mp_obj_module_t {name}_module = {{
    .base = {{&mp_type_module}},
    .globals = (mp_obj_dict_t *)&{name}_globals,
}};
MP_REGISTER_MODULE(MP_QSTR_{name}, {name}_module);
"""
_NEEDS_FLOATS = """
#if !MICROPY_PY_BUILTINS_FLOAT
#error "This MicroPython has no floats: export with arithmetic=\"integer\"."
#endif
"""
_MODULE_PREDICT = """
static mp_obj_t {name}_class_of(mp_obj_t sequence)
{{
    {number} x[{upper}_N_INPUTS];
    {name}_row(sequence, x);
    return MP_OBJ_NEW_SMALL_INT({name}_predict(x));
}}
static MP_DEFINE_CONST_FUN_OBJ_1({name}_predict_object, {name}_class_of);
"""


def _micropython(contents: Contents) -> dict[str, str]:
    name, floats, variable = contents.name, contents.number == "float", f"{contents.name.upper()}_DIR"
    names = {
        "name": name,
        "upper": name.upper(),
        "number": contents.number,
        "n_inputs": contents.rows.shape[1],
    }
    entry = f"    {{MP_ROM_QSTR(MP_QSTR_predict), MP_ROM_PTR(&{name}_predict_object)}},\n"
    module = _MODULE.format(
        **names,
        get="mp_obj_get_float" if floats else "mp_obj_get_int",
        make="mp_obj_new_float" if floats else "mp_obj_new_int",
        made="mp_float_t" if floats else "mp_int_t",
        predict=_MODULE_PREDICT.format(**names) if contents.classifies else "",
        entry=entry if contents.classifies else "",
        floats=_NEEDS_FLOATS if floats else "",
    )
    what = "predict" if contents.classifies else "scores"
    rows = contents.rows.astype(np.float32) if floats else contents.rows
    return {
        **contents.files(f"{name}/"),
        f"{name}/{name}_module.c": module,
        f"{name}/micropython.mk": (
            f"{variable} := $(USERMOD_DIR)\nSRC_USERMOD_C += $({variable})/{name}.c\n"
            f"SRC_USERMOD_C += $({variable})/{name}_module.c\nCFLAGS_USERMOD += -I$({variable})\n"
        ),
        f"{name}/micropython.cmake": (
            f"add_library(usermod_{name} INTERFACE)\ntarget_sources(usermod_{name} INTERFACE\n"
            f"    ${{CMAKE_CURRENT_LIST_DIR}}/{name}.c ${{CMAKE_CURRENT_LIST_DIR}}/{name}_module.c)\n"
            f"target_include_directories(usermod_{name} INTERFACE ${{CMAKE_CURRENT_LIST_DIR}})\n"
            f"target_link_libraries(usermod INTERFACE usermod_{name})\n"
        ),
        "micropython.cmake": f"include(${{CMAKE_CURRENT_LIST_DIR}}/{name}/micropython.cmake)\n",
        f"{name}_rows.py": (
            f"# Predicts {len(rows)} stored rows and prints the results.\nimport {name}\n\n"
            f"rows = {rows.tolist()!r}\nexpected = {contents.expected.tolist()!r}\n\n"
            f'for row, wanted in zip(rows, expected):\n    print({name}.{what}(row), "in Python", wanted)\n'
        ),
    }


def _version() -> str:
    """The version as three numbers."""
    return ".".join((*__version__.split("+")[0].split(".")[:3],))


#: The files of each package.
PACKAGES: dict[str, Callable[[Contents], dict[str, str]]] = {
    "arduino": _arduino,
    "platformio": _platformio,
    "zephyr": _zephyr,
    "cmake": _cmake,
    "micropython": _micropython,
}
