"""The features of windows as C: a function from samples to what the network takes.

`window_emulation` computes the same in numpy, in the same order.
"""

from __future__ import annotations

import math

import numpy as np

from ..rows.signals import FARTHEST, WindowForm
from . import c_text as text
from .c_filling import sample_type

__all__ = [
    "constant_bytes",
    "cosines",
    "energy_factor",
    "window_arrays",
    "window_functions",
    "window_lines",
]


#: Features of the differences from a channel's first sample or its mean, and those that take the mean.
_OF_DIFFERENCES = {"deviation", "difference", "crossings", "bands"}
_OF_MEAN = {"mean", "deviation", "crossings", "bands"}


def cosines(form: WindowForm) -> np.ndarray:
    """A quarter of a wave, cos(pi j / (2 n)) for j from 0 to n samples, by which spectra are computed."""
    return np.cos(np.pi * np.arange(form.n_samples + 1) / (2 * form.n_samples)).astype(np.float32)


def energy_factor(form: WindowForm) -> np.float32:
    """What makes sums with cosines so large that their squares add up to the variance."""
    return np.float32(math.sqrt(2) / form.n_samples)


def constant_bytes(form: WindowForm) -> int:
    """Bytes of the constant tables."""
    return 4 * (form.n_samples + 1) * bool(form.bands)


def window_lines(form: WindowForm) -> list[str]:
    """What goes in, for a comment."""
    channels = "one channel" if form.n_channels == 1 else f"{form.n_channels} channels"
    order = "in the order of time" if form.n_channels == 1 else "all channels of a sample after each other"
    lines = [
        f"Inputs: windows of {form.n_samples} samples of {channels}, {order}, raw values. Computed of each "
        f"channel: {', '.join(form.channel_names)}; the network standardises them."
    ]
    if form.bands:
        bands = ", ".join(f"{first} to {stop - 1}" for first, stop in form.bands)
        lines.append(
            f"Bands are coefficients k of the cosine transform, of k / {2 * form.n_samples} of the sampling "
            f"rate: {bands}."
        )
    if "crossings" in form.features:
        lines.append(f"Crossings go {form.hysteresis:g} deviations beyond the mean.")
    return lines


_ROOT = """\
/* The root of v; 0 of numbers that are next to nothing. */
static INLINE float root(float v)
{
    return v > FLT_MIN ? v * inverse_root(v) : 0.0f;
}
"""
_CROSSINGS = """\
/* How often e goes from above level to below -level or back. */
static float crossings(const float *e, float level)
{{
    int count = 0, side = 0;
    for (int t = 0; t < {n}; t++) {{
        const int now = e[t] > level ? 1 : e[t] < -level ? -1 : side;
        count += now * side < 0;
        side = now;
    }}
    return (float)count;
}}
"""
_BAND = """\
/* The root of what coefficients first to stop - 1 of the cosine transform have of the variance. In e are sums
 * of samples that are as far from either end of the window, and behind them, from the end, differences. */
static float band(const float *e, int first, int stop)
{{
    float squares = 0.0f;
    for (int k = first; k < stop; k++) {{
        const int odd = k % 2, pairs = {pairs};
        float total = 0.0f;
        int angle = k; /* in units of a {wave}th of a turn */
        for (int i = 0; i < pairs; i++) {{
            const int half = angle > {half} ? {wave} - angle : angle;
            const float c = half > {n} ? -FLOAT_AT(cosines + {half} - half) : FLOAT_AT(cosines + half);
            total += c * e[odd ? {last} - i : i];
            angle += 2 * k;
            angle -= angle < {wave} ? 0 : {wave};
        }}
        total *= {factor};
        squares += total * total;
    }}
    return root(squares);
}}
"""
_FEATURES = """\
/* The features of each channel of a window; the first is NaN if any sample is. */
static void window_features(const {sample} *x, float *features)
{{
{channel}    float *out = features;
    int unknown = 0;
    for (int c = 0; c < {channels}; c++) {{
        const float first = within((float)x[c], {far});
{variables}        for (int t = 0; t < {n}; t++) {{
            const float v = within((float)x[t * {channels} + c], {far});
            unknown |= v != v;
{sums}        }}
{body}    }}
    if (unknown) {{
        features[0] = float_of(UINT32_C(0x7fc00000)); /* NaN */
    }}
}}
"""
_OUTPUTS = """\
static void outputs(const {sample} *x, float *out)
{{
    float features[{width}];
    window_features(x, features);
    network_outputs(features, out);
}}
"""


