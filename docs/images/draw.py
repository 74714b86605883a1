"""Draw the network that `HeMLGOPClassifier(random_state=0)` grows on the digits, as docs/images/digits.svg.

Run with: python docs/images/draw.py
"""

from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from opgrow import HeMLGOPClassifier

COLOURS = ("#4063d8", "#389826", "#cb3c33", "#9558b2", "#e69f00", "#17becf", "#8c564b", "#e377c2", "#7f7f7f")
WIDTH, STEP = 900, 13


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    clf = HeMLGOPClassifier(random_state=0).fit(X_train, y_train)
    network = clf.network_
    title = (
        f"digits: {network.topology()}, {network.n_parameters():,} parameters, "
        f"test accuracy {100 * clf.score(X_test, y_test):.1f} %"
    )
    Path(__file__).with_name("digits.svg").write_text(draw(network, title))


def draw(network, title: str) -> str:
    """Every neuron as a dot, in the colour of its operator set, blocks side by side in rows of 40."""
    names = list(dict.fromkeys(str(b.operator_set) for layer in network.layers for b in layer))
    colour = dict(zip(names, COLOURS * 20, strict=False))
    parts, top = [text(20, 28, title, 17)], 64
    rows = [("input", ["#bbbbbb"] * network.n_inputs)]
    for number, layer in enumerate(network.layers, 1):
        dots = [colour[str(b.operator_set)] for b in layer for _ in range(b.n_neurons)]
        rows.append((f"layer {number}", dots))
    rows.append(("output", ["#777f8c"] * network.n_outputs))
    for label, dots in rows:
        lines = [dots[i : i + 50] for i in range(0, len(dots), 50)]
        parts.append(text(20, top + 5, label, 14))
        for line in lines:
            parts += [
                f'<circle cx="{110 + STEP * i}" cy="{top}" r="4.6" fill="{c}"/>' for i, c in enumerate(line)
            ]
            top += STEP
        top += 26
    for i, name in enumerate(names):
        x, line = 110 + 260 * (i % 3), top + 22 * (i // 3)
        parts.append(
            f'<circle cx="{x}" cy="{line - 5}" r="5" fill="{colour[name]}"/>' + text(x + 12, line, name, 13)
        )
    height = top + 22 * ((len(names) + 2) // 3) + 4
    style = "<style>text{font-family:sans-serif;fill:#777f8c}</style>"  # readable on white and on black
    body = "\n".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">{style}\n{body}\n</svg>\n'


def text(x: int, y: int, words: str, size: int) -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}">{words}</text>'


if __name__ == "__main__":
    main()
