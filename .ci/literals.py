"""The API reference shows the values of a choice in place of its name."""

from typing import Any

import griffe


class ShowChoices(griffe.Extension):
    """Replace a type that names a `Literal`, such as `Kind`, by the `Literal`."""

    def on_attribute(self, *, attr: griffe.Attribute, loader: griffe.GriffeLoader, **_: Any) -> None:
        """Replace the type of a field."""
        attr.annotation = _with_values(attr.annotation, loader)

    def on_function(self, *, func: griffe.Function, loader: griffe.GriffeLoader, **_: Any) -> None:
        """Replace the types of parameters."""
        for parameter in func.parameters:
            parameter.annotation = _with_values(parameter.annotation, loader)


def _with_values(kind: str | griffe.Expr | None, loader: griffe.GriffeLoader) -> str | griffe.Expr | None:
    if isinstance(kind, griffe.ExprBinOp):
        kind.left, kind.right = _with_values(kind.left, loader), _with_values(kind.right, loader)
    if not isinstance(kind, griffe.ExprName):
        return kind
    try:
        named = loader.modules_collection[kind.canonical_path]
        value = getattr(named.final_target if named.is_alias else named, "value", None)
    except (KeyError, griffe.AliasResolutionError, griffe.CyclicAliasError):
        return kind
    is_literal = isinstance(value, griffe.ExprSubscript) and str(value.left) == "Literal"
    return value if is_literal else kind
