"""Runs that never ran: small, and with every figure known in advance."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dcdc.config import RunConfig, flat, to_mapping, with_values
from dcdc.data.image_set import ImageSet
from dcdc.metrics import partition_health, score
from dcdc.report.facts import RunFacts, RunSample
from dcdc.run_folder import RunFolder


def history_line(epoch: int, n_clusters: int, *, evaluated: bool, targets: bool) -> dict[str, Any]:
    line: dict[str, Any] = {
        "epoch": epoch,
        "seconds": 0.9,
        "loss": 5 - 0.1 * epoch,
        "over_clustering_head/sample_view": 3 - 0.1 * epoch,
        "over_clustering_head/class_view": 2.0,
    }
    if epoch != 2:  # the cluster head rested
        line |= {"cluster_head/sample_view": 2.5, "cluster_head/class_view": 1.5}
    if evaluated:
        line |= {"sizes": [], "active_clusters": n_clusters, "warnings": []}
        if targets:
            line |= {"acc": 0.1 * epoch, "nmi": 0.09 * epoch, "ari": 0.08 * epoch}
    return line


@pytest.fixture(scope="session")
def make_facts() -> Callable[..., RunFacts]:
    def make(
        assignments: list[int],
        *,
        n_clusters: int,
        targets: list[str] | None = None,
        confidence: list[float] | None = None,
        epochs: int = 4,
        evaluate_every: int = 1,
        **changes: Any,
    ) -> RunFacts:
        n_images = len(assignments)
        values = {"n_clusters": n_clusters, "data.source": "digits", "train.seed": 7}
        config = with_values(RunConfig(), values)
        metrics = {
            "n_images": n_images,
            "n_clusters": n_clusters,
            "n_classes": len(set(targets)) if targets else None,
            "image_shape": [8, 8, 1],
            "scores": score(targets, assignments) if targets else None,
            "health": partition_health(np.eye(n_clusters)[assignments]).to_dict(),
            "baselines": {},
            "epochs": epochs,
            "seed": 7,
            "training_seconds": 83.4,
            "device": "cpu (x86_64, 2 threads)",
            "torch": "2.9.1",
            "dcdc": "0.1.0",
        }
        history = [
            history_line(
                epoch, n_clusters, evaluated=epoch % evaluate_every == 0, targets=bool(targets)
            )
            for epoch in range(1, epochs + 1)
        ]
        facts = RunFacts(
            path=Path("runs/digits"),
            config=flat(config),
            metrics=metrics,
            history=history,
            names=[f"image-{position}" for position in range(n_images)],
            assignments=np.array(assignments),
            confidence=np.array(confidence or np.linspace(0.9, 0.5, n_images)),
            targets=np.array(targets) if targets else None,
            skipped=[],
        )
        return replace(facts, **changes)

    return make


@pytest.fixture(scope="session")
def write_run() -> Callable[[Path, RunFacts], RunFolder]:
    def write(path: Path, facts: RunFacts) -> RunFolder:
        folder = RunFolder.create(path)
        folder.write_config(to_mapping(with_values(RunConfig(), facts.config)))
        targets = None if facts.targets is None else facts.targets.tolist()
        folder.write_assignments(facts.names, facts.assignments, facts.confidence, targets)
        folder.write_metrics(facts.metrics)
        folder.history_file.write_text("".join(json.dumps(line) + "\n" for line in facts.history))
        if facts.skipped:
            folder.write_skipped(facts.skipped)
        return folder

    return write


@pytest.fixture(scope="session")
def flat_images() -> Callable[..., ImageSet]:
    """Images of one shade each: image i has the value 3 i in every pixel (and channel 0)."""

    def make(facts: RunFacts, *, channels: int = 1, side: int = 8) -> ImageSet:
        n_images = len(facts.names)
        images = np.zeros((n_images, side, side, channels), np.uint8)
        images[..., 0] = (3 * np.arange(n_images) % 256)[:, None, None]
        return ImageSet(images, facts.names)

    return make


@pytest.fixture(scope="session")
def make_sample() -> Callable[..., RunSample]:
    """Every image, as sure of its cluster as it can be told; perturbed copies a little less."""

    def make(assignments: list[int], *, n_clusters: int, seed: int = 0) -> RunSample:
        random = np.random.default_rng(seed)
        clusters = np.asarray(assignments)
        n_images = len(clusters)

        def assign(noise: float) -> np.ndarray:
            scores = np.exp(4 * np.eye(n_clusters)[clusters])
            scores *= np.exp(noise * random.normal(size=scores.shape))
            return (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)

        features = np.eye(n_clusters)[clusters] + 0.1 * random.normal(size=(n_images, n_clusters))
        original = assign(0.1)
        return RunSample(
            rows=np.arange(n_images),
            features=features.astype(np.float32),
            assign=original,
            view_rows=np.arange(n_images),
            view_assign=original.copy(),
            view_assign_perturbed=assign(0.5),
        )

    return make
