"""Short trainings that one process or several can do; run as a script, it is one of several.

RANK=0 WORLD_SIZE=2 ... python trainings.py OUT_FOLDER NAME...
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from dcdc.config import AugmentConfig, NetworkConfig, RunConfig, TrainConfig, with_values
from dcdc.data import ImageSet, VectorSet, from_arrays, from_vectors
from dcdc.engine.observer import SilentObserver
from dcdc.phases.heads import Heads
from dcdc.prepare.assembly import build_training
from dcdc.prepare.resolve import resolve
from dcdc.runtime.launch import read_launch
from dcdc.runtime.processes import ALONE, Processes, joined

N_IMAGES = 50

TINY = RunConfig(
    n_clusters=3,
    network=NetworkConfig(backbone="small", over_clusters=6),
    augment=AugmentConfig(
        **{"resize_to": 10, "crop_scale": (0.5, 1.0), "brightness": 0.2, "contrast": 0.2},
        **{"flip": 0.5, "shift": 0.1, "rotation": 10, "noise": 0.05},
    ),
    # 18 images over 4 processes are 5, 5, 4 and 4; two steps a pass, 20 in all
    phases=(Heads(epochs=5, batch_size=18, n_repeats=3),),
    train=TrainConfig(threads=1, device="cpu"),
)

PHASES = {
    "phases": ("contrast", "heads", "self_label"),
    "contrast.epochs": 2,
    "contrast.batch_size": 17,
    "contrast.projection": 8,
    "heads.epochs": 4,
    "heads.batch_size": 18,
    "heads.neighbours": 3,
    "heads.over_clustering_first": 1,
    "self_label.epochs": 1,
    "self_label.batch_size": 25,
    "self_label.threshold": 0.3,
}
"""4 + 2 + 12 + 2 = 20 steps of every kind."""

TRAININGS: dict[str, dict] = {
    "alternate": {},
    "joint": {"heads.order": "joint", "heads.epochs": 10},
    "all phases": PHASES,
    "byol": {key.replace("contrast.", "byol."): value for key, value in PHASES.items()}
    | {"phases": ("byol", "heads", "self_label")},
    "discriminate": {key: value for key, value in PHASES.items() if "contrast." not in key}
    | {
        "phases": ("discriminate", "heads", "self_label"),
        **{"discriminate.epochs": 2, "discriminate.batch_size": 17, "discriminate.n_sets": 3},
        "discriminate.warmup_epochs": 0.5,
    },
    "contrastive clustering": {
        "phases": ("contrastive_clustering",),
        **{"contrastive_clustering.epochs": 5, "contrastive_clustering.batch_size": 17},
        "contrastive_clustering.initialisation": "spherical-k-means",
    },
    "frozen heads": {
        "phases": ("frozen_heads", "self_label"),
        **{"frozen_heads.epochs": 5, "frozen_heads.batch_size": 17, "frozen_heads.n_heads": 3},
        **{"frozen_heads.neighbours": 3, "frozen_heads.learning_rate": 1e-3},
        **{"self_label.epochs": 5, "self_label.batch_size": 18, "self_label.threshold": 0.3},
    },
    "relate": {
        "phases": ("relate",),
        **{"relate.epochs": 5, "relate.batch_size": 17, "relate.n_passes": 2},
        **{"relate.threshold": "even", "relate.information_weight": 0.1},
        "relate.learning_rate": 1e-4,  # RMSprop has no first moment that evens last digits out
    },
    "k-means": {
        "heads.over_clustering_first": 1,
        "heads.initialisation": "spherical-k-means",
    },
    "patches": {"network.backbone": "patches", "heads.initialisation": "k-means"},
    "deep": {
        **{"network.backbone": "resnet18", "heads.order": "joint"},
        **{"heads.epochs": 1, "heads.batch_size": 17, "heads.n_repeats": 1},
    },
    # Adam makes a whole step of a gradient's last digit, so in float32 steps are short here.
    "float32": {"heads.learning_rate": 1e-5},
    "vectors": {
        **{"network.backbone": "vectors", "network.over_clusters": 0, "network.sub_heads": 2},
        **{"heads.order": "joint", "heads.n_repeats": 1, "heads.neighbours": 3},
        **{"heads.epochs": 10, "heads.initialisation": "spherical-k-means"},
        "heads.learning_rate": 1e-5,
    },
}
QUICK = ("all phases", "float32", "vectors")
IN_FLOAT32 = ("float32", "vectors")
"""Feature vectors are float32 whatever the weights are."""


def images() -> ImageSet:
    random = np.random.default_rng(0)
    kinds = np.zeros((3, 8, 8))
    kinds[0, ::2], kinds[1, :, ::2], kinds[2, 2:6, 2:6] = 1, 1, 1
    targets = np.arange(N_IMAGES) % 3
    noisy = 200 * kinds[targets] + random.uniform(0, 50, (N_IMAGES, 8, 8))
    return from_arrays(noisy.astype(np.uint8), targets)


def vectors() -> VectorSet:
    """The rows of the images, as numbers."""
    given = images()
    return from_vectors(given.images.reshape(N_IMAGES, -1) / 255, given.targets)


class Losses(SilentObserver):
    def __init__(self) -> None:
        self.losses: list[float] = []

    def on_step(self, terms, n_images) -> None:  # noqa: ARG002
        self.losses.append(terms["loss"].item())


def train(name: str, processes: Processes = ALONE) -> tuple[list[float], dict[str, torch.Tensor]]:
    """The losses of its steps; weights, statistics and the answers at its end."""
    image_set = vectors() if name == "vectors" else images()
    config = resolve(with_values(TINY, TRAININGS[name]), image_set, processes.size)
    losses = Losses()
    built = build_training(config, image_set, losses, None, processes)
    if name not in IN_FLOAT32:
        built.model.network.double()
    built.trainer.train()
    found = {key: tensor.clone() for key, tensor in built.model.network.state_dict().items()}
    rows = np.arange(3, 12)
    found["answer"] = torch.from_numpy(built.model.assign_store(built.store).probabilities)
    found["features"] = torch.from_numpy(built.model.features_of(built.store, rows))
    rows_given = image_set.vectors if isinstance(image_set, VectorSet) else image_set.images
    found["one image"] = torch.from_numpy(built.model.predict_proba(rows_given[:1]))
    return losses.losses, found


def main() -> None:
    folder, *names = sys.argv[1:]
    torch.set_num_threads(1)
    with joined(read_launch(), torch.device("cpu")) as processes:
        for name in names:
            losses, found = train(name, processes)
            where = Path(folder) / f"{name}-{processes.rank}"
            torch.save(found, f"{where}.pt")
            Path(f"{where}.json").write_text(json.dumps(losses))


if __name__ == "__main__":
    main()
