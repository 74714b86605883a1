"""Windows in the header of exported C: their sizes and types, and functions that fill one by samples."""

from __future__ import annotations

from ..rows.signals import WindowForm

__all__ = ["filling_functions", "sample_type", "window_declarations"]

_DECLARATIONS = """\
/* The type of samples: float, or for all files an integer type, such as -D{upper}_SAMPLE=int16_t. */
#ifndef {upper}_SAMPLE
#define {upper}_SAMPLE float
#endif

/* A window that is filled as time goes by: {bytes} bytes where samples are floats, and two ints. */
typedef struct {{
    {upper}_SAMPLE samples[{upper}_N_INPUTS];
    int filled, step;
}} {name}_window;
"""
_FILLING = """\
/* An empty window. Once it is full, it moves on by step samples, from 1 to {upper}_N_SAMPLES. */
void {name}_window_start({name}_window *window, int step);

/* Adds a sample of each channel. Returns 1 where the window is full: window->samples is an input, then. */
int {name}_window_push({name}_window *window, const {upper}_SAMPLE sample[{upper}_N_CHANNELS]);
"""


def window_declarations(form: WindowForm, name: str) -> tuple[str, str, str]:
    """The sizes, the types and the functions of windows."""
    upper = name.upper()
    sizes = f"#define {upper}_N_SAMPLES {form.n_samples}\n#define {upper}_N_CHANNELS {form.n_channels}\n"
    return (
        sizes,
        _DECLARATIONS.format(name=name, upper=upper, bytes=4 * form.n_inputs),
        _FILLING.format(name=name, upper=upper),
    )


_FILLING_SOURCE = """
void {name}_window_start({name}_window *window, int step)
{{
    window->filled = 0;
    window->step = step < 1 ? 1 : step > {n} ? {n} : step;
}}

int {name}_window_push({name}_window *window, const {sample} sample[{upper}_N_CHANNELS])
{{
    if (window->filled == {upper}_N_INPUTS) {{
        const int moved = window->step * {channels};
        window->filled -= moved;
        for (int i = 0; i < window->filled; i++) {{
            window->samples[i] = window->samples[i + moved];
        }}
    }}
    for (int c = 0; c < {channels}; c++) {{
        window->samples[window->filled + c] = sample[c];
    }}
    window->filled += {channels};
    return window->filled == {upper}_N_INPUTS;
}}
"""


def sample_type(name: str) -> str:
    """The type of samples, a macro."""
    return f"{name.upper()}_SAMPLE"


def filling_functions(form: WindowForm, name: str) -> str:
    """The functions that fill a window."""
    return _FILLING_SOURCE.format(
        name=name,
        upper=name.upper(),
        sample=sample_type(name),
        n=form.n_samples,
        channels=form.n_channels,
    )