def window_arrays(form: WindowForm) -> list[str]:
    """The constant tables."""
    if not form.bands:
        return []
    n = form.n_samples
    table = text.array(f"float cosines[{n + 1}] IN_FLASH", [cosines(form)])
    return [f"/* cos(pi j / {2 * n}) for j from 0 to {n}. */\n{table}"]


def window_functions(form: WindowForm, name: str) -> list[str]:
    """From samples to the outputs of the network, which ``network_outputs`` makes of features."""
    n, parts = form.n_samples, []
    if {"deviation", "crossings", "bands"} & {*form.features}:
        parts.append(_ROOT)
    if "crossings" in form.features:
        parts.append(_CROSSINGS.format(n=n))
    if form.bands:
        parts.append(
            _BAND.format(
                n=n,
                last=n - 1,
                pairs=f"odd ? {n // 2} : {n // 2 + 1}" if n % 2 else n // 2,
                half=2 * n,
                wave=4 * n,
                factor=text.floating(float(energy_factor(form))),
            )
        )
    parts.append(_features(form, name))
    return [*parts, _OUTPUTS.format(sample=sample_type(name), width=len(form.names))]


def _features(form: WindowForm, name: str) -> str:
    """The function that computes all features, with what those that are asked for need."""
    features = {*form.features}
    variables, sums = [], []
    if features & {"minimum", "range"}:
        variables.append("float low = first;")
        sums.append("low = v < low ? v : low;")
    if features & {"maximum", "range"}:
        variables.append("float high = first;")
        sums.append("high = v > high ? v : high;")
    if features & _OF_DIFFERENCES:
        sums.append("e[t] = v - first;")
    if features & _OF_MEAN:
        variables.append("float total = 0.0f;")
        sums.append("total += v - first;")
    channel = (
        f"    float e[{form.n_samples}]; /* one channel, less its first sample and then less its mean */\n"
    )
    return _FEATURES.format(
        sample=sample_type(name),
        n=form.n_samples,
        channels=form.n_channels,
        far=text.floating(FARTHEST),
        channel=channel if features & _OF_DIFFERENCES else "",
        variables="".join(f"        {line}\n" for line in variables),
        sums="".join(f"            {line}\n" for line in sums),
        body="".join(f"        {line}\n" for line in _lines(form)),
    )


def _lines(form: WindowForm) -> list[str]:
    """The statements that write the features of a channel."""
    n, features = form.n_samples, {*form.features}
    lines = [f"total /= {n}.0f;"] if features & _OF_MEAN else []
    if features & {"deviation", "crossings"}:
        lines.append("float squares = 0.0f, deviation;")
    if "difference" in features:
        lines.append("float steps = 0.0f;")
        lines += _loop(1, n, "steps += size_of(e[t] - e[t - 1]);")
    if features & {"deviation", "crossings"}:
        lines += _loop(0, n, "e[t] -= total;", "squares += e[t] * e[t];")
        lines.append(f"deviation = root(squares / {n}.0f);")
    elif "bands" in features:
        lines += _loop(0, n, "e[t] -= total;")
    values = {
        "mean": "first + total",
        "deviation": "deviation",
        "minimum": "low",
        "maximum": "high",
        "range": "high - low",
        "difference": f"steps / {max(1, n - 1)}.0f",
        "crossings": f"crossings(e, {text.floating(form.hysteresis)} * deviation)",
    }
    place = start = 0
    for feature in form.features:
        if feature == "bands":
            start, place = place, place + len(form.bands)
        else:
            lines.append(f"out[{place}] = {values[feature]};")
            place += 1
    if form.bands:  # last, as it changes e
        sums = "e[t] = left + right;", f"e[{n - 1} - t] = left - right;"
        lines += _loop(0, n // 2, f"const float left = e[t], right = e[{n - 1} - t];", *sums)
        lines += [
            f"out[{start + i}] = band(e, {first}, {stop});" for i, (first, stop) in enumerate(form.bands)
        ]
    return [*lines, f"out += {len(form.channel_names)};"]


def _loop(start: int, stop: int, *body: str) -> list[str]:
    return [f"for (int t = {start}; t < {stop}; t++) {{", *(f"    {line}" for line in body), "}"]
