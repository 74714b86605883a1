"""Every estimator as C in every variant, with AddressSanitizer and UBSan, on extreme rows: 176 programs.

    python -m tests.attack.extreme_rows [--methods BLS,POP] [--rows 2000]

The variants are those of `MODES` and a program that learns on. All of an estimator's are one binary, which
stops at any access beyond an array, overflow, undefined shift or index that is no class.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sklearn.datasets import load_diabetes, load_iris

from opgrow import estimators
from tests.export.compiled import FLAGS, MODES, compiled, name_of
from tests.export.conftest import QUICK

SANITIZERS = [
    "-fsanitize=address,undefined,float-divide-by-zero,float-cast-overflow",
    "-fno-sanitize-recover=all",
    "-g",
    "-O1",
]
LEARNS = "learns"
#: Rows that the quick networks are fitted to.
_ROWS = 150

_TOP = """\
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t random_bits(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

/* Ends of the range, any bits at all, and numbers as they are usual. */
static float float_input(void)
{
    static const float ends[] = {
        0.0f, -0.0f, 1.0f, -1.0f, FLT_MIN, -FLT_MIN, 1e-45f, FLT_EPSILON, 1e4f, -1e4f, 1e12f, -1e12f, 1e25f,
        FLT_MAX, -FLT_MAX, INFINITY, -INFINITY, NAN
    };
    const uint32_t bits = random_bits();
    float any;
    memcpy(&any, &bits, sizeof any);
    switch (random_bits() % 3) {
    case 0:
        return ends[random_bits() % (sizeof ends / sizeof *ends)];
    case 1:
        return any;
    default:
        return (float)(random_bits() % 2000) / 100.0f - 10.0f;
    }
}

static int32_t int32_t_input(void)
{
    static const int32_t ends[] = {0, 1, -1, INT32_MAX, -INT32_MAX, INT32_MIN, 65536, -65536, 1 << 30};
    if (random_bits() % 3 == 0) {
        return ends[random_bits() % (sizeof ends / sizeof *ends)];
    }
    return (int32_t)random_bits() >> random_bits() % 31;
}
"""
_EXPECT = """
static void expect_class(int index, int n)
{
    if (index < -1 || index >= n) {
        printf("%d is no class\\n", index);
        abort();
    }
}
"""
_TRY = """
#include "{name}.h"

static void try_{name}{suffix}(void)
{{
    {number} x[{upper}_N_INPUTS], out[{upper}_N_OUTPUTS];
    for (int i = 0; i < {upper}_N_INPUTS; i++) {{
        x[i] = {number}_input();
    }}
    {name}_scores{suffix}(x, out);
{predict}}}
"""
_PREDICT = "    expect_class({name}_predict{suffix}(x), {upper}_N_OUTPUTS);\n"
_TRY_LEARNING = """
#include "{name}.h"

static void try_{name}(void)
{{
    static {name}_state *state;
    float x[{upper}_N_INPUTS], out[{upper}_N_OUTPUTS];
    if (state == NULL || random_bits() % 100 == 0) {{
        free(state);
        state = malloc(sizeof *state);
        {name}_start(state);
    }}
    for (int i = 0; i < {upper}_N_INPUTS; i++) {{
        x[i] = float_input();
    }}
{learn}    {name}_scores_with(state, x, out);
{predict}}}
"""
_LEARN_CLASS = "    {name}_learn(state, x, (int)(random_bits() % ({upper}_N_OUTPUTS + 2)) - 1);\n"
_LEARN_NUMBERS = """\
    for (int j = 0; j < {upper}_N_OUTPUTS; j++) {{
        out[j] = float_input();
    }}
    {name}_learn(state, x, out);
"""
_PREDICT_WITH = "    expect_class({name}_predict_with(state, x), {upper}_N_OUTPUTS);\n"
_MAIN = """
int main(int argc, char **argv)
{{
    const int n = argc > 1 ? atoi(argv[1]) : 1;
    for (int i = 0; i < n; i++) {{
{calls}    }}
    return 0;
}}
"""


def fitted(names: list[str]) -> Iterator[tuple[Any, Any]]:
    """Quick networks of estimators, and the same with the sums that programs which learn on start from."""
    for name in names:
        cls = getattr(estimators, name)
        quick = {key: value for key, value in QUICK.items() if key in cls._get_param_names()}
        x, y = (load_iris if name.endswith("Classifier") else load_diabetes)(return_X_y=True)
        x, y = x[:_ROWS], y[:_ROWS]
        yield cls(**quick).fit(x, y), cls(**quick).partial_fit(x, y)


def reports(model: Any, learning: Any, folder: Path, rows: int) -> tuple[int, str]:
    """How many programs of an estimator were built and run together, and what the sanitizers said."""
    classifies = hasattr(model, "classes_")
    names, parts = [], [_TOP, _EXPECT if classifies else ""]
    for mode in MODES:
        name = name_of(mode)
        model.export_c(folder / f"{name}.c", min_agreement=0, **mode)
        faces = [("int32_t", ""), ("float", "_float")] if "arithmetic" in mode else [("float", "")]
        for number, suffix in faces:
            given = {"name": name, "upper": name.upper(), "number": number, "suffix": suffix}
            predict = _PREDICT.format(**given) if classifies else ""
            parts.append(_TRY.format(**given, predict=predict))
            names.append(name + suffix)
    learning.export_c(folder / f"{LEARNS}.c", learn=True, min_agreement=0)
    given = {"name": LEARNS, "upper": LEARNS.upper()}
    learn, predict = (_LEARN_CLASS, _PREDICT_WITH) if classifies else (_LEARN_NUMBERS, "")
    parts.append(_TRY_LEARNING.format(**given, learn=learn.format(**given), predict=predict.format(**given)))
    calls = "".join(f"        try_{name}();\n" for name in [*names, LEARNS])
    main = folder / "extreme_rows.c"
    main.write_text("".join(parts) + _MAIN.format(calls=calls))
    files = [folder / f"{name}.c" for name in [*map(name_of, MODES), LEARNS]]
    faces_of_floats = [f"-D{name_of(mode).upper()}_FLOAT" for mode in MODES if "arithmetic" in mode]
    made = folder / "extreme_rows"
    compiled(*SANITIZERS, *faces_of_floats, main, *files, "-o", made, flags=FLAGS)
    done = subprocess.run([made, str(rows)], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    return len(files), said or ("" if done.returncode == 0 else f"it ended with {done.returncode}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default="", help="such as BLS,POP; all without it")
    parser.add_argument("--rows", type=int, default=2000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [name for name in estimators.__all__ if name.startswith(tuple(given.methods.split(",")))]
    programs, stopped = 0, 0
    for model, learning in fitted(names):
        with tempfile.TemporaryDirectory() as folder:
            n, said = reports(model, learning, Path(folder), given.rows)
        print(f"{type(model).__name__}: {n} programs, {said.strip() or 'no report'}", flush=True)
        programs, stopped = programs + n, stopped + bool(said)
    print(f"{programs} programs of {len(names)} estimators, {stopped} with a report")
    return bool(stopped)


if __name__ == "__main__":
    sys.exit(main())
