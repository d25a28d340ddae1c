"""A plugin for mypy: `CheckedModel.with_fields` takes the fields of its model, with their types, as keywords."""

from collections.abc import Callable, Iterator

from mypy.expandtype import expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import ARG_NAMED_OPT, Var
from mypy.plugin import MethodSigContext, Plugin
from mypy.types import FunctionLike, Instance, Type, TypeVarType, get_proper_type

CHECKED_MODEL = "contracts.base.CheckedModel"


class CheckedChanges(Plugin):
    """Checks calls of `with_fields` as mypy checks a constructor."""

    def get_method_signature_hook(self, fullname: str) -> Callable[[MethodSigContext], FunctionLike] | None:
        """Return the hook for `CheckedModel.with_fields`, whichever model it is called on."""
        return _signature if fullname.endswith(".with_fields") else None


def _signature(context: MethodSigContext) -> FunctionLike:
    model = get_proper_type(context.type)
    if isinstance(model, TypeVarType):
        model = get_proper_type(model.upper_bound)
    if not isinstance(model, Instance) or not model.type.has_base(CHECKED_MODEL):
        return context.default_signature
    fields = dict(_fields(model))
    return context.default_signature.copy_modified(
        arg_types=list(fields.values()), arg_kinds=[ARG_NAMED_OPT] * len(fields), arg_names=list(fields)
    )


def _fields(model: Instance) -> Iterator[tuple[str, Type]]:
    """Yield the fields of a model and its bases by name, with their types in this model."""
    for base in reversed(model.type.mro):
        if not base.fullname.startswith(("pydantic.", "builtins.", "typing.")):
            instance = map_instance_to_supertype(model, base)
            for name, symbol in base.names.items():
                node = symbol.node
                if isinstance(node, Var) and not node.is_classvar and not name.startswith("_") and node.type:
                    yield name, expand_type_by_instance(node.type, instance)


def plugin(version: str) -> type[Plugin]:
    """Return the plugin, for any version of mypy."""
    return CheckedChanges
