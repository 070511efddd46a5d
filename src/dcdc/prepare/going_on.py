"""Whether a run may go on: with the settings and the images that it began with."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dcdc.config import RunConfig, differences, from_mapping, to_mapping, with_values
from dcdc.data import Data
from dcdc.data.fingerprint import set_fingerprint
from dcdc.engine.checkpoints import CHECKPOINTS, STATE, list_checkpoints
from dcdc.errors import InputError
from dcdc.stored import files

_NEW_RUN = "start a new run by {run}"


def made_with(config: RunConfig, image_set: Data) -> dict[str, Any]:
    """What a checkpoint is of, in plain values."""
    return {"settings": to_mapping(config), "images": set_fingerprint(image_set)}


def require_made_with(run: Path, now: Mapping[str, Any], then: Mapping[str, Any]) -> None:
    """`now` and `then` as `made_with` has them; of 0.1.0, `then` says nothing."""
    if "settings" in then:
        _require_edited_by_nobody(run, from_mapping(now["settings"]), then["settings"])
    images, known = now["images"], then.get("images", now["images"])
    others = [what for what in {**known, **images} if images.get(what) != known.get(what)]
    if others:
        raise InputError(
            f"cannot resume {run}: the source has other {' and '.join(others)} than the run was "
            "trained on",
            remedy=("restore them", _NEW_RUN),
        )


def _require_edited_by_nobody(run: Path, config: RunConfig, then: Mapping[str, Any]) -> None:
    # Where the images lie may change: they are known by themselves.
    elsewhere = {"data.source": config.data.source}
    try:
        before = with_values(from_mapping(then), elsewhere)
    except InputError as error:
        raise InputError(
            f"cannot resume {run}: state.json of its checkpoint has settings that cannot be "
            f"({error})",
            remedy=_NEW_RUN,
        ) from None
    changed = _changed(config, before)
    if changed:
        raise InputError(
            f"cannot resume {run}: its settings were changed since its checkpoint ({changed})",
            remedy=("change them back in its config.json", _NEW_RUN),
        )


def require_images_of(run: Path, names: Sequence[str], image_set: Data) -> None:
    """Refuses others than a finished run was trained on, by their names and, where the run has a
    checkpoint left, by what that says of them."""
    others = [] if list(names) == list(image_set.names) else ["names"]
    if not others and (known := _images_of_checkpoint(run)):
        now = set_fingerprint(image_set)
        others = [what for what in known if what != "classes" and known[what] != now.get(what)]
    if others:
        raise InputError(
            f"the source has other {' and '.join(others)} than {run} was trained on",
            remedy=("restore them", "train a new run on it"),
        )


def _images_of_checkpoint(run: Path) -> dict[str, str]:
    for path in reversed(list_checkpoints(run / CHECKPOINTS)):
        with suppress(InputError):
            state = files.CHECKPOINT_STATE.read(path / STATE)
            return dict(state["extra"].get("made_with", {}).get("images", {}))
    return {}


def require_same_settings(run: Path, config: RunConfig, stored: RunConfig) -> None:
    """As the run has them stored, but for what may change between sessions."""
    changed = _changed(config, stored)
    if changed:
        raise InputError(
            f"cannot resume {run} with another config ({changed})",
            remedy=("drop the change", _NEW_RUN),
        )


def _changed(config: RunConfig, stored: RunConfig) -> str:
    changed = differences(config, stored)
    for key in _longer(config, stored):
        changed.pop(key, None)
    return "; ".join(f"{key} is {new!r}, was {old!r}" for key, (new, old) in changed.items())


def _longer(config: RunConfig, stored: RunConfig) -> list[str]:
    """The key of the last phase's epochs, where it may go on: a constant rate does not know how
    long the run is."""
    ours, theirs = config.active_phases, stored.active_phases
    if not ours or list(ours) != list(theirs):
        return []
    name = list(ours)[-1]
    grows = ours[name].schedule == "constant" and ours[name].epochs > theirs[name].epochs
    return [f"{name}.epochs"] if grows else []
