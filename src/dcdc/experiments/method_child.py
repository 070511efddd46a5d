"""One method, one seed, in a process of its own: a peak of memory, and a crash, are its own too.

`python -m dcdc.experiments.method_child`, with the job as a line of JSON on stdin. Stdout carries
events, a line each; stdin stays open as long as the parent lives.
"""

import json
import math
import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch

from dcdc.data import Data, VectorSet, load_data
from dcdc.engine.history import write_history
from dcdc.engine.observer import Observer, PassingObserver
from dcdc.errors import InputError, Interrupted, TrainingError, out_of_means
from dcdc.experiments.method_process import Relay
from dcdc.experiments.method_runs import ENGINE_CHANGES, ERRORS, METHOD_FOLDER
from dcdc.methods import Clustering, Context, Method
from dcdc.metrics import partition_health, score
from dcdc.networks.feature_vectors import VECTORS
from dcdc.prepare.frozen_features import with_vectors
from dcdc.report.reproduce import setting_text
from dcdc.run import data_shape, target_names
from dcdc.run_folder import RUN_FOLDER, RunFolder
from dcdc.runtime.device import describe_device, pick_device
from dcdc.runtime.environment import own_commit, own_version, peak_gpu_memory_mb, peak_memory_mb


def main() -> None:
    job = json.loads(sys.stdin.buffer.readline())
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no event
    threading.Thread(target=_leave_with_the_parent, daemon=True).start()
    relay = Relay(events)
    try:
        carry_out(job, relay)
    except Interrupted as stopped:
        relay.send("stopped", signal=stopped.signal)
    except KeyboardInterrupt:
        relay.send("stopped", signal="SIGINT")
    except InputError as error:
        relay.send("refused", parts=error.within(job["asked"]["method"]).parts())
    except OSError as error:
        relay.send("refused", parts={"problem": str(error)})
    except TrainingError as error:
        relay.send("failed", parts=error.within(job["asked"]["method"]).parts())
    except (MemoryError, RuntimeError) as error:
        known = out_of_means(error)
        if known is None:
            raise
        relay.send("refused", parts=known.parts())
    else:
        relay.send("done")


def carry_out(job: Mapping[str, Any], observer: Observer) -> None:
    """`job` as MethodRun.job()."""
    sys.path += [place for place in job["path"] if place not in sys.path]
    folder = RunFolder(Path(job["folder"]))
    with folder.writing():
        _carry_out(job, folder, observer)


def _carry_out(job: Mapping[str, Any], folder: RunFolder, observer: Observer) -> None:
    asked = job["asked"]
    n_clusters, features = asked["n_clusters"], job.get("features")
    image_set = _load(asked["data"], features)
    device = pick_device(job["device"]).type
    begun = folder.config_file.exists()
    (folder.path / ERRORS).unlink(missing_ok=True)
    folder.write_config(asked)
    commit = own_commit()  # of the code that is loaded, whatever is checked out meanwhile
    method = Method(**job["method"])
    told = ToldEpochs(observer)
    context = Context(device, told, folder.path / METHOD_FOLDER)
    try:
        settings = _settings(method, asked)
        started = time.perf_counter()
        found = method.cluster(image_set, n_clusters, asked["seed"], context, **settings)
        seconds = time.perf_counter() - started
    except InputError:
        if not begun:
            RUN_FOLDER.remove(folder.path)
        raise
    method_folder = RunFolder(folder.path / METHOD_FOLDER)
    own = method_folder.read_metrics() if method_folder.metrics_file.exists() else {}
    in_all, on_gpu, probabilities = peak_memory_mb(), peak_gpu_memory_mb(), found.probabilities
    if probabilities is None:
        probabilities = np.eye(n_clusters, dtype=np.float32)[found.assignments]
    targets = image_set.targets
    metrics = {
        "method": method.name,
        "n_images": image_set.n_images,
        "n_clusters": n_clusters,
        "n_classes": image_set.n_classes,
        **data_shape(image_set),
        **_backbone(features),
        "scores": None if targets is None else score(targets, found.assignments),
        "health": partition_health(probabilities).to_dict(),
        "seed": asked["seed"],
        "epochs": own.get("epochs", len(told.records) or None),
        # A run that was gone on with counts its epochs of before.
        "training_seconds": round(own.get("training_seconds", seconds) if begun else seconds, 2),
        "peak_memory_mb": None if in_all is None else round(in_all),
        "peak_gpu_memory_mb": None if on_gpu is None else round(on_gpu),
        "device": describe_device(_device_of(found)),
        "torch": torch.__version__,
        "scikit-learn": sklearn.__version__,
        "dcdc": own_version(),
        "commit": commit,
    }
    confidence = probabilities.max(axis=1)
    names = target_names(image_set)
    folder.write_assignments(image_set.names, found.assignments, confidence, names)
    if told.records and not method_folder.history_file.exists():
        write_history(folder.history_file, told.records)
    folder.write_metrics(metrics)  # last: its presence says that all is there


