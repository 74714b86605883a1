"""Fits every estimator on aarch64, emulated by qemu, and compares the networks with those of this machine.

Debian's Python for arm64 and the wheels of its dependencies are unpacked into build/aarch64; nothing but qemu
is installed on the system. ``make aarch64`` runs it, on Debian, and as root where qemu is missing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "build" / "aarch64"
FITS = Path(__file__).with_name("every_estimator.py")
#: Python itself, and what the compiled parts of its packages are linked with.
PACKAGES = ("python3-minimal", "libpython3-stdlib", "libstdc++6", "libgomp1")
#: Tags of the wheels that run on Debian 12 and later.
PLATFORMS = [f"manylinux_2_{minor}_aarch64" for minor in range(17, 37)] + ["manylinux2014_aarch64"]


def run(*command: str | Path, **variables: str) -> str:
    """What a command prints."""
    done = subprocess.run(command, env=os.environ | variables, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def install_qemu() -> None:
    if shutil.which("qemu-aarch64") is None:
        run("apt-get", "-qq", "update")
        run("apt-get", "-qq", "install", "--no-install-recommends", "--yes", "qemu-user")


def unpack_python() -> Path:
    """Debian's Python for arm64, with the C library, in a folder of its own: the program."""
    system, apt = PLACE / "system", PLACE / "apt"
    if not system.exists():
        for folder in ("state/lists/partial", "cache/archives/partial"):
            (apt / folder).mkdir(parents=True, exist_ok=True)
        (apt / "status").touch()
        # A list of packages of its own, in which nothing is installed: all that they need is fetched as well.
        options = {
            "APT::Architecture": "arm64",
            "APT::Architectures::": "arm64",
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "root",
            "Dir::State": apt / "state",
            "Dir::State::status": apt / "status",
            "Dir::Cache": apt / "cache",
        }
        command = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
        run(*command, "update")
        run(*command, "install", "--download-only", "--yes", *PACKAGES)
        unpacked = PLACE / "unpacked"
        shutil.rmtree(unpacked, ignore_errors=True)
        for package in sorted((apt / "cache" / "archives").glob("*.deb")):
            run("dpkg-deb", "--extract", package, unpacked)
        unpacked.rename(system)
    return (system / "usr" / "bin" / "python3").resolve()


def install(wheel: Path, version: str) -> Path:
    """The wheel and what it needs, for that version of Python: the folder."""
    site = PLACE / "site"
    shutil.rmtree(site, ignore_errors=True)
    options = ["--quiet", "--target", site, "--no-compile", "--constraint", ROOT / "constraints.txt"]
    foreign = [
        "--only-binary=:all:",
        "--python-version",
        version,
        *(f"--platform={tag}" for tag in PLATFORMS),
    ]
    run(sys.executable, "-m", "pip", "install", *options, *foreign, wheel)
    return site


def main() -> None:
    install_qemu()
    python = unpack_python()
    run(sys.executable, ROOT / "packaging" / "wheels.py", PLACE / "dist", "linux-aarch64")
    [wheel] = (PLACE / "dist").glob("*.whl")
    site = install(wheel, python.name.removeprefix("python"))
    here = json.loads(run(sys.executable, FITS, "fits", "1"))
    emulated = ["qemu-aarch64", "-L", PLACE / "system", python, FITS, "fits", "1"]
    there = json.loads(run(*emulated, PYTHONPATH=str(site)))
    for name, digest in here.items():
        print(f"{name:18} {digest}", "the same" if digest == there[name] else f"{there[name]} on aarch64")
    if here != there:
        sys.exit("the networks of aarch64 differ from those of this machine")


if __name__ == "__main__":
    main()
