"""The command: ``PYTHONPATH=docs python -m figures`` writes what differs, and says what that is."""

from __future__ import annotations

from opgrow.common.atomic import write_atomically

from . import all_figures, explanations, shown
from .marks import PAGES, ROOT, filled


def main() -> None:
    """Fill in all pages and write all files."""
    figures = all_figures()
    drawn = explanations.drawings() | shown.drawings()
    texts = {ROOT / name: text for name, text in (*figures.files.items(), *drawn.items())}
    for page in PAGES:
        before = texts.get(page)
        texts[page] = filled(page.read_text(encoding="utf-8") if before is None else before, figures)
    for path, text in texts.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_atomically(path, text.encode())
            print(f"written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
