"""Ways to break a model file, each a function of random numbers and a file; what comes out is bytes.

Bits are flipped and bytes cut, but most mutations know the format, so that they get past the first checks:
they edit the description (the JSON text in the metadata), the header of the safetensors file, or the tensors.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

from opgrow.common.checksums import seal

__all__ = ["MUTATIONS", "ModelBytes", "mutate"]


class ModelBytes:
    """A model file taken apart: header without metadata, the description, and the bytes of the tensors."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        size = int.from_bytes(content[:8], "little")
        self.header: dict[str, Any] = json.loads(content[8 : 8 + size])
        self.metadata: dict[str, Any] = self.header.pop("__metadata__")
        self.record: Any = json.loads(self.metadata["opgrow"])
        self.sealed = self.record.pop("checksum", None) is not None
        self.buffer = bytearray(content[8 + size :])

    def joined(self, text: str | None = None, header: str | None = None) -> bytes:
        """The file again, with another description or with another header as text.

        It has the checksum that belongs to it, as what is to be tested comes behind that.
        """
        if header is None:
            described = json.dumps(self.record) if text is None else text
            metadata = self.metadata | {"opgrow": self.with_checksum(described)}
            header = json.dumps({"__metadata__": metadata} | self.header)
        encoded = header.encode()
        return len(encoded).to_bytes(8, "little") + encoded + bytes(self.buffer)

    def with_checksum(self, text: str) -> str:
        if not self.sealed or text[-1:] != "}":
            return text
        try:
            tensors = [
                (name, info["dtype"], info["shape"], bytes(self.buffer[slice(*info["data_offsets"])]))
                for name, info in self.header.items()
            ]
            return seal(text, tensors)
        except (KeyError, TypeError, ValueError):  # a header of which nothing can be read
            return text


# --- bytes ---


def flip_bits(rng: Random, model: ModelBytes) -> bytes:
    content = bytearray(model.content)
    for _ in range(rng.choice([1, 1, 2, 8, 64])):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(content)


def flip_bits_of_the_header(rng: Random, model: ModelBytes) -> bytes:
    content = bytearray(model.content)
    end = len(content) - len(model.buffer)
    for _ in range(rng.choice([1, 2, 4])):
        content[rng.randrange(end)] ^= 1 << rng.randrange(8)
    return bytes(content)


def truncate(rng: Random, model: ModelBytes) -> bytes:
    content, start = model.content, len(model.content) - len(model.buffer)
    ends = [start + end for info in model.header.values() for end in info["data_offsets"]]
    places = [
        0,
        1,
        7,
        8,
        9,
        start - 1,
        start,
        start + 1,
        len(content) - 1,
        *ends,
        rng.randrange(len(content)),
    ]
    return content[: rng.choice(places)]


def append(rng: Random, model: ModelBytes) -> bytes:
    return model.content + rng.choice([b"\0", b" ", rng.randbytes(100), model.content])


def cut_or_insert(rng: Random, model: ModelBytes) -> bytes:
    content, at = model.content, rng.randrange(len(model.content))
    if rng.random() < 0.5:
        return content[:at] + content[at + rng.randrange(1, 64) :]
    return content[:at] + rng.randbytes(rng.randrange(1, 64)) + content[at:]


def header_length(rng: Random, model: ModelBytes) -> bytes:
    size = int.from_bytes(model.content[:8], "little")
    sizes = [0, 1, size - 1, size + 1, len(model.content), 10**8, 2**31, 2**40, 2**63, 2**64 - 1]
    return rng.choice(sizes).to_bytes(8, "little") + model.content[8:]


# --- the header of the safetensors file ---

_SIZES = [-1, 0, 1, 2, 3, 2**31, 2**32 + 1, 2**40, 2**62, 2**63, 2**64, 10**30, 1.5, None, "8", [], True]
_TYPES = ["F64", "F32", "F16", "BF16", "I64", "I8", "U8", "BOOL", "F8_E4M3", "C64", "F31", "", None, 3]


def edit_tensor_info(rng: Random, model: ModelBytes) -> bytes:
    info = model.header[rng.choice(sorted(model.header))]
    what = rng.choice(["dtype", "shape", "data_offsets", "drop", "swap"])
    if what == "dtype":
        info["dtype"] = rng.choice(_TYPES)
    elif what == "swap":
        other = model.header[rng.choice(sorted(model.header))]
        key = rng.choice(["dtype", "shape", "data_offsets"])
        info[key], other[key] = other[key], info[key]
    elif what == "drop":
        info.pop(rng.choice(["dtype", "shape", "data_offsets"]))
    elif rng.random() < 0.2:
        info[what] = rng.choice(_SIZES)
    else:
        values = info[what]
        if values and rng.random() < 0.7:
            values[rng.randrange(len(values))] = rng.choice(_SIZES)
        else:
            values.insert(0, rng.choice(_SIZES))
    return model.joined()


