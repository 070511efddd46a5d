"""The label column of Parquet: which one it is, and the classes in it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dcdc.data.parquet_files import Shard, first_shard, open_shards, opened
from dcdc.data.path_list import NO_TARGET, unknown_column
from dcdc.errors import InputError
from dcdc.labels import encode_targets
from dcdc.printable import utf8_name

if TYPE_CHECKING:
    import pyarrow as pa


def label_columns(source: Path) -> list[str]:
    """Columns that may be labels; where none stands out, none is taken without being named."""
    return _candidates(first_shard(source).schema)


def label_column_of(source: Path, n_classes: int) -> str | None:
    """The only one with so many classes, where several could be meant and none stands out."""
    shards = open_shards(source)
    if not shards or chosen_label(shards[0].schema, None, source) is not None:
        return None
    counted = [
        name for name in _candidates(shards[0].schema) if _has_classes(shards, name, n_classes)
    ]
    return counted[0] if len(counted) == 1 else None


def chosen_label(schema: "pa.Schema", target: str | None, source: Path) -> str | None:
    """`target`; without it `label` or `labels`, or the only other candidate."""
    if target is None:
        candidates = _candidates(schema)
        for name in ("label", "labels"):
            if name in candidates:
                return name
        return candidates[0] if len(candidates) == 1 else None
    if target in NO_TARGET:
        return None
    if target not in schema.names:
        raise unknown_column(target, schema.names, source)
    kind = schema.field(target).type
    if not _is_label_type(kind):
        others = ", ".join(field.name for field in schema if _is_label_type(field.type))
        raise InputError(
            f"column {target!r} of {source} is of type {kind}: give one of integers, strings or "
            f"booleans ({others or 'there is none'})"
        )
    return target


def read_classes(shards: Sequence[Shard], label: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Codes of all rows, and the classes that occur, in the order of their ClassLabel if any."""
    import pyarrow as pa

    names = _shared_names(shards, label)
    values = pa.concat_arrays([_labels(shard, label, names) for shard in shards])
    encoded = values.dictionary_encode()
    found = encoded.dictionary.to_numpy(zero_copy_only=False)
    codes, class_names = encode_targets(found, f"column {label!r}")
    if names:
        class_names = tuple(names[int(code)] for code in class_names)
    return codes[encoded.indices.to_numpy()], class_names


def _has_classes(shards: Sequence[Shard], label: str, n_classes: int) -> bool:
    try:
        return len(read_classes(shards, label)[1]) == n_classes
    except InputError:  # labels are missing: not this one, unless it is named
        return False


def _candidates(schema: "pa.Schema") -> list[str]:
    return [
        field.name
        for field in schema
        if _is_label_type(field.type)
        and (
            field.name.lower().endswith(("label", "labels"))
            or _class_label_names(schema, field.name) is not None
        )
    ]


def _is_label_type(kind: "pa.DataType") -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = (types.is_integer, types.is_string, types.is_large_string, types.is_boolean)
    return any(test(kind) for test in tests)


def _class_label_names(schema: "pa.Schema", column: str) -> list[str] | None:
    """By Hugging Face's metadata; None where the column is no ClassLabel."""
    try:
        feature = json.loads(schema.metadata[b"huggingface"])["info"]["features"][column]
        if feature["_type"] == "ClassLabel":
            return [utf8_name(str(name)) for name in feature.get("names") or ()]
    except (KeyError, TypeError, ValueError):
        pass
    return None


def _shared_names(shards: Sequence[Shard], label: str) -> list[str]:
    from pyarrow import types

    if not types.is_integer(shards[0].schema.field(label).type):
        return []
    first, *others = (_class_label_names(shard.schema, label) or [] for shard in shards)
    for shard, other in zip(shards[1:], others, strict=True):
        if other != first:
            raise InputError(
                f"{shards[0].path} and {shard.path} name the classes of {label!r} differently: put "
                "them in two folders"
            )
    return first


def _labels(shard: Shard, label: str, names: Sequence[str]) -> "pa.Array":
    """One file's, none of them missing or without its name."""
    from pyarrow import types

    with opened(shard.path) as file:
        values = file.read(columns=[label], use_threads=False).column(0).combine_chunks()
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    # By numpy: a Python number among pyarrow's arguments has it import pandas, for 0.14 s.
    bad = values.is_null().to_numpy(zero_copy_only=False)
    if names:
        codes = values.to_numpy(zero_copy_only=False)
        bad = bad | (codes < 0) | (codes >= len(names))
    if bad.any():
        row = int(bad.argmax())
        fault = (
            f"label {values[row]} is none of its classes" if values[row].is_valid else "no label"
        )
        raise InputError(
            f"{shard.path}, row {row}: {fault} in column {label!r}",
            remedy=("label every image", "use {target=none}"),
        )
    return values
