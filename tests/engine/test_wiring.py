"""What blocks and heads read: all of a layer, all layers, or what belongs to their network of an average."""

import pytest

from opgrow.engine.wiring import Span, block_spans, check_members, head_spans, joined

WIDTHS = [[3, 2, 4, 1], [5, 2, 2], [6]]
#: One network with a block in one layer, one with three layers, one with two.
MEMBERS = ((1,), (2, 1, 1), (1, 2))


def test_blocks_read_the_whole_layer_before():
    assert block_spans(7, [[3, 2], [4]], None) == [[Span(-1, 0, 7)] * 2, [Span(0, 0, 5)]]


def test_a_head_sees_the_last_layer_or_all_of_them():
    assert head_spans([[3, 2], [4]], None, broad=False) == [Span(1, 0, 4)]
    assert head_spans([[3, 2], [4]], None, broad=True) == [Span(0, 0, 5), Span(1, 0, 4)]
    assert head_spans([], None, broad=True) == []


def test_blocks_of_an_average_read_the_features_of_their_own_network():
    first, second, third = block_spans(7, WIDTHS, MEMBERS)
    assert first == [Span(-1, 0, 7)] * 4
    assert second == [Span(0, 3, 9), Span(0, 9, 10), Span(0, 9, 10)]
    assert third == [Span(1, 0, 5)]


def test_the_head_of_an_average_sees_the_last_layer_of_each_network():
    assert head_spans(WIDTHS, MEMBERS, broad=False) == [Span(0, 0, 3), Span(2, 0, 6), Span(1, 5, 9)]


def test_an_average_of_networks_with_one_layer_is_like_any_layer():
    members = ((1,), (2,), (1,))
    assert block_spans(7, WIDTHS[:1], members) == block_spans(7, WIDTHS[:1], None)
    assert head_spans(WIDTHS[:1], members, False) == head_spans(WIDTHS[:1], None, False)


def test_only_neighbours_of_one_layer_are_joined():
    assert joined([Span(0, 0, 2), Span(0, 2, 3), Span(1, 3, 4), Span(1, 5, 6)]) == [
        Span(0, 0, 3),
        Span(1, 3, 4),
        Span(1, 5, 6),
    ]


@pytest.mark.parametrize(
    ("members", "broad", "message"),
    [
        (MEMBERS, True, "a broad network is no average"),
        ((), False, "must be the blocks of each layer"),
        (((1,), ()), False, "must be the blocks of each layer"),
        (((1, 0), (1,)), False, "must be the blocks of each layer"),
        (((1,), (2, 1, 1), (1, 1)), False, r"members have \[4, 2, 1\] blocks .* has \[4, 3, 1\]"),
        (((1,), (2, 1), (1, 2)), False, "members have"),
    ],
)
def test_members_have_all_blocks_between_them(members, broad, message):
    check_members(WIDTHS, MEMBERS, broad=False)
    with pytest.raises(ValueError, match=message):
        check_members(WIDTHS, members, broad)
