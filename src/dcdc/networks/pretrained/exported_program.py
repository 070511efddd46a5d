"""A `.pt2` program of `torch.export.save`, run operator by operator, as data.

`torch.export.load` would run code that a file holds: it unpickles sample inputs and constants, and
evaluates the texts of symbolic shapes and guards. Here the graph is read as JSON and the weights as
bytes; only torch's own tensor operators (aten) and arithmetic of sizes are run. What else a program
asks for is refused.
"""

import json
import operator
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dcdc.errors import InputError

_DTYPES = {
    1: torch.uint8,
    2: torch.int8,
    3: torch.int16,
    4: torch.int32,
    5: torch.int64,
    6: torch.float16,
    7: torch.float32,
    8: torch.float64,
    12: torch.bool,
    13: torch.bfloat16,
}
_FORMATS = {
    1: torch.contiguous_format,
    2: torch.channels_last,
    3: torch.channels_last_3d,
    4: torch.preserve_format,
}
_ARITHMETIC = re.compile(r"_operator\.(add|sub|mul|floordiv|truediv|mod|neg|pow|getitem)")
"""Of sizes."""
_CHECKS = re.compile(r"torch\.ops\.aten\.(_assert\w*|sym_constrain_range\w*)\.\w+")
"""Of shapes and types that the program was exported with; a shape that fails, fails anyway."""
_FILES = ("from_file",)
"""An operator that opens files."""

Json = dict[str, Any]


class ExportedProgram(nn.Module):
    """The program's weights, its graph, and the loop that runs it: B x 3 x H x W to its output."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        with _Archive(path) as archive:
            program = archive.json("models/model.json")
            self.extra = archive.extra()
            weights = archive.tensors("weights", "weight_")
            constants = archive.tensors("constants", "tensor_")
        graph, signature = program["graph_module"]["graph"], program["graph_module"]["signature"]
        self.nodes: list[Json] = graph["nodes"]
        self.outputs: list[Json] = graph["outputs"]
        self.operators = [_operator(node["target"], path) for node in self.nodes]
        inputs = []
        for spec in signature["input_specs"]:
            ((kind, given),) = spec.items()
            if kind == "user_input":
                inputs.append(given["arg"]["as_tensor"]["name"])
            else:
                self._register(kind, given, weights, constants)
        if len(inputs) != 1:
            raise InputError(f"{path} takes {len(inputs)} inputs, a backbone one: images")
        self.input: str = inputs[0]
        sizes = [each.get("as_int") for each in graph["tensor_values"][self.input]["sizes"]]
        if len(sizes) != 4 or sizes[1] not in (3, None):
            raise InputError(f"{path} does not take images, B x 3 x H x W")
        self.batch: int | None = sizes[0]
        self.side: int | None = sizes[2]

    def _register(self, kind: str, given: Json, weights: Json, constants: Json) -> None:
        if kind not in ("parameter", "buffer", "tensor_constant"):
            raise InputError(f"{self.path} holds {kind.replace('_', ' ')}, which could run code")
        name = given[f"{kind}_name"]
        tensor = weights[name] if name in weights else constants.get(name)
        if tensor is None:
            raise InputError(f"{self.path} holds no tensor {name}")
        if kind == "parameter":
            self.register_parameter(given["arg"]["name"], nn.Parameter(tensor))
        else:
            self.register_buffer(given["arg"]["name"], tensor)

    def forward(self, x: Tensor) -> Tensor:
        values: Json = {
            self.input: x,
            **dict(self.named_parameters()),
            **dict(self.named_buffers()),
        }
        for node, run in zip(self.nodes, self.operators, strict=True):
            if run is None:
                continue
            given = [(each, _value(each["arg"], values, x.device)) for each in node["inputs"]]
            result = run(
                *(value for each, value in given if each.get("kind") != 2),
                **{each["name"]: value for each, value in given if each.get("kind") == 2},
            )
            _store(node["outputs"], result, values)
        first: Tensor = _value(self.outputs[0], values, x.device)
        return first


class _Archive(zipfile.ZipFile):
    """The zip file, whose entries lie in one folder of any name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            super().__init__(path)
        except (zipfile.BadZipFile, OSError):
            raise self._not_a_program() from None
        found = [name for name in self.namelist() if name.endswith("/models/model.json")]
        if len(found) != 1:
            raise self._not_a_program()
        self.folder = found[0].removesuffix("models/model.json")

    def _not_a_program(self) -> InputError:
        return InputError(f"{self.path} is not a program that torch.export.save has written")

    def json(self, name: str) -> Json:
        try:
            found: Json = json.loads(self.read(self.folder + name))
        except (KeyError, ValueError, zipfile.BadZipFile):
            raise self._not_a_program() from None
        return found

    def extra(self) -> dict[str, str]:
        start = f"{self.folder}extra/"
        names = [name for name in self.namelist() if name.startswith(start)]
        return {name.removeprefix(start): self.read(name).decode() for name in names}

    def tensors(self, kind: str, prefix: str) -> dict[str, Tensor]:
        settings = self.json(f"data/{kind}/model_{kind}_config.json")["config"]
        return {name: self._tensor(kind, prefix, each) for name, each in settings.items()}

    def _tensor(self, kind: str, prefix: str, entry: Json) -> Tensor:
        name, meta = entry["path_name"], entry.get("tensor_meta")
        if entry.get("use_pickle") or meta is None or not re.fullmatch(prefix + r"\d+", name):
            raise InputError(f"{self.path} holds a pickle ({name}), which could run code: refused")
        dtype = _DTYPES.get(meta["dtype"])
        if dtype is None:
            raise InputError(f"{self.path} holds {name} in a type of numbers that is not known")
        data = bytearray(self.read(f"{self.folder}data/{kind}/{name}"))
        flat = torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)
        sizes, strides = ([int(n["as_int"]) for n in meta[key]] for key in ("sizes", "strides"))
        return flat.as_strided(sizes, strides, int(meta["storage_offset"]["as_int"])).clone()


