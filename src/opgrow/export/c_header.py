"""The header of an exported model: what its functions are, and the labels of its classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import c_text as text
from .buffers import stack_bytes
from .c_filling import sample_type, window_declarations
from .c_learning import learning_declarations
from .learning import StartingHead
from .program import Program

if TYPE_CHECKING:
    from .c_fixed import FixedProgram
    from .c_table import TableText

__all__ = ["header_source", "labels_comment"]


def header_source(
    program: Program,
    name: str,
    fixed: FixedProgram | None,
    table: TableText | None = None,
    learning: StartingHead | None = None,
) -> str:
    """The header, for floats or, with a `FixedProgram`, for integers; for a table, with its codes."""
    upper = name.upper()
    number = "float" if fixed is None else "int32_t"
    window, given = program.window, number
    sizes = types = filling = stack = ""
    if window is not None:
        given = sample_type(name)
        stack = f", with at most {stack_bytes(program)[1]} bytes of stack"
        sizes, types, filling = window_declarations(window, name)
    n_inputs = program.n_inputs if window is None else window.n_inputs
    inputs, outputs = f"const {given} x[{upper}_N_INPUTS]", f"{number} out[{upper}_N_OUTPUTS]"
    parts = [
        text.comment([f"{program.estimator} {program.topology}: see the source file for what it is."]),
        f"#ifndef {upper}_H\n#define {upper}_H\n",
        "#include <stdint.h>\n",
        f"{sizes}#define {upper}_N_INPUTS {n_inputs}\n#define {upper}_N_OUTPUTS {program.n_outputs}\n",
        types,
    ]
    if fixed is not None:
        parts.append(_formats(fixed, upper))
    parts.append('#ifdef __cplusplus\nextern "C" {\n#endif\n')
    if table is not None:
        parts.append(table.header())
    if program.classes is not None:
        unknown = ", or -1 where an input is NaN" if fixed is None else ""
        parts.append(
            f"/* The index of the most probable class{unknown}{stack}. */\nint {name}_predict({inputs});\n"
        )
        what = "The probability of each class"
    else:
        what = f"The predicted value of each target{stack}"
    form = "" if fixed is None else f", times 2^{upper}_OUTPUT_BITS"
    parts.append(f"/* {what}{form}. */\nvoid {name}_scores({inputs},\n    {outputs});\n")
    parts.append(filling)
    if learning is not None:
        parts.append(learning_declarations(program, name, learning))
    if fixed is not None:
        parts.append(_float_faces(program, name))
    parts.append("#ifdef __cplusplus\n}\n#endif\n")
    if program.classes is not None:
        parts.append(_labels(program.classes, name))
    parts.append(f"#endif /* {upper}_H */\n")
    return "\n".join(part for part in parts if part)


def labels_comment(program: Program) -> str:
    """A line about the outputs."""
    if program.classes is None:
        return f"Outputs: {program.n_outputs} target value{'s' if program.n_outputs > 1 else ''}."
    names = ", ".join(f"{i} = {text.safe_comment(str(label))}" for i, label in enumerate(program.classes))
    return f"Classes: {names}."


def _formats(fixed: FixedProgram, upper: str) -> str:
    """How numbers go in and come out."""
    bits = fixed.inputs.bits
    out = f"#define {upper}_OUTPUT_BITS {fixed.output_bits}\n"
    if len(set(bits)) == 1:
        lines = f"/* x[i] is the raw input times 2^{upper}_INPUT_BITS, rounded. */\n"
        return f"{lines}#define {upper}_INPUT_BITS {bits[0]}\n{out}"
    listed = ", ".join(map(str, bits))
    lines = text.comment([f"x[i] is the raw input i times 2^b, rounded, where b is, from i = 0: {listed}."])
    return f"{lines}#define {upper}_INPUT_BITS {{{listed}}}\n{out}"


def _float_faces(program: Program, name: str) -> str:
    upper = name.upper()
    predict = f"int {name}_predict_float(const float x[{upper}_N_INPUTS]);\n" if program.classes else ""
    return (
        f"#ifdef {upper}_FLOAT\n"
        "/* The same functions for raw floats, for tests on a computer: they convert to integers, and\n"
        " * answer NaN and -1 where an input is NaN. */\n"
        f"{predict}void {name}_scores_float(const float x[{upper}_N_INPUTS],\n"
        f"    float out[{upper}_N_OUTPUTS]);\n"
        "#endif\n"
    )


def _labels(classes: list[Any], name: str) -> str:
    """The labels as a table, which takes room only where it is asked for."""
    upper = name.upper()
    if all(isinstance(label, int | float) and label == int(label) for label in classes):
        wide = any(abs(int(label)) >= 2**31 for label in classes)
        kind = "int64_t" if wide else "int32_t"
        items = [f"INT64_C({int(label)})" if wide else str(int(label)) for label in classes]
    else:
        kind, items = "char *const", [text.string(str(label)) for label in classes]
    listed = ",\n".join(f"    {item}" for item in items)
    return (
        f"/* Define {upper}_LABELS before including this file for the label of each class. */\n"
        f"#ifdef {upper}_LABELS\n"
        f"static const {kind} {name}_labels[{upper}_N_OUTPUTS] = {{\n{listed}\n}};\n"
        "#endif\n"
    )
