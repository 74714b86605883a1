"""Builds a wheel for every platform on one machine, zig being the cross compiler, and looks into each.

Usage: python packaging/wheels.py [FOLDER] [NAME ...], where build, lief, scikit-build-core, wheel and ziglang
are installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import lief
import wheel_contents

#: Name of a platform: zig's target, the system as CMake names it, the processor, and the wheel's tag.
PLATFORMS = {
    "linux-x86_64": (
        "x86_64-linux-gnu.2.17",
        "Linux",
        "x86_64",
        "manylinux_2_17_x86_64.manylinux2014_x86_64",
    ),
    "linux-aarch64": (
        "aarch64-linux-gnu.2.17",
        "Linux",
        "aarch64",
        "manylinux_2_17_aarch64.manylinux2014_aarch64",
    ),
    "macos-arm64": ("aarch64-macos.11.0", "Darwin", "arm64", "macosx_11_0_arm64"),
    "macos-x86_64": ("x86_64-macos.11.0", "Darwin", "x86_64", "macosx_11_0_x86_64"),
    "windows-x86_64": ("x86_64-windows-gnu", "Windows", "AMD64", "win_amd64"),
}
ROOT = Path(__file__).parents[1]


def build(name: str, folder: Path) -> Path:
    """Build the wheel of one platform."""
    target, system, processor, tag = PLATFORMS[name]
    arguments = [
        f"-DCMAKE_SYSTEM_NAME={system}",
        f"-DCMAKE_SYSTEM_PROCESSOR={processor}",
        "-DCMAKE_C_COMPILER_WORKS=1",
        f"-DCMAKE_C_COMPILER_TARGET={target}",
    ]
    with tempfile.TemporaryDirectory() as place:
        environment = os.environ | {
            "CC": f"{sys.executable} -m ziglang cc -target {target}",
            "SKBUILD_CMAKE_ARGS": ";".join(arguments),
            "SKBUILD_BUILD_DIR": str(ROOT / "build" / "wheels" / name),
        }
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", place, str(ROOT)]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        [wheel] = Path(place).glob("*.whl")
        tagging = [sys.executable, "-m", "wheel", "tags", "--remove", "--platform-tag", tag, str(wheel)]
        subprocess.run(tagging, check=True, stdout=subprocess.DEVNULL)
        [wheel] = Path(place).glob("*.whl")
        return Path(wheel.replace(folder / wheel.name))


def main() -> None:
    lief.logging.disable()
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or PLATFORMS:
        wheel = build(name, folder)
        print(wheel_contents.describe(wheel), flush=True)
        if wrong := wheel_contents.faults(wheel):
            sys.exit(f"{wheel.name}: {'; '.join(wrong)}")


if __name__ == "__main__":
    main()