def _operator(target: str, path: Path) -> Any:
    """None: a check that is not needed."""
    if _CHECKS.fullmatch(target):
        return None
    tensors = re.fullmatch(r"torch\.ops\.aten\.(\w+)\.(\w+)", target)
    if tensors and tensors[1] not in _FILES:
        found = getattr(getattr(torch.ops.aten, tensors[1], None), tensors[2], None)
        if isinstance(found, torch._ops.OpOverload):
            return found
    arithmetic = _ARITHMETIC.fullmatch(target)
    if arithmetic:
        return getattr(operator, arithmetic[1])
    raise InputError(f"{path} asks for {target}, which is none of torch's tensor operators")


def _value(arg: Json, values: Mapping[str, Any], device: torch.device) -> Any:
    ((kind, given),) = arg.items()
    match kind:
        case "as_none":
            return None
        case "as_tensor":
            return values[given["name"]]
        case "as_tensors":
            return [values[each["name"]] for each in given]
        case "as_optional_tensor":
            return _value(given, values, device)
        case "as_optional_tensors":
            return [_value(each, values, device) for each in given]
        case "as_sym_int" | "as_sym_bool" | "as_sym_float":
            return _number(given, values)
        case "as_sym_ints" | "as_sym_bools" | "as_sym_floats":
            return [_number(each, values) for each in given]
        case "as_scalar_type":
            return _DTYPES[given]
        case "as_memory_format":
            return _FORMATS[given]
        case "as_layout":
            return torch.strided
        case "as_device":
            return device
        case "as_int" | "as_ints" | "as_float" | "as_floats" | "as_bool" | "as_bools" | "as_string":
            return given
    raise InputError(f"the exported program has an argument of the kind {kind}, which is not known")


def _number(given: Json, values: Mapping[str, Any]) -> Any:
    return values[given["as_name"]] if "as_name" in given else next(iter(given.values()))


def _store(outputs: list[Json], result: Any, values: Json) -> None:
    results = result if len(outputs) > 1 else [result]
    for output, value in zip(outputs, results, strict=True):
        ((kind, given),) = output.items()
        if kind == "as_tensors":
            values.update(zip((each["name"] for each in given), value, strict=True))
        elif kind != "as_none":
            values[given.get("as_name") or given.get("name")] = value
