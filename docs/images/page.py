"""The picture of a report that the README shows: ``python docs/images/page.py``, which needs Chromium.

Browsers and fonts differ, so `make figures` does not write it again.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from opgrow import HeMLGOPClassifier

#: Width and height of the part that is shown, in pixels.
_SIZE = 1200, 1500


def main(picture: Path) -> None:
    """Grow a network, write its report, and take a picture of the top of it."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    y = y.rename("cultivar")
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    clf = HeMLGOPClassifier(random_state=0).fit(X_train, y_train)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "wine.html"
        clf.report(page, X_test, y_test)
        options = [
            "--headless",
            "--hide-scrollbars",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
        ]
        size = f"--window-size={_SIZE[0]},{_SIZE[1]}"
        subprocess.run(
            [
                "chromium",
                *options,
                f"--user-data-dir={folder}/user",
                size,
                f"--screenshot={picture}",
                page.as_uri(),
            ],
            check=True,
            stderr=subprocess.DEVNULL,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png")).resolve())
