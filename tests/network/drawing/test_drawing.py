"""The drawing of a network: every neuron is there and named, whatever the network looks like."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from opgrow import PERCEPTRON, Block, Layer, Network, OperatorSet, operator_sets
from opgrow.network.drawing.layout import places_of
from opgrow.report import draw

SVG = "{http://www.w3.org/2000/svg}"
GAUSSIAN = OperatorSet("gaussian", "maximum", "tanh")


def network(n_inputs=3, n_outputs=2, widths=((4, 2),), operator_set=PERCEPTRON, **options):
    layers, width = [], n_inputs
    for blocks in widths:
        layers.append(Layer([Block(width, n, operator_set) for n in blocks]))
        width = sum(blocks)
    return Network(n_inputs, n_outputs, layers, **options)


def marks(drawing):
    """Tag, colour and title of every mark, in the order of the columns."""
    root = ElementTree.fromstring(drawing.svg)
    result = []
    for parent in root.iter():
        for mark in parent.findall("*[@class='mark']"):
            colour = mark.get("fill") or parent.get("fill")
            result.append((mark.tag.removeprefix(SVG), colour, mark.find(f"{SVG}title").text))
    return result


def texts(drawing):
    return ["".join(text.itertext()) for text in ElementTree.fromstring(drawing.svg).iter(f"{SVG}text")]


def test_every_neuron_is_a_mark_in_the_colour_of_its_operator_set():
    blocks = [Block(3, 4, PERCEPTRON), Block(3, 2, GAUSSIAN), Block(3, 5, PERCEPTRON)]
    drawing = draw(Network(3, 2, [Layer(blocks)]))
    hidden = [mark for mark in marks(drawing) if "layer 1" in mark[2]]
    assert len(hidden) == 11
    colours = {said.split("\n")[0]: colour for _, colour, said in hidden}
    assert set(colours) == {"multiplication / sum / sigmoid", "gaussian / maximum / tanh"}
    assert len(set(colours.values())) == 2
    assert all(colour == colours[said.split("\n")[0]] for _, colour, said in hidden)
    legend = [text for text in texts(drawing) if " / " in text]
    assert re.sub(" +", " ", legend[0]) == "A multiplication / sum / sigmoid 9 neurons"
    assert re.sub(" +", " ", legend[1]) == "B gaussian / maximum / tanh 2 neurons"


def test_a_neuron_says_where_it_is_and_what_it_listens_to():
    net = network(operator_set=GAUSSIAN)
    block = list(net.layers[0])[1]
    block.weight[:] = 0.1
    block.weight[1, 0] = -0.75
    net.head.weight[:] = 0.0
    net.head.weight[4, 1] = 2.5
    said = [
        text for _, _, text in marks(draw(net, feature_names=["a", "b", "c"], output_names=["no", "yes"]))
    ]
    [result] = [text for text in said if "block 2, neuron 1 of 2" in text]
    assert result.split("\n") == [
        "gaussian / maximum / tanh",
        "layer 1, block 2, neuron 1 of 2",
        "3 inputs, bias, batch norm",
        "largest weight: b (-0.75)",
        "largest head weight: yes (+2.5)",
    ]


def test_the_head_weights_of_a_broad_network_are_those_of_the_layer():
    net = network(widths=((2,), (3,)), broad=True)
    net.head.weight[:] = 0.0
    net.head.weight[3, 0] = -1.5  # the second neuron of the second layer
    said = [text for _, _, text in marks(draw(net)) if "layer 2, block 1, neuron 2 of 3" in text]
    assert said[0].endswith("largest head weight: output 1 (-1.5)")
    assert "largest weight: neuron" in said[0]
    assert "largest head weight" in next(t for _, _, t in marks(draw(net)) if "layer 1, block 1" in t)
    deep = draw(network(widths=((2,), (3,))))
    assert "largest head weight" not in next(t for _, _, t in marks(deep) if "layer 1, block 1" in t)


def test_few_inputs_and_outputs_have_their_names_and_many_are_summarised():
    names = [f"feature {i}" for i in range(24)]
    few = draw(network(24, 3), feature_names=names, output_names=["x", "y", "z"])
    assert {*names, "x", "y", "z"} <= set(texts(few))
    assert sum(tag == "rect" for tag, _, _ in marks(few)) == 24
    names = [f"feature {i}" for i in range(1024)]
    many = draw(network(1024, 102), feature_names=names, output_names=[f"class {i}" for i in range(102)])
    [bar] = [said for tag, _, said in marks(many) if tag == "rect"]
    assert bar.startswith("1,024 inputs: feature 0, feature 1,")
    assert bar.endswith("and 1,012 more")
    outputs = [said for _, _, said in marks(many) if "head: linear" in said]
    assert len(outputs) == 102
    assert outputs[101].startswith("class 101\n")
    assert "1,024" in texts(many)


def test_the_operators_of_a_head_are_shown():
    drawing = draw(network(head_operators=GAUSSIAN))
    colours = {said: colour for _, colour, said in marks(drawing)}
    heads = {colour for said, colour in colours.items() if said.startswith("head: gaussian")}
    hidden = {colour for said, colour in colours.items() if "layer 1" in said}
    assert len(heads) == len(hidden) == 1
    assert heads != hidden
    assert any("2 outputs" in text and text.startswith("B") for text in texts(drawing))


@pytest.mark.parametrize(
    "net",
    [
        network(1, 1, widths=((1,),)),
        network(2, 2, widths=()),
        network(8, 2, widths=(((40, 20) * 10),)),
        network(5, 3, widths=((10,) * 30, (20,) * 15), broad=True),
        network(1024, 102, widths=((200,), (200,), (200,))),
        network(3, 500, widths=((3000,),)),
        network(2, 2, widths=((5,),) * 25),
    ],
    ids=lambda net: net.topology()[:20],
)
def test_neither_neurons_nor_blocks_nor_columns_overlap(net):
    members = None
    if len(net.layers) == 1 and len(list(net.layers[0])) == 20:
        members = [i // 2 + 1 for i in range(20)]
    places = places_of(net, 50, members)
    boxes = [placed.box for column in places.layers for placed in column.blocks]
    for i, a in enumerate(boxes):
        assert a.y > 40  # below the names of columns
        for b in boxes[:i]:
            assert a.right <= b.x or b.right <= a.x or a.bottom <= b.y or b.bottom <= a.y
    for column in places.layers:
        for placed in column.blocks:
            x, y = np.array(placed.dots).T
            assert placed.box.x <= x.min()
            assert x.max() <= placed.box.right
            assert placed.box.y + 10 < y.min()
            assert y.max() <= placed.box.bottom
            assert len({*placed.dots}) == placed.block.n_neurons
    columns = [places.inputs, *(column.outline for column in places.layers), places.head]
    assert all(a.right + 40 < b.x for a, b in pairwise(columns))
    drawn = ElementTree.fromstring(draw(net, members=members).svg)
    width, height = map(float, drawn.get("viewBox").split()[2:])
    assert places.head.right < width
    assert places.bottom < height
    assert sum("layer" in said for *_, said in marks(draw(net))) == sum(
        layer.n_neurons for layer in net.layers
    )


def test_networks_of_an_average_stand_apart():
    drawing = draw(network(widths=((4, 2, 4, 3),)), members=[1, 1, 2, 3])
    assert {"network 1", "network 2", "network 3"} <= set(texts(drawing))
    assert sum("network 1, layer 1" in said for *_, said in marks(drawing)) == 6


def test_every_operator_set_has_a_key_of_its_own():
    sets = list(operator_sets())[:60]
    net = Network(3, 2, [Layer([Block(3, 1, operator_set) for operator_set in sets])])
    keys = [text.split()[0] for text in texts(draw(net)) if " / " in text]
    assert len(set(keys)) == 60
    assert keys[:2] == ["A", "B"]
    assert keys[26:28] == ["AA", "AB"]


def test_names_are_escaped_and_counted():
    evil = "</title><script>alert('1')</script>"
    drawing = draw(network(), feature_names=[evil] * 3, output_names=[evil] * 2)
    assert "<script>" not in drawing.svg
    assert any(said.startswith(evil) for *_, said in marks(drawing))
    with pytest.raises(ValueError, match=r"feature_names must have 3 names, one for each, got 2"):
        draw(network(), feature_names=["a", "b"])
    with pytest.raises(ValueError, match=r"output_names must have 2 names"):
        draw(network(), output_names=["a"])


def test_a_drawing_can_be_saved_as_svg_alone(tmp_path):
    drawing = draw(network())
    drawing.save(tmp_path / "net.svg")
    saved = (tmp_path / "net.svg").read_text()
    assert "prefers-color-scheme" in saved
    root = ElementTree.fromstring(saved)
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    assert len(list(ElementTree.fromstring(saved).iter(f"{SVG}circle"))) == drawing.svg.count("<circle")
    with pytest.raises(ValueError, match=r"ends in \.svg, got '.*net\.png'"):
        drawing.save(tmp_path / "net.png")
    assert [path.name for path in tmp_path.iterdir()] == ["net.svg"]


def test_notebooks_show_networks():
    net = network()
    assert draw(net).svg in net._repr_html_()
    assert draw(net)._repr_svg_() == draw(net).svg
    assert repr(draw(net)) == "Drawing(3-6-2)"
