"""Values as text or files have them, brought to the type that a key wants."""

import tomllib
import types
import typing
from typing import Any, Literal

from dcdc.errors import InputError
from dcdc.nearest_name import nearest


def parse_value(text: str) -> Any:
    """TOML's own reading of a value; bare words are strings."""
    if text.lower() in ("none", "null", ""):
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except RecursionError:
        raise InputError(f"{text[:40]}... is nested too deep: give a number, or some") from None
    except ValueError:  # no TOML, or a number of thousands of digits
        return [parse_value(part.strip()) for part in text.split(",")] if "," in text else text


def coerce_value(key: str, value: Any, kind: Any) -> Any:
    """`value` as a type hint wants it, or one line that says what it must be."""
    origin, options = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in options:
            return None
        kinds = [option for option in options if option is not type(None)]
        words = [option for option in kinds if typing.get_origin(option) is Literal]
        if len(kinds) > 1:  # words, or a list of numbers
            (other,) = (option for option in kinds if option not in words)
            kinds = words if isinstance(value, str) else [other]
        return coerce_value(key, value, kinds[0])
    if origin is Literal:
        if value not in options:
            raise InputError(
                f"is not one of {', '.join(map(str, options))}{nearest(str(value), options)}",
                parameter=key,
                value=value,
            )
        return value
    if origin is tuple:
        if isinstance(value, str) and options[0] is str:
            value = [value]
        if not isinstance(value, list | tuple):
            listed = "texts" if options[0] is str else "numbers, such as 0.2,1.0"
            raise InputError(f"must be a list of {listed}", parameter=key, value=value)
        if Ellipsis not in options and len(value) != len(options):
            problem = f"must hold {len(options)} numbers"
            raise InputError(problem, parameter=key, value=value)
        return tuple(coerce_value(key, part, options[0]) for part in value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind in (int, float) and isinstance(value, bool)):
        raise InputError(f"must be {_word_for(kind)}", parameter=key, value=value)
    return value


def _word_for(kind: type) -> str:
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    return words.get(kind, f"of type {kind.__name__}")
