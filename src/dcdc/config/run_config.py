"""What a run is: every setting, in one frozen value that is read from files and `section.key`s.

with_values(config, {"heads.epochs": 50, "phases": ("contrast", "heads")})
"""

import dataclasses
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from dcdc.config.keys import HEADS, OF_MAIN_PHASE, flatten, is_tables, kind_of_table, type_of_key
from dcdc.config.phase_settings import PHASES, PhaseSettings, kind_of, phase_names
from dcdc.config.ranges import Range
from dcdc.config.rules import check_config
from dcdc.config.sections import AugmentConfig, DataConfig, NetworkConfig, TrainConfig
from dcdc.config.typed_values import coerce_value, parse_value
from dcdc.errors import InputError


def _heads_alone() -> tuple[PhaseSettings, ...]:
    return (PHASES.get(HEADS)(),)


@dataclass(frozen=True)
class RunConfig:
    n_clusters: Annotated[int | None, Range(2)] = None
    """None: the number of classes, where the images have targets."""
    data: DataConfig = field(default_factory=DataConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    phases: tuple[PhaseSettings, ...] = field(default_factory=_heads_alone)
    """One after the other; those of no epochs are left out."""
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        check_config(self)

    @property
    def phase_names(self) -> tuple[str, ...]:
        return phase_names(self.phases)

    @property
    def main_phase(self) -> str:
        """Whose length and batch `epochs` and `batch_size` are: the one that trains the heads with
        the network, or the first of all."""
        return HEADS if HEADS in self.phase_names else self.phase_names[0]

    @property
    def epochs(self) -> int:
        """Of all phases."""
        return sum(phase.epochs for phase in self.phases)

    @property
    def active_phases(self) -> dict[str, PhaseSettings]:
        """By name: those that train."""
        named = zip(self.phase_names, self.phases, strict=True)
        return {name: phase for name, phase in named if phase.epochs}


# Keys that cannot change what comes out of a run, so a resumed run may change them.
NEUTRAL_KEYS = frozenset(
    f"train.{name}"
    for name in (
        *("device", "capture", "compile"),
        *("checkpoint_every", "keep_checkpoints"),
    )
)


def with_values(config: RunConfig, values: Mapping[str, Any]) -> RunConfig:
    """Flat `section.key` values, checked for name and type, laid over `config`.

    `phases` lists names: those that the config has are kept, others begin with their defaults.
    `epochs` and `batch_size` alone are those of the main phase.
    """
    typed = {key: coerce_value(key, value, type_of_key(key)) for key, value in values.items()}
    phases = config.phases
    if "phases" in typed:
        phases = _phases_named(typed.pop("phases"), config)
    by_section: dict[str, dict[str, Any]] = {}
    for key, value in typed.items():
        section, _, name = key.rpartition(".")
        by_section.setdefault(section, {})[name] = value
    top = by_section.pop("", {})
    names = phase_names(phases)
    of_main = {name: top.pop(name) for name in OF_MAIN_PHASE if name in top}
    if of_main:
        main = dataclasses.replace(config, phases=phases).main_phase
        by_section[main] = of_main | by_section.get(main, {})
    for section, changes in by_section.items():
        if section in names:
            number = names.index(section)
            changed = dataclasses.replace(phases[number], **changes)
            phases = (*phases[:number], changed, *phases[number + 1 :])
        elif hasattr(config, section):
            top[section] = dataclasses.replace(getattr(config, section), **changes)
        else:
            comes_first = not PHASES.get(kind_of(section)).is_scored
            listed = ",".join((section, *names) if comes_first else (*names, section))
            raise InputError(
                f"there is no phase {section} in this recipe ({', '.join(names)})",
                parameter=f"{section}.{next(iter(changes))}",
                remedy=f"list it in {{phases}}, such as {listed}",
            )
    return dataclasses.replace(config, phases=phases, **top)


def _phases_named(names: tuple[str, ...], config: RunConfig) -> tuple[PhaseSettings, ...]:
    kept = dict(zip(config.phase_names, config.phases, strict=True))
    try:
        found = tuple(kept[name] if name in kept else PHASES.get(kind_of(name))() for name in names)
    except InputError as error:
        raise InputError(
            f"has an {error.problem}", parameter="phases", value=",".join(names)
        ) from None
    if phase_names(found) != tuple(names):
        raise InputError(
            "must number phases of one kind in order",
            parameter="phases",
            value=",".join(names),
            remedy=f"write {','.join(phase_names(found))}",
        )
    return found


def with_settings(config: RunConfig, settings: Iterable[str]) -> RunConfig:
    """`section.key=value` as typed on a command line, laid over `config`."""
    return with_values(config, parse_settings(settings))


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise InputError(f"{setting!r} has no value: write section.key=value")
        values[key.strip()] = parse_value(text.strip())
    return values


def read_toml(path: Path) -> dict[str, Any]:
    if path.exists() and not path.is_file():  # a pipe would be waited for
        raise InputError(f"config {path} is no regular file: give a TOML file")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read config {path}: {error.strerror}") from None
    except RecursionError:
        raise InputError(f"config {path} is nested too deep: give sections and values") from None
    except ValueError as error:  # of TOML, of UTF-8, or a number of thousands of digits
        raise InputError(f"config {path} is not valid TOML: {error}") from None


def from_mapping(mapping: Mapping[str, Any], start: RunConfig | None = None) -> RunConfig:
    """A nested mapping (TOML, JSON) laid over `start`.

    Its `phases` may be a list of tables, each with a `kind`: then they are all that there are.
    """
    config, values = start or RunConfig(), dict(mapping)
    if is_tables(values.get("phases")):
        tables = values.pop("phases")
        config = dataclasses.replace(config, phases=tuple(map(_phase_from, tables)))
    return with_values(config, flatten(values))


def _phase_from(table: Any) -> PhaseSettings:
    kind = kind_of_table(table)
    settings = PHASES.get(kind)
    typed = {
        name: coerce_value(f"{kind}.{name}", value, type_of_key(f"{kind}.{name}"))
        for name, value in table.items()
        if name != "kind"
    }
    return settings(**typed)


def check_names_and_types(values: Mapping[str, Any]) -> None:
    """Of values that are laid over a config which is not known yet."""
    for key, value in values.items():
        coerce_value(key, value, type_of_key(key))


def to_mapping(config: RunConfig) -> dict[str, Any]:
    """Nested plain values, fit for JSON."""
    plain = dataclasses.asdict(config)
    plain["phases"] = [{"kind": phase.kind, **dataclasses.asdict(phase)} for phase in config.phases]
    return plain


def flat(config: RunConfig) -> dict[str, Any]:
    """Every value by its `section.key`."""
    return flatten(to_mapping(config))


def differences(ours: RunConfig, theirs: RunConfig) -> dict[str, tuple[Any, Any]]:
    """The keys whose values differ, with both values; neutral keys do not count."""
    left, right = flat(ours), flat(theirs)
    return {
        key: (left.get(key), right.get(key))
        for key in {**left, **right}
        if left.get(key) != right.get(key) and key not in NEUTRAL_KEYS
    }