def edit_tensor_names(rng: Random, model: ModelBytes) -> bytes:
    name = rng.choice(sorted(model.header))
    new = rng.choice(["", "x", "head.weight", name + "0", name.upper(), "a" * 10_000, "\u202e", "../x"])
    if rng.random() < 0.5:
        model.header[new] = model.header.pop(name)
    else:
        model.header[new] = dict(model.header[name])
    return model.joined()


def drop_tensor(rng: Random, model: ModelBytes) -> bytes:
    """Leave a tensor out and move the others up, so that the file is whole."""
    name = rng.choice(sorted(model.header))
    start, end = model.header.pop(name)["data_offsets"]
    del model.buffer[start:end]
    for info in model.header.values():
        if info["data_offsets"][0] >= end:
            info["data_offsets"] = [offset - (end - start) for offset in info["data_offsets"]]
    return model.joined()


def same_name_twice(rng: Random, model: ModelBytes) -> bytes:
    name = rng.choice(sorted(model.header))
    entry = f"{json.dumps(name)}: {json.dumps(model.header[name])}"
    header = json.dumps({"__metadata__": model.metadata} | model.header)
    return model.joined(header=header[:-1] + ", " + entry + "}")


def many_tensors(rng: Random, model: ModelBytes) -> bytes:
    end, n = len(model.buffer), rng.choice([100, 20_000])
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [end, end]}
    model.header |= {f"t{i}": empty for i in range(n)}
    return model.joined()


def edit_metadata(rng: Random, model: ModelBytes) -> bytes:
    how = rng.randrange(5)
    if how == 0:
        model.metadata = {}
        return model.joined(header=json.dumps(model.header))
    if how == 1:
        return model.joined(text=rng.choice(["", "null", "3", "[]", "{", "\0", '"', "{}", '{"format":2}']))
    if how == 2:
        value = rng.choice([None, 3, [], {"a": "b"}])
        header = json.dumps({"__metadata__": {"opgrow": value}} | model.header)
        return model.joined(header=header)
    if how == 3:
        header = json.dumps(
            {"__metadata__": {"opgrow": model.with_checksum(json.dumps(model.record))}} | model.header
        )
        return model.joined(header=header + " " * rng.choice([1, 1000]))
    model.metadata["other"] = "x" * rng.choice([1, 100_000])
    return model.joined()


# --- the description ---

#: Texts that `json.dumps` would not write, by what stands for them until then.
_RAW = {
    "@nan@": "NaN",
    "@inf@": "-Infinity",
    "@huge@": "1e999",
    "@digits@": "9" * 400,
    "@manydigits@": "9" * 5000,
    "@deep@": "[" * 900 + "]" * 900,
    "@deeper@": "[" * 100_000 + "]" * 100_000,
    "@deepdict@": '{"tuple":[' * 400 + "]}" * 400,
    "@surrogate@": '"\\ud800"',
    "@bad@": "\\",
}


def _dumped(record: Any) -> str:
    text = json.dumps(record)
    for mark, raw in _RAW.items():
        text = text.replace(f'"{mark}"', raw)
    return text


def _value(rng: Random) -> Any:
    plain: list[Any] = [None, True, False, -1, 0, 1, 2, 7, 2**31, 2**63, 2**64, -(2**70), 0.5, -1e308, 1e-320]
    texts = [
        "",
        "x",
        "é\u0301\U0001f40d",
        "a\nb\x00c",
        "%s{}[red][/x]",
        "x" * 100_000,
        "cuda:99",
        "object",
        "unit",
        "inf",
    ]
    lists: list[Any] = [
        [],
        {},
        [[]],
        [None],
        [1, 2, 3],
        {"a": 1},
        {"tuple": 3},
        {"float": "inf"},
        {"float": 3},
    ]
    lists += [{"dict": [[[], 1]]}, {"dict": [["a", 1]]}, {"operators": ["a", "b", "c"]}, list(range(5000))]
    return rng.choice(rng.choice([plain, plain, texts, lists, list(_RAW)]))


def _places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [place for key, item in items for place in ((*path, key), *_places(item, (*path, key)))]


def _choose(rng: Random, record: Any) -> tuple[Any, Any]:
    """A container somewhere in the description and a key of it; shallow ones as often as deep ones."""
    places = _places(record)
    depth = rng.choice(sorted({len(place) for place in places}))
    *path, key = rng.choice([place for place in places if len(place) == depth])
    for step in path:
        record = record[step]
    return record, key


