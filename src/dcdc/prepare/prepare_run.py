"""From a source and overrides to a run that is ready to train: the one way for every caller.

prepared = prepare_run("photos/", Overrides({"n_clusters": 12}))
run(prepared.config, prepared.images)
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from dcdc.config import DataConfig, RunConfig, from_mapping, to_mapping, with_values
from dcdc.data import ImageSet, built_in_name, label_column_of, load_images
from dcdc.networks import BACKBONES
from dcdc.prepare.overrides import Overrides, recipe_of
from dcdc.prepare.presets import PRESETS
from dcdc.prepare.resolve import resolve
from dcdc.prepare.suggestions import has_gpu, largest_side_for, suggest_for
from dcdc.runtime.processes import ALONE, Processes

Read = Callable[[DataConfig, int], ImageSet]
"""Of a config's data, and the largest side that images of any size are brought to."""


@dataclass(frozen=True)
class Prepared:
    config: RunConfig
    """Resolved."""
    images: ImageSet
    recipe: str | None
    """The preset's name; None: the caller's own recipe, or one that the images suggested."""
    passed_over: str | None = None
    """The preset of the source's own name, where this machine cannot bear it."""


def prepare_run(
    source: str | Path | ImageSet,
    overrides: Overrides,
    processes: Processes = ALONE,
    *,
    read: Read | None = None,
    adjust: Callable[[RunConfig], RunConfig] = lambda config: config,
) -> Prepared:
    """The preset that is asked for, or that of the source's own name, or what the images suggest;
    overrides laid over it once; resolved once against the images and the machine.

    `read` loads a source that is no `ImageSet` yet. `adjust` has the last word before the config is
    resolved. Of several `processes` the first decides.
    """
    asked = overrides.alone()
    known_as = source.known_as if isinstance(source, ImageSet) else built_in_name(source)
    chosen, passed_over = choose_recipe(known_as, overrides)
    start = asked if chosen is None else overrides.over(recipe_of(chosen))
    data = start.data
    if isinstance(source, ImageSet):
        images = source
    else:
        data = with_label_column(replace(data, source=str(source)), start.n_clusters)
        images = (read or read_plainly)(data, largest_side_for(start.train.device))

    def decide() -> RunConfig:
        config = start
        if chosen is None:
            suggested = suggest_for(images, start.n_clusters, start.train.device)
            config = overrides.over(with_values(suggested, overrides.suggested))
        config = replace(config, data=data)
        return resolve(adjust(config), images, processes.size)

    config = config_of_first(processes, decide)
    return Prepared(config, images, chosen if isinstance(chosen, str) else None, passed_over)


def choose_recipe(known_as: str, overrides: Overrides) -> tuple[str | RunConfig | None, str | None]:
    """The one asked for, or of the images' own name where this machine can bear it; and the name
    that was passed over."""
    if overrides.preset is not None:
        return overrides.preset, None
    if known_as not in PRESETS:
        return None, None
    config = overrides.over(PRESETS[known_as])
    if suits_cpu(config) or has_gpu(config.train.device):
        return known_as, None
    return None, known_as


def suits_cpu(config: RunConfig) -> bool:
    return BACKBONES.get(config.network.backbone).suits_cpu


def read_plainly(data: DataConfig, largest_side: int) -> ImageSet:
    wanted = asdict(data)
    return load_images(wanted.pop("source"), **wanted, largest_side=largest_side)


def with_label_column(data: DataConfig, n_classes: int | None) -> DataConfig:
    """Names the labels where no column is named and one alone has as many classes as clusters.

    They are for scores alone; CIFAR-100 on a hub has both 100 classes and 20.
    """
    if data.target is not None or n_classes is None:
        return data
    return replace(data, target=label_column_of(data.source, n_classes))


def config_of_first(processes: Processes, decide: Callable[[], RunConfig]) -> RunConfig:
    if not processes.joined:
        return decide()
    return from_mapping(processes.broadcast_value(lambda: to_mapping(decide())))
