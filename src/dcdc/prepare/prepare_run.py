"""From a source and overrides to a run that is ready to train: the one way for every caller.

prepared = prepare_run("photos/", Overrides({"n_clusters": 12}))
run(prepared.config, prepared.images)
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dcdc.config import DataConfig, RunConfig, from_mapping, to_mapping
from dcdc.data import Data, ImageSet, VectorSet, built_in_name, label_column_of, load_data
from dcdc.data.decoded import Progress
from dcdc.data.load_data import find_data
from dcdc.data.sources import readable
from dcdc.data.vector_rows import Reading
from dcdc.engine.first_epochs import FirstEpochs
from dcdc.metrics.cluster_number import ClusterNumber
from dcdc.networks import find_backbone
from dcdc.prepare.cluster_number import (
    FoundNumber,
    NumberRange,
    by_number,
    count_clusters,
    is_by_classes,
    range_asked_for,
    refuse_range,
)
from dcdc.prepare.overrides import Overrides, recipe_of
from dcdc.prepare.presets import PRESETS
from dcdc.prepare.pretrained_choice import (
    SCRATCH,
    are_photos,
    from_scratch,
    speaks_of_training,
    usual_backbone,
)
from dcdc.prepare.resolve import resolve
from dcdc.prepare.suggestions import has_gpu, largest_side_for, suggest_for
from dcdc.runtime.processes import ALONE, Processes

Read = Callable[[DataConfig, int], Data]
"""Of a config's data, and the largest side that images of any size are brought to."""
Adjust = Callable[[RunConfig, Data], RunConfig]
FindNumber = Callable[[RunConfig, Data, NumberRange], FoundNumber]
"""How many clusters the images settle on, by the features of such a run."""
_LARGEST_SIDE = 512
_UNTIL_FOUND = 10
"""Clusters, of the run whose features are looked at."""
_MOST_TO_GO_ON = 2 * _UNTIL_FOUND
"""Clusters for which that run can go on: for more, batches and the over-clustering head are to be
larger."""


@dataclass(frozen=True)
class Prepared:
    config: RunConfig
    """Resolved."""
    images: Data
    recipe: str | None
    """The preset's name; None: the caller's own recipe, or one that the images suggested."""
    passed_over: str | None = None
    """The preset of the source's own name, where this machine is too slow for it."""
    by_itself: bool = False
    """Whether the pretrained backbone was chosen here, not asked for."""
    number: ClusterNumber | None = None
    """Where the images settled how many clusters there are."""
    first: FirstEpochs | None = None
    """Those of the run that are done already, where they were trained to find the number."""