def replace_value(rng: Random, model: ModelBytes) -> bytes:
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        container, key = _choose(rng, model.record)
        container[key] = _value(rng)
    return model.joined(_dumped(model.record))


def drop_value(rng: Random, model: ModelBytes) -> bytes:
    container, key = _choose(rng, model.record)
    del container[key]
    return model.joined()


def move_value(rng: Random, model: ModelBytes) -> bytes:
    first, second = _choose(rng, model.record), _choose(rng, model.record)
    copy = json.loads(json.dumps(first[0][first[1]]))
    second[0][second[1]] = copy
    return model.joined()


def rename_key(rng: Random, model: ModelBytes) -> bytes:
    container, key = _choose(rng, model.record)
    if isinstance(container, dict):
        container[rng.choice(["", "x", key + " ", key.upper(), "__class__", "network_"])] = container.pop(key)
    return model.joined()


def same_key_twice(rng: Random, model: ModelBytes) -> bytes:
    key = rng.choice(sorted(model.record))
    text = _dumped(model.record)
    return model.joined(f"{text[:-1]}, {json.dumps(key)}: {_dumped(_value(rng))}}}")


def resize_list(rng: Random, model: ModelBytes) -> bytes:
    places = [(c, k) for c, k in (_choose(rng, model.record) for _ in range(40)) if isinstance(c[k], list)]
    for container, key in places[:1]:
        items = container[key]
        container[key] = rng.choice([items * 2, items * 50, items[:-1], items[1:], [items], items[::-1]])
    return model.joined()


def other_operators(rng: Random, model: ModelBytes) -> bytes:
    names = [
        ["multiplication", "gaussian", "dog", "none"],
        ["sum", "maximum", "median"],
        ["relu", "tanh", "sin"],
    ]
    for layer in model.record["layers"]:
        for block in layer:
            if rng.random() < 0.7:
                block["operators"] = [rng.choice(choices) for choices in names]
    if rng.random() < 0.3:
        model.record["head"] = [rng.choice(choices) for choices in names]
    return model.joined()


def other_topology(rng: Random, model: ModelBytes) -> bytes:
    """Change a size here and in the header alike."""
    layers = model.record["layers"]
    i = rng.randrange(len(layers))
    j = rng.randrange(len(layers[i]))
    block = layers[i][j]
    key = rng.choice(["n_neurons", "n_inputs", "norm", "bias", "broad", "swap"])
    if key in ("n_neurons", "n_inputs"):
        before, now = block[key], rng.choice([0, -1, block[key] + 1, 2**20, 2**40, 2**62])
        block[key] = now
        for name, info in model.header.items():
            if name.startswith((f"layers.{i}.blocks.{j}.", "head", "input")):
                info["shape"] = [now if size == before else size for size in info["shape"]]
    elif key == "norm":
        block["norm"] = rng.choice(["unit", "batch", None])
    elif key == "bias":
        block["bias"] = not block.get("bias", True)
    elif key == "broad":
        model.record["broad"] = not model.record.get("broad")
    else:
        name = f"layers.{i}.blocks.{j}.weight"
        model.header[name]["shape"] = model.header[name]["shape"][::-1]
        block["n_inputs"], block["n_neurons"] = block["n_neurons"], block["n_inputs"]
    return model.joined()