class ToldEpochs(PassingObserver):
    """Keeps what the method tells of each epoch: not every one leaves a history by itself."""

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.records: list[dict[str, Any]] = []

    def on_epoch(self, record: dict[str, Any]) -> None:
        numbers = {key: value for key, value in record.items() if isinstance(value, Real)}
        known = {key: float(value) for key, value in numbers.items() if math.isfinite(value)}
        self.records.append({"seconds": 0.0} | known | {"epoch": len(self.records) + 1})
        super().on_epoch(record)


def _leave_with_the_parent() -> None:
    """The end of stdin is the end of the parent: whatever it began again must be alone."""
    # Not by sys.stdin: a thread that holds its lock aborts an interpreter that ends.
    while os.read(0, 1024):
        pass
    os._exit(1)


def _load(asked: Mapping[str, Any], features: Mapping[str, Any] | None) -> Data:
    data = dict(asked)
    dataset, source = data.pop("dataset"), data.pop("source")
    found = load_data(source, **data)
    if isinstance(found, VectorSet):
        return found
    if features is not None:
        shape = (found.n_images, features["n_features"])
        mapped = np.memmap(features["file"], np.float32, mode="r", shape=shape)
        return with_vectors(found, mapped)
    return replace(found, known_as=dataset) if dataset else found


def _backbone(features: Mapping[str, Any] | None) -> dict[str, Any]:
    """As in the metrics of a run; a method on pixels has none."""
    if features is None:
        return {}
    if not features["backbone"]:
        return {"backbone": {"name": VECTORS, "pretrained": None}}
    named = {"name": features["backbone"], "frozen": True}
    return {"backbone": named | {"pretrained": features["pretrained"]}}


def _settings(method: Method, asked: Mapping[str, Any]) -> dict[str, Any]:
    """With lists as the tuples they were; a run of the engine is told where its images are."""
    usual = method.settings()
    settings = {
        key: tuple(value) if isinstance(value, list) and isinstance(usual[key], tuple) else value
        for key, value in asked["settings"].items()
    }
    # Of a backbone's features it is told nothing: a run of vectors cannot read the images.
    if ENGINE_CHANGES in settings and "backbone" not in asked:
        data = {key: value for key, value in asked["data"].items() if key != "dataset"}
        told = [f"data.{key}={setting_text(value)}" for key, value in data.items()]
        settings[ENGINE_CHANGES] = (*settings[ENGINE_CHANGES], *told)
    return settings


def _device_of(found: Clustering) -> torch.device:
    """Where the method computed, whatever it was offered."""
    if peak_gpu_memory_mb() is not None:
        return torch.device("cuda")
    if found.network is not None:
        return next(found.network.parameters()).device
    return torch.device("cpu")


if __name__ == "__main__":
    main()
