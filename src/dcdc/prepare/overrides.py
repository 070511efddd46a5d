"""What a person asks for, over whatever recipe is taken."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dcdc.config import PHASES, RunConfig, check_names_and_types, flat, from_mapping, with_values
from dcdc.config.keys import flatten
from dcdc.config.phase_settings import kind_of
from dcdc.data.sources import same_source
from dcdc.networks import find_backbone
from dcdc.prepare.presets import preset


@dataclass(frozen=True)
class Overrides:
    """`mapping` is a whole config file's, and `values`, flat by `section.key`, win over it."""

    values: Mapping[str, Any] = field(default_factory=dict)
    preset: str | RunConfig | None = None
    """A named recipe, or one of the caller's own; None: that of the images."""
    mapping: Mapping[str, Any] = field(default_factory=dict)

    @property
    def given(self) -> dict[str, Any]:
        """Every value that was asked for, flat."""
        return {**flatten(self.mapping), **self.values}

    def without(self, key: str) -> "Overrides":
        section, _, name = key.rpartition(".")
        mapping = dict(self.mapping)
        inside = mapping if not section else dict(mapping.get(section, {}))
        inside.pop(name, None)
        if section in mapping:
            mapping[section] = inside
        values = {other: value for other, value in self.values.items() if other != key}
        return replace(self, values=values, mapping=mapping)

    def over(self, config: RunConfig) -> RunConfig:
        return with_values(from_mapping(self.mapping, config), self.values)

    def alone(self) -> RunConfig:
        """Over defaults, or over the preset: refuses what cannot be before images are read."""
        config = self._over_defaults() if self.preset is None else self.over(recipe_of(self.preset))
        find_backbone(config.network.backbone)
        return config

    def _over_defaults(self) -> RunConfig:
        plain = {key: value for key, value in self.given.items() if key != "phases"}
        check_names_and_types(plain)
        sections = (key.rpartition(".")[0] for key in plain)
        kinds = [kind_of(section) for section in sections]
        start = RunConfig()
        mentioned = [kind for kind in dict.fromkeys(kinds) if kind in PHASES.names()]
        others = tuple(PHASES.get(kind)() for kind in mentioned if kind != "heads")
        return self.over(replace(start, phases=(*start.phases, *others)))


def recipe_of(chosen: str | RunConfig) -> RunConfig:
    return preset(chosen) if isinstance(chosen, str) else chosen


def again(stored: RunConfig, overrides: Overrides) -> RunConfig:
    """Overrides given once more for a run that is resumed: they must say the same, but for what may
    change; what a preset leaves open the run has filled in."""
    if overrides.preset is not None:
        values = flat(recipe_of(overrides.preset))
        stored = with_values(stored, {k: v for k, v in values.items() if v not in (None, "")})
    asked = overrides.over(stored)
    if same_source(asked.data.source, stored.data.source):
        asked = with_values(asked, {"data.source": stored.data.source})
    return asked
