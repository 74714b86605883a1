"""Writing files so that nothing is lost: a reader sees the old file or the new one, never parts of them.

A file is written beside its place, flushed to the disk, and moved there when it is complete; then the folder
is flushed, so that the move survives a loss of power. Whatever goes wrong before the move, such as a full
disk or an interruption, the old file stays as it was and no other file is left behind. Everything that this
package saves is saved by `write_atomically` or, where several files belong together, by `write_together`; a
file to which several processes add lines is written by `append_line`.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["append_line", "check_suffix", "check_writable", "write_atomically", "write_together"]

#: What a file is to hold, as a whole or piece by piece.
Content = bytes | Iterable[bytes]
#: What file systems answer that cannot flush a folder, or systems that cannot open one.
_NO_FOLDER_FLUSH = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EISDIR, errno.ENOSYS)


def write_atomically(path: str | os.PathLike[str], content: Content) -> None:
    """Write a file that appears complete or not at all; a file that was there stays until then.

    An `OSError` names the file that was to be written. If only the last step fails, the flush of the folder,
    the new file is there, complete, but a loss of power could still bring the old one back.
    """
    write_together({path: content})


def write_together(contents: Mapping[str | os.PathLike[str], Content]) -> None:
    """Write files that belong together: after an error or an interruption, all are as they were before.

    Each of them appears complete or not at all. No file system replaces several at once, so a process that is
    killed, or a loss of power, between the moves can leave some of the files new and the others old.
    """
    # A link is followed: what it points to is replaced, and not the link.
    targets = {_real(path): content for path, content in contents.items()}
    for target in targets:
        check_writable(target)
    beside: list[Path] = []
    moved: list[Path] = []
    former: dict[Path, Path] = {}
    try:
        parts = {target: _write_beside(target, content, beside) for target, content in targets.items()}
        if len(targets) > 1:  # a single file needs no way back
            former = {target: _keep(target, beside) for target in targets if target.exists()}
        for target, part in parts.items():
            moved.append(target)  # before the move: an interruption may come right after it
            with _named(target):
                os.replace(part, target)
    except BaseException:
        for target in moved if len(targets) > 1 else ():
            _put_back(target, former.get(target), parts[target])
        raise
    finally:
        for file in beside:
            with suppress(OSError):
                file.unlink(missing_ok=True)
    for folder in {target.parent for target in targets}:
        with _named(next(target for target in targets if target.parent == folder)):
            _flush_folder(folder)


def append_line(path: str | os.PathLike[str], line: bytes) -> None:
    """Add a line to the end of a file, which is made if there is none, and flush it to the disk.

    Lines that processes add at the same time do not mix. A full disk or a loss of power can leave an
    incomplete line at the end; the next line then begins on a new one, so that no other line is lost.
    """
    target = _real(path)
    with _named(target):
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        handle = os.open(target, flags, 0o666)
        try:
            size = os.lseek(handle, 0, os.SEEK_END)
            whole = True
            if size:
                os.lseek(handle, size - 1, os.SEEK_SET)
                whole = os.read(handle, 1) == b"\n"
            content = (b"" if whole else b"\n") + line + b"\n"
            if os.write(handle, content) != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(handle)
        finally:
            os.close(handle)


def check_suffix(path: str | os.PathLike[str], suffix: str, what: str) -> None:
    """Refuse a name that promises another kind of file than the one that would be written."""
    name = Path(path).name
    if Path(path).suffix.lower() != suffix:
        raise ValueError(f"The {what} must end in {suffix!r}, got {name!r}.")


def check_writable(path: str | os.PathLike[str]) -> None:
    """Say early, before a long fit, that a file cannot be written to its place."""
    target = _real(path)
    if target.exists() and not target.is_file():
        raise ValueError(f"{str(target)!r} is not a file that can be replaced.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(target.parent)!r}.")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"Nothing can be written to the folder {str(target.parent)!r}.")


def _real(path: str | os.PathLike[str]) -> Path:
    return Path(os.path.realpath(Path(path).expanduser()))


@contextmanager
def _named(target: Path) -> Iterator[None]:
    """Let errors of the system name the file that was to be written, and not one beside it."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror or os.strerror(error.errno), str(target)) from error


def _write_beside(target: Path, content: Content, beside: list[Path]) -> Path:
    """A new file in the target's folder with the content, on the disk; it is noted before it exists."""
    part = target.parent / f".{target.name}.{secrets.token_hex(4)}.tmp"
    beside.append(part)
    with _named(target):
        # Not by tempfile, whose files only their owner may read.
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            for piece in (content,) if isinstance(content, bytes) else content:
                rest = memoryview(piece)
                while rest:  # the system may take less than it was given
                    written = os.write(handle, rest)
                    if written <= 0:
                        raise OSError(errno.EIO, os.strerror(errno.EIO))
                    rest = rest[written:]
            os.fsync(handle)
        finally:
            os.close(handle)
    return part


def _keep(target: Path, beside: list[Path]) -> Path:
    """Another name for what is there now, or a copy where the file system has no links."""
    name = target.parent / f".{target.name}.{secrets.token_hex(4)}.tmp"
    beside.append(name)
    try:
        os.link(target, name)
    except (OSError, NotImplementedError):
        with _named(target):
            return _write_beside(target, target.read_bytes(), beside)
    return name


def _put_back(target: Path, former: Path | None, part: Path) -> None:
    """Undo a move; one that has not happened, as its part is still there, needs nothing."""
    if part.exists():
        return
    with suppress(OSError):
        if former is None:
            target.unlink()
        else:
            os.replace(former, target)


def _flush_folder(folder: Path) -> None:
    try:
        handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError as error:
        if error.errno in _NO_FOLDER_FLUSH:
            return
        raise
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_FOLDER_FLUSH:
            raise
    finally:
        os.close(handle)