def prepare_run(
    source: str | Path | Data | Callable[[int], Data],
    overrides: Overrides,
    processes: Processes = ALONE,
    *,
    read: Read | None = None,
    adjust: Adjust | None = None,
    find_number: FindNumber | None = None,
) -> Prepared:
    """The preset that is asked for, or that of the source's own name, or what the images suggest;
    overrides laid over it once; resolved once against the images and the machine.

    `read` loads a source that is no `ImageSet` yet; a source that is a function loads itself, up to
    the side that it is given. `adjust` has the last word before the config is resolved. Of several
    `processes` the first decides. `find_number` is asked where the images are to settle it.
    """
    named = overrides.given.get("network.backbone")
    by_classes, number_range = is_by_classes(overrides), range_asked_for(overrides)
    if find_number is None or processes.joined:
        refuse_range(overrides)
    overrides = by_number(from_scratch(overrides))
    asked = overrides.alone()
    at_hand: Data | None = None
    if isinstance(source, ImageSet | VectorSet):
        at_hand, known_as = source, source.known_as
    elif isinstance(source, str | Path):
        known_as = built_in_name(source)
    else:
        known_as = ""
    chosen, passed_over = choose_recipe(known_as, overrides)
    start = asked if chosen is None else overrides.over(recipe_of(chosen))
    device = start.train.device
    backbone, by_itself = None, False
    if chosen is None:
        backbone, by_itself = choose_backbone(named, overrides)
    data = start.data
    if isinstance(source, str | Path):
        data = with_label_column(replace(data, source=str(source)), start.n_clusters)
        if start.n_clusters is None and number_range is None and not known_as:
            _require_number(data, by_classes=by_classes)

    def read_up_to(side: int) -> Data:
        if at_hand is not None:
            return at_hand
        return source(side) if callable(source) else (read or read_plainly)(data, side)

    images = read_up_to(_largest_side(device, backbone))
    if by_itself and not (isinstance(images, ImageSet) and are_photos(images)):
        backbone, by_itself = None, False
        usual = largest_side_for(device)
        if isinstance(images, ImageSet) and images.side > usual:
            images = read_up_to(usual)
    fine_tune = backbone is not None and overrides.given.get("network.frozen") is False

    def decide(n_clusters: int | None) -> RunConfig:
        config = start
        n_clusters = count_clusters(n_clusters, images, by_classes=by_classes)
        if chosen is None:
            suggested = suggest_for(
                images, n_clusters, device, pretrained=backbone, fine_tune=fine_tune
            )
            config = overrides.over(suggested)
        config = replace(config, data=data, n_clusters=n_clusters)
        if adjust is not None:
            config = adjust(config, images)
        return resolve(config, images, processes.size)

    recipe = chosen if isinstance(chosen, str) else None
    if number_range is None or find_number is None:
        config = config_of_first(processes, lambda: decide(start.n_clusters))
        return Prepared(config, images, recipe, passed_over, by_itself)
    looked_at = decide(min(_UNTIL_FOUND, images.n_images))
    number, first = find_number(looked_at, images, number_range)
    if first is not None and number.number <= _MOST_TO_GO_ON and adjust is None:
        config = resolve(replace(looked_at, n_clusters=number.number), images, processes.size)
    else:
        config, first = decide(number.number), None
    return Prepared(config, images, recipe, passed_over, by_itself, number, first)


def choose_backbone(named: str | None, overrides: Overrides) -> tuple[str | None, bool]:
    """The pretrained backbone that is named, or the usual one where nothing speaks against it; and
    whether it is the latter."""
    if named == SCRATCH:
        return None, False
    if named is not None:
        return (named if find_backbone(named).pretrained else None), False
    if speaks_of_training(overrides.given):
        return None, False
    found = usual_backbone()
    return found, found is not None


def _require_number(data: DataConfig, *, by_classes: bool) -> None:
    """Of a folder, before minutes go into decoding what lies in it."""
    if not Path(data.source).is_dir():
        return
    with readable(data.source):
        found = find_data(data.source, data.size, Reading(data.target, data.column))
    count_clusters(None, found, by_classes=by_classes)


def _largest_side(device: str, backbone: str | None) -> int:
    """Pixels a side that photos of any size are brought to."""
    known = None if backbone is None else find_backbone(backbone).pretrained
    return largest_side_for(device) if known is None else known.size


def choose_recipe(known_as: str, overrides: Overrides) -> tuple[str | RunConfig | None, str | None]:
    """The one asked for, or of the images' own name where this machine is fast enough; and the name
    that was passed over."""
    if overrides.preset is not None:
        return overrides.preset, None
    if known_as not in PRESETS:
        return None, None
    config, given = PRESETS[known_as], overrides.given  # which may name phases of another recipe
    backbone = find_backbone(given.get("network.backbone", config.network.backbone))
    if backbone.suits_cpu or has_gpu(given.get("train.device", config.train.device)):
        return known_as, None
    return None, known_as


def read_plainly(data: DataConfig, largest_side: int, progress: Progress | None = None) -> Data:
    how = how_to_read(data)
    return load_data(data.source, **how, largest_side=largest_side, progress=progress)


def read_again(data: DataConfig) -> Data:
    """What a run has read: its config knows the side that it brought the images to."""
    return read_plainly(data, _LARGEST_SIDE)


def how_to_read(data: DataConfig) -> dict[str, Any]:
    """What `load_data` takes of a config."""
    wanted = asdict(data)
    del wanted["source"], wanted["n_features"]
    return wanted | {"at_least": 2}


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
