"""The data sets of the HeMLGOP paper, and which of them our figures may be compared on."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DATASETS", "PublishedDataset", "Split"]


@dataclass(frozen=True)
class Split:
    """Parts of the rows; None where the data set comes with a partition of its own."""

    train: float | None
    validation: float | None
    test: float | None
    how: str


@dataclass(frozen=True)
class PublishedDataset:
    """A data set of the paper, and whether our figures may be compared with the published ones.

    ``size`` is the paper's group, "small" below 2,000 samples and "large" above. ``local`` is the name under
    which the benchmarks know the same samples, though perhaps with other inputs: only where ``comparable`` is
    true are the inputs the paper's. ``reason`` says why, or why not.
    """

    name: str
    title: str
    size: str
    samples: int
    inputs: int
    classes: int
    representation: str
    split: Split
    local: str | None
    comparable: bool
    reason: str
    note: str = ""


_TWO_PARTS = Split(0.6, 0.0, 0.4, "60 % for training, 40 % for testing")
_GIVEN = Split(None, None, None, "the partition that comes with the data set")
_THREE_PARTS = Split(0.6, 0.2, 0.2, "random: 60 % for training, 20 % for validation, 20 % for testing")

_ORIGINAL = "as the database has them"
_VIDEO = "five action descriptors of each video, joined by a multi-channel kernel and reduced by kernel PCA"
_VGG = "last convolution of a VGG network trained on ILSVRC2012, averaged over space"
_VGGFACE = "features of the VGGface network"

_SAME = (
    "The rows, inputs and classes are those of the same public table; which rows were tested is unpublished."
)
_GIST = "The images are the same, but the paper has VGG features of them and the local file GIST descriptors."
_ABSENT = "The benchmarks have neither this data set nor the paper's features of it."
_TESTED = (
    "The accuracies suggest a test part of 33 %, not 40 %: within 0.01 points, {fitting} of 8 are whole "
    "numbers of {rows} rows, which is 33 % of every class, rounded; no other size up to half the rows fits "
    "more than 4."
)

DATASETS = {
    row.name: row
    for row in (
        PublishedDataset(
            *("pima", "PIMA", "small", 768, 8, 2, _ORIGINAL, _TWO_PARTS, "pima", True, _SAME),
            note=_TESTED.format(fitting=7, rows=253),
        ),
        PublishedDataset(
            *("olympic_sports", "Olympic Sports", "small", 774, 100, 16, _VIDEO, _GIVEN, None, False, _ABSENT)
        ),
        PublishedDataset(
            *("hollywood3d", "Holywood3d", "small", 945, 100, 14, _VIDEO, _GIVEN, None, False, _ABSENT),
            note="Printed Holywood3d and Holywood3D; the data set is called Hollywood3D.",
        ),
        PublishedDataset(
            *("cmc", "CMC", "small", 1473, 9, 3, _ORIGINAL, _TWO_PARTS, "cmc", True, _SAME),
            note=_TESTED.format(fitting=6, rows=487)
            + " The text cites the source of Olympic Sports for it, the table the right one.",
        ),
        PublishedDataset(
            *("yeast", "YEAST", "small", 1484, 8, 10, _ORIGINAL, _TWO_PARTS, "yeast", True, _SAME),
            note=_TESTED.format(fitting=6, rows=493),
        ),
        PublishedDataset(
            *(
                "scene15",
                "15 scenes",
                "large",
                4485,
                512,
                15,
                _VGG,
                _THREE_PARTS,
                "scene15_gist512",
                False,
                _GIST,
            )
        ),
        PublishedDataset(
            *("mit_indoor", "MIT indoor", "large", 15620, 512, 67, _VGG, _THREE_PARTS, None, False, _ABSENT)
        ),
        PublishedDataset(
            *("caltech101", "Caltech101", "large", 9145, 512, 102, _VGG, _THREE_PARTS),
            *("caltech101_gist512", False, _GIST),
            note="Printed 9145; the data set has 9144 images.",
        ),
        PublishedDataset(
            *("caltech256", "Caltech256", "large", 30607, 512, 257, _VGG, _THREE_PARTS, None, False, _ABSENT)
        ),
        PublishedDataset(
            *("pubfig", "PubFig", "large", 13002, 512, 83, _VGGFACE, _THREE_PARTS, None, False, _ABSENT)
        ),
        PublishedDataset(
            *("cfw60k", "CFW60k", "large", 60000, 512, 500, _VGGFACE, _THREE_PARTS, None, False, _ABSENT),
            note="CFW in the text.",
        ),
    )
}
