"""Sources in files: NPY and NPZ here, Parquet in `opgrow.rows.chunks.parquet`."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..tables.files import read_npz
from .sources import Chunk, Source, from_arrays

__all__ = ["from_files", "open_source"]

_Path = str | os.PathLike[str]


def from_files(
    files: _Path | Sequence[_Path],
    targets: _Path | Sequence[_Path] | None = None,
    *,
    chunk_rows: int | None = None,
) -> Source:
    """Make a source from NPY or NPZ files.

    Parameters
    ----------
    files : path or list of paths
        ``.npz`` files, each with an array ``X`` and, to fit, ``y`` (and perhaps ``sample_weight``): each file
        is one chunk. Or ``.npy`` files with rows of X, which are read in chunks. Or a folder with either: in
        a folder, ``y.npy`` belongs to ``X.npy``, and ``y_1.npy`` to ``X_1.npy``.
    targets : path or list of paths, optional
        ``.npy`` files with the values of y, one for each file of X.
    chunk_rows : int, optional
        Rows of a chunk of ``.npy`` files; by default as many as take 16 MB, at most 65,536.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from opgrow.rows.chunks import from_files
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for day in range(3):
    ...     np.savez(folder / f"day{day}.npz", X=np.ones((5, 2)), y=np.arange(5))
    >>> from_files(folder).n_rows
    15
    """
    paths = _listed(files)
    if len(paths) == 1 and paths[0].is_dir():
        if targets is not None:
            raise ValueError(f"targets are for files of X, and {str(paths[0])!r} is a folder")
        paths, belongs = _in_folder(paths[0])
    else:
        belongs = [None] * len(paths) if targets is None else list(_listed(targets))
    if len(belongs) != len(paths):
        raise ValueError(f"there are {len(belongs)} files of targets for {len(paths)} files of X")
    parts = [_part(path, target, chunk_rows) for path, target in zip(paths, belongs, strict=True)]
    return parts[0] if len(parts) == 1 else _Joined(parts, [str(path) for path in paths])


def open_source(path: _Path, target: str | None = None, columns: Sequence[str] | None = None) -> Source:
    """The source in a folder: Parquet files if it has some, else NPY or NPZ files.

    Parameters
    ----------
    path : folder, or a Parquet file
    target : str, optional
        Name of the column that holds y; in NPY and NPZ files it is always ``y``.
    columns : sequence of str, optional
        Columns that hold X; by default all but the target.
    """
    path = Path(path).expanduser()
    if path.suffix.lower() == ".parquet" or (path.is_dir() and any(path.rglob("*.parquet"))):
        from .parquet import from_parquet

        return from_parquet(path, target, columns=columns)
    return from_files(path)


def _listed(paths: _Path | Sequence[_Path]) -> list[Path]:
    listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    expanded = [Path(path).expanduser() for path in listed]
    for path in expanded:
        if not path.exists():
            raise FileNotFoundError(f"There is no file or folder {str(path)!r}.")
    if not expanded:
        raise ValueError("there are no files")
    return expanded


def _in_folder(folder: Path) -> tuple[list[Path], list[Path | None]]:
    """Files of X in a folder, and the files of y that belong to them."""
    archives = sorted(folder.glob("*.npz"))
    if archives:
        return archives, [None] * len(archives)
    inputs = sorted(path for path in folder.glob("*.npy") if path.name[0] == "X")
    if not inputs:
        raise ValueError(
            f"The folder {str(folder)!r} holds no .parquet files, no .npz files and no X.npy "
            "(or X_1.npy, ...)."
        )
    targets = [path.with_name(f"y{path.name[1:]}") for path in inputs]
    return inputs, [path if path.exists() else None for path in targets]


def _part(path: Path, target: Path | None, chunk_rows: int | None) -> Source:
    if path.suffix.lower() == ".npz":
        if target is not None:
            raise ValueError(f"{str(path)!r} holds its own y: targets are for .npy files")
        return _Npz(path)
    if path.suffix.lower() == ".npy":
        return _Npy(path, target, chunk_rows)
    raise ValueError(f"Cannot tell the format of {str(path)!r}: expected a folder, or .npy or .npz files.")


def _mapped(path: Path) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{str(path)!r} is not a NumPy file of plain numbers.") from error


class _Npy(Source):
    """A file of X and perhaps one of y, opened for every chunk: there may be more files than can be open."""

    def __init__(self, path: Path, target: Path | None, chunk_rows: int | None) -> None:
        self.path, self.target = path, target
        whole = self._open(chunk_rows)
        self.n_features, self.dtype, self.sizes = whole.n_features, whole.dtype, whole.sizes
        rows = int(self.sizes[0]) if len(self.sizes) else 1
        self.rows = rows if chunk_rows is None else chunk_rows

    def _open(self, chunk_rows: int | None) -> Source:
        y = None if self.target is None else _mapped(self.target)
        try:
            return from_arrays(_mapped(self.path), y, chunk_rows=chunk_rows)
        except ValueError as error:
            raise ValueError(f"{str(self.path)!r}: {error}") from None

    def read(self, number: int) -> Chunk:
        return self._open(self.rows).read(number)


class _Npz(Source):
    """One archive, which is read as a whole."""

    slow = True

    def __init__(self, path: Path) -> None:
        self.path = path
        shape, self.dtype = _header(path)
        self.sizes, self.n_features = np.array([shape[0]], np.int64), shape[1]

    def read(self, number: int) -> Chunk:
        arrays = read_npz(self.path)
        return Chunk(arrays["X"], arrays.get("y"), arrays.get("sample_weight"))


def _header(path: Path) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type of X in an archive, from its first bytes."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("X.npy") as file:
            version: Any = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else None
            if read is not None:
                shape, _, dtype = read(file)
                if len(shape) == 2:
                    return shape, dtype
    except KeyError:
        pass  # no X, which read_npz says better
    except (OSError, ValueError, zipfile.BadZipFile):
        pass
    arrays = read_npz(path)
    return arrays["X"].shape, arrays["X"].dtype


class _Joined(Source):
    """Sources one after the other."""

    def __init__(self, parts: Sequence[Source], names: Sequence[str]) -> None:
        self.parts = parts
        self.n_features = parts[0].n_features
        for part, name in zip(parts, names, strict=True):
            if part.n_features != self.n_features:
                raise ValueError(
                    f"{name!r} has {part.n_features} columns, and {names[0]!r} has {self.n_features}"
                )
        self.dtype = np.result_type(*(part.dtype for part in parts))
        self.slow = any(part.slow for part in parts)
        self.sizes = np.concatenate([part.sizes for part in parts])
        self.places = [(part, number) for part in parts for number in range(part.n_chunks)]

    def read(self, number: int) -> Chunk:
        part, place = self.places[number]
        return part.read(place)
