"""Passes that rewrite matches of patterns, and the manager that runs passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import irload.model
from irload.openvino import adapters
from irload.openvino.errors import raising
from irload.openvino.model import Model
from irload.openvino.node import Node
from irload.openvino.passes.matching import Matcher

__all__ = ["BackwardGraphRewrite", "GraphRewrite", "Manager", "MatcherPass", "ModelPass", "PassBase"]

ROUNDS = 10_000
"""Maximum number of new nodes that are matched while one graph is rewritten, which bounds the time."""


class PassBase:
    """A pass with a name."""

    _name = ""

    def get_name(self) -> str:
        """The name."""
        return self._name or type(self).__name__

    def set_name(self, name: str) -> None:
        """Set the name, which `get_name` returns."""
        self._name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: '{self.get_name()}'>"


class ModelPass(PassBase):
    """A pass on a model. Subclasses define `run_on_model`."""

    def run_on_model(self, model: Model) -> bool | None:
        """Change the model; return True if it was changed."""
        raise NotImplementedError(f"{type(self).__name__} does not define run_on_model")


class MatcherPass(PassBase):
    """A pattern, and a function that rewrites its matches: `callback(matcher)` returns True for a changed graph."""

    def __init__(self, matcher: Matcher | None = None, callback: Callable[[Matcher], Any] | None = None) -> None:
        self._matcher = matcher
        self._callback = callback
        self._new: list[Node] = []

    def register_matcher(self, matcher: Matcher, callback: Callable[[Matcher], Any]) -> None:
        """Set the pattern and the function."""
        self._matcher, self._callback = matcher, callback

    def register_new_node(self, node: Node) -> Node:
        """Match this node, too, which the callback has created. Returns the node."""
        self._new.append(node)
        return node

    def apply(self, node: Node) -> bool:
        """Match one node and rewrite it. True if the function has changed the graph."""
        if self._matcher is None or self._callback is None or not self._matcher.match(node):
            return False
        return bool(self._callback(self._matcher))

    def _take_new(self) -> list[Node]:
        new, self._new = self._new, []
        return new


class GraphRewrite(ModelPass):
    """Runs several MatcherPasses over the nodes of a model, inputs first. The first that matches a node rewrites it."""

    _backward = False

    def __init__(self, matcher_pass: MatcherPass | None = None) -> None:
        self.passes_list = [] if matcher_pass is None else [matcher_pass]

    def add_matcher(self, matcher_pass: MatcherPass) -> MatcherPass:
        """Add a pass. Returns it."""
        self.passes_list.append(matcher_pass)
        return matcher_pass

    def run_on_model(self, model: Model) -> bool:
        """Rewrite the matches. True if the model was changed."""
        pending = model.get_ordered_ops()[:: -1 if self._backward else 1]
        seen = {id(node) for node in pending}
        changed, at = False, 0
        while at < len(pending):
            node = pending[at]
            at += 1
            for matcher in self.passes_list:
                matched = matcher.apply(node)
                changed |= matched
                for new in matcher._take_new():  # noqa: SLF001
                    if id(new) not in seen and len(seen) < ROUNDS + len(pending):
                        seen.add(id(new))
                        pending.insert(at, new)
                if matched:
                    break
        return changed


class BackwardGraphRewrite(GraphRewrite):
    """As GraphRewrite, consumers first."""

    _backward = True


class Manager:
    """Runs passes in order, and infers the model after each pass with changes."""

    def __init__(self) -> None:
        self.passes_list: list[PassBase] = []
        self._validates = True

    def register_pass(self, *passes: Any) -> PassBase:
        """Add a pass. Returns it."""
        added = [p for p in passes if isinstance(p, PassBase)]
        if len(added) != len(passes) or not added:
            raise TypeError("register_pass takes passes, such as Serialize(path) or a ModelPass")
        self.passes_list += added
        return added[-1]

    def set_per_pass_validation(self, new_state: bool) -> None:
        """Whether the model is inferred after each pass."""
        self._validates = new_state

    @raising
    def run_passes(self, model: Model) -> bool:
        """Run the passes on a model. True if one of them has changed it."""
        changed = False
        for item in self.passes_list:
            runner = GraphRewrite(item) if isinstance(item, MatcherPass) else item
            assert isinstance(runner, ModelPass)
            before = adapters.edits()
            result = bool(runner.run_on_model(model))
            changed |= result
            if self._validates and adapters.edits() != before:
                irload.model.infer(model._graph)  # noqa: SLF001
        return changed

    def __repr__(self) -> str:
        return f"<Manager of {len(self.passes_list)} passes>"
