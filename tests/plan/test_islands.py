"""Groups of layers whose shapes depend on different values."""

from __future__ import annotations

from irload.graph import Node
from irload.plan.islands import MULTIPLYING, islands
from tests.traced.test_tails import detector, experts


def groups_of(nodes: list[Node], selections: str = "NonZero") -> list[list[Node]]:
    """The groups of the layers after the selections, without constants."""
    inner = [n for n in nodes if n.type not in ("Const", "Parameter", "Result", selections)]
    return islands(inner, {o: o.type for n in nodes for o in n.outputs})


def test_each_expert_is_a_group() -> None:
    nodes = experts(count=3, tokens=4).nodes
    groups = groups_of(nodes)
    assert sum(map(len, groups)) == len([n for n in nodes if n.type not in ("Const", "Parameter", "Result", "NonZero")])
    assert [sum(n.type in MULTIPLYING for n in group) for group in groups] == [3, 3, 3, 3], (
        "three experts, and the rest"
    )
    assert [sum(n.type == "ScatterElementsUpdate" for n in group) for group in groups] == [1, 1, 1, 0]


def test_groups_are_in_executable_order() -> None:
    done: set[Node] = set()
    nodes = experts(count=4, tokens=4).nodes
    before = {n for n in nodes if n.type in ("Const", "Parameter", "NonZero")}
    for node in (n for group in groups_of(nodes) for n in group):
        assert {i.node for i in node.inputs} <= done | before
        done.add(node)


def test_one_selection_is_one_group() -> None:
    model = detector()
    first = next(k for k, n in enumerate(model.nodes) if n.type == "NonZero")
    (group,) = islands(
        [n for n in model.nodes[first:] if n.type not in ("Const", "Result")],
        {o: o.type for n in model.nodes for o in n.outputs},
    )
    assert [n.type for n in group].count("MatMul") == 3