def other_classes(rng: Random, model: ModelBytes) -> bytes:
    """Labels that are long, equal, of another kind or too many."""
    classes = model.record.get("classes")
    if not classes:
        return replace_value(rng, model)
    n = len(classes["values"])
    choices: list[tuple[str, str, list[Any]]] = [
        ("str", "str", ["x" * rng.choice([1000, 2_000_000]), *(str(i) for i in range(n - 1))]),
        ("str", "object", ["y" * (2_000_000 // n)] * n),
        ("str", "str", ["\0", "", *(str(i) for i in range(n - 2))]),
        (
            "int",
            rng.choice(["int8", "uint64", "int64"]),
            [rng.choice([2**63, -1, 300, 0]) + i for i in range(n)],
        ),
        (
            "float",
            rng.choice(["float16", "float64"]),
            [rng.choice([1e300, 0.0, 1e-40]) * (i + 1) for i in range(n)],
        ),
        ("bool", "bool", [bool(i % 2) for i in range(n)]),
        ("int", "int64", list(range(n + 1))),
    ]
    classes["kind"], classes["type"], classes["values"] = rng.choice(choices)
    return model.joined()


def long_history(rng: Random, model: ModelBytes) -> bytes:
    """Thousands of steps or candidates, or a large part that is ignored."""
    history = model.record["history"]
    how = rng.randrange(3)
    if how == 0:
        model.record["history"] = history * (2000 // len(history))
    elif how == 1:
        history[0]["candidates"] = history[0]["candidates"] * 2000
    else:
        model.record["ignored"] = [[]] * 300_000
    return model.joined()


def other_table(rng: Random, model: ModelBytes) -> bytes:
    """An encoder where there was none, or an edited one."""
    table = model.record.get("table")
    if not table:
        columns = [
            {"name": f"c{i}", "kind": "number", "median": 0.0} for i in range(model.record["n_inputs"])
        ]
        model.record["table"] = {"format": 1, "max_categories": 3, "columns": columns}
        return model.joined()
    column = rng.choice(table["columns"])
    column[
        rng.choice(
            [
                "name",
                "kind",
                "median",
                "categories",
                "missing",
                "means",
                "overall",
                "parts",
                "form",
                "origin",
                "other",
            ]
        )
    ] = _value(rng)
    return model.joined(_dumped(model.record))


def other_steps(rng: Random, model: ModelBytes) -> bytes:
    """Change the steps of a pipeline, or give one to a file that has none."""
    pipeline = model.record.get("pipeline")
    if pipeline is None:
        steps = [["a", {"kind": rng.choice(["passthrough", "model"])}], ["b", {"kind": "model"}]]
        model.record["pipeline"] = {"format": 1, "steps": steps[rng.randrange(2) :]}
        return model.joined()
    parts = _parts(pipeline)
    part = rng.choice(parts)
    kinds = [
        "Pipeline",
        "ColumnTransformer",
        "PCA",
        "StandardScaler",
        "TableEncoder",
        "OneHotEncoder",
        "model",
    ]
    kinds += ["SimpleImputer", "PolynomialFeatures", "passthrough", "drop", "os.system", "SVC", "__class__"]
    key = rng.choice(sorted(part))
    how = rng.randrange(5)
    if how == 0:
        part["kind"] = rng.choice(kinds)
    elif how == 1 and "n" in part:
        part["n"] = rng.choice([0, -1, part["n"] + 1, 2**17, 2**40])
    elif how == 2 and part.get("parameters"):
        part["parameters"][rng.choice(sorted(part["parameters"]))] = _value(rng)
    elif how == 3:
        other = json.loads(json.dumps(rng.choice(parts)))
        part.clear()
        part.update(other)
    else:
        part[key] = _value(rng)
    return model.joined(_dumped(model.record))


def _parts(data: Any) -> list[Any]:
    """All parts of a pipeline, those within others included."""
    found = [data] if isinstance(data, dict) and "kind" in data else []
    items = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return [*found, *(part for item in items for part in _parts(item))]


# --- the tensors ---


def edit_numbers(rng: Random, model: ModelBytes) -> bytes:
    """Special or random bits in some tensors; the file stays whole."""
    patterns = [
        "0000c07f",
        "0000807f",
        "000080ff",
        "01000000",
        "ffff7f7f",
        "00000000",
        "000080bf",
        "ffffffff",
    ]
    for _ in range(rng.choice([1, 1, 3, 20])):
        start, end = model.header[rng.choice(sorted(model.header))]["data_offsets"]
        pattern = bytes.fromhex(rng.choice(patterns))
        n = (end - start) // 4
        if rng.random() < 0.5:
            model.buffer[start : start + 4 * n] = pattern * n
        elif n:
            at = start + 4 * rng.randrange(n)
            model.buffer[at : at + 4] = rng.choice([pattern, rng.randbytes(4)])
    return model.joined()


MUTATIONS: list[Callable[[Random, ModelBytes], bytes]] = [
    flip_bits,
    flip_bits_of_the_header,
    truncate,
    append,
    cut_or_insert,
    header_length,
    edit_tensor_info,
    edit_tensor_names,
    drop_tensor,
    same_name_twice,
    many_tensors,
    edit_metadata,
    replace_value,
    replace_value,
    replace_value,
    drop_value,
    move_value,
    rename_key,
    same_key_twice,
    resize_list,
    other_operators,
    other_topology,
    other_classes,
    long_history,
    other_table,
    other_steps,
    other_steps,
    edit_numbers,
]


def mutate(content: bytes, seed: int, number: int) -> tuple[str, bytes]:
    """The mutation with this number: its name, and the file that it makes."""
    rng = Random(f"{seed} {number}")
    change = MUTATIONS[number % len(MUTATIONS)]
    return change.__name__, change(rng, ModelBytes(content))
