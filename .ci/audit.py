"""Look the pinned dependencies up among known vulnerabilities, by pip-audit: `make audit`.

Without the network there is nothing to ask, which is said in one sentence and is not an error.
"""

from __future__ import annotations

import json
import subprocess
import sys

UNREACHABLE = "The service that knows vulnerabilities could not be reached: nothing was audited"


def audit(constraints: str) -> tuple[str, int]:
    """What is to be said of the versions in a file, and the exit code: 1 where one is vulnerable."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", constraints, "--no-deps", "--disable-pip"]
    options = ["--format", "json", "--progress-spinner", "off", "--timeout", "10"]
    found = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    return verdict(found.stdout, found.stderr)


def verdict(output: str, errors: str) -> tuple[str, int]:
    """The same, from what pip-audit has printed."""
    try:
        dependencies = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        why = errors.strip().splitlines()[-1:] or ["it gave no answer"]
        return f"{UNREACHABLE} ({why[0]}).", 0
    known = [entry for entry in dependencies if "skip_reason" not in entry]
    if not known:
        return f"{UNREACHABLE} ({len(dependencies)} versions are not known there).", 0
    lines = [
        f"{entry['name']} {entry['version']}: {found['id']}, mended in "
        f"{', '.join(found['fix_versions']) or 'no version yet'}"
        for entry in known
        for found in entry["vulns"]
    ]
    missing = len(dependencies) - len(known)
    count = f"{len(known)} versions were audited" + (f", {missing} are not known there" if missing else "")
    return "\n".join([*lines, f"{count}: {len(lines)} vulnerabilities."]), min(len(lines), 1)


if __name__ == "__main__":
    said, code = audit(sys.argv[1])
    print(said)
    sys.exit(code)
