import numpy as np
import pytest
import torch
from torch import nn

from dcdc.augment import to_float
from dcdc.config import with_values
from dcdc.data import from_vectors
from dcdc.engine.cluster_head_initialisation import initialise_heads
from dcdc.engine.copy_whitening import SHRINKAGE, copy_covariance, whitened_directions
from dcdc.engine.observer import SilentObserver
from dcdc.metrics import cluster_accuracy
from dcdc.prepare.assembly import build_training
from dcdc.prepare.resolve import resolve
from dcdc.runtime.seeding import derive_generator


def shaken(n_copies=4, n_images=30, n_features=3, seed=0):
    """Copies, r x n x D, that differ more in each feature than in the one before it."""
    random = np.random.default_rng(seed)
    places = random.normal(size=(1, n_images, n_features))
    copies = places + random.normal(size=(n_copies, n_images, n_features)) * [0.1, 1, 5]
    return torch.from_numpy(copies.astype(np.float32))


def test_the_covariance_of_copies_is_that_of_a_loop_over_images():
    copies = shaken()
    exact = copies.double().numpy()
    total = np.zeros((3, 3))
    for image in range(30):
        middle = sum(exact[:, image]) / 4
        for copy in exact[:, image]:
            total += np.outer(copy - middle, copy - middle)
    expected = total / (30 * 3)
    assert np.allclose(copy_covariance([copies]), expected, rtol=1e-4)
    in_parts = copy_covariance([copies[:, :7], copies[:, 7:]])
    assert np.allclose(in_parts, expected, rtol=1e-4)


def test_whitened_copies_differ_alike_in_every_direction():
    """But for what the ball brings in: cosines are those of a loop over pairs."""
    copies = shaken()
    covariance = copy_covariance([copies])
    features = copies[0].numpy()
    found = whitened_directions(features, covariance)
    assert found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    shape = (1 - SHRINKAGE) * covariance + SHRINKAGE * np.trace(covariance) / 3 * np.eye(3)
    inverse = np.linalg.inv(shape)
    away = features - features.mean(axis=0)
    for i in range(5):
        for j in range(5, 10):
            product = away[i] @ inverse @ away[j]
            lengths = (away[i] @ inverse @ away[i]) * (away[j] @ inverse @ away[j])
            assert found[i] @ found[j] == pytest.approx(product / lengths**0.5, abs=1e-4)


@pytest.mark.filterwarnings("error")
def test_copies_that_do_not_differ_leave_plain_directions():
    features = shaken()[0].numpy()
    found = whitened_directions(features, np.zeros((3, 3)))
    away = features - features.mean(axis=0)
    assert np.allclose(found @ found.T, _cosines(away), atol=1e-5)
    equal = whitened_directions(np.ones((4, 3), np.float32), np.zeros((3, 3)))
    assert np.isfinite(equal).all()


def _cosines(rows):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit @ unit.T


def test_heads_start_where_perturbation_leaves_clusters_apart():
    """Copies differ along a feature in which clusters do not; without knowing that, groups are cut
    along it."""
    random = np.random.default_rng(0)
    targets = np.repeat([0, 1, 2], [300, 60, 40])
    features = 0.4 * random.normal(size=(400, 8)).astype(np.float32)
    features[:, :2] += np.array([[-4, 0], [3, 5], [3, -5]])[targets]
    features[:, 2] *= 40
    covariance = np.diag([0.16, 0.16, 256, *[0.16] * 5])
    found = {}
    for name, given in (("as they are", None), ("whitened", lambda: covariance)):
        head = nn.Linear(8, 3)
        initialise_heads([head], 400, features.__getitem__, [1], sizes="free", covariance=given)
        with torch.no_grad():
            logits = head(torch.from_numpy(features))
        found[name] = cluster_accuracy(targets, logits.argmax(1).numpy())
    assert found["whitened"] > 0.97
    assert found["as they are"] < 0.7


def test_equal_sizes_never_ask_for_copies():
    def asked():
        pytest.fail("copies were made")

    features = shaken()[0].numpy()
    initialise_heads([nn.Linear(3, 2)], 30, features.__getitem__, [1], covariance=asked)


def test_features_of_copies_are_those_of_the_network_one_copy_after_the_other(
    tiny_config, tiny_set, monkeypatch
):
    built = build_training(resolve(tiny_config, tiny_set), tiny_set, SilentObserver(), None)
    context = built.trainer.context
    monkeypatch.setattr(type(context.model), "chunk", 20)  # six images of three copies at once
    rows, perturbed_copy = np.arange(3, 17), context.perturbed_copy(3)
    chunks = [
        chunk.clone()
        for chunk in context.model.perturbed_features(
            context.store, rows, perturbed_copy, derive_generator(5, "copies")
        )
    ]
    assert [chunk.shape[:2] for chunk in chunks] == [(3, 6), (3, 6), (3, 2)]
    generator, network = derive_generator(5, "copies"), context.network.eval()
    for chunk, some in zip(chunks, torch.split(torch.from_numpy(rows), 6), strict=True):
        copies = perturbed_copy(to_float(context.store.batch(some)), generator=generator)
        for number, copy in enumerate(copies.split(len(some))):
            with torch.no_grad():
                expected = network(copy).features
            assert torch.allclose(chunk[number], expected, atol=1e-5)


@pytest.mark.parametrize(("sizes", "asks"), [("equal", False), ("free", True)])
def test_a_training_makes_copies_where_sizes_are_unequal(
    sizes, asks, tiny_config, tiny_set, monkeypatch
):
    values = {"heads.epochs": 1, "heads.initialisation": "k-means", "sizes": sizes}
    built = build_training(
        resolve(with_values(tiny_config, values), tiny_set), tiny_set, SilentObserver(), None
    )
    seen = []
    looked_at = type(built.trainer.context.model).perturbed_features

    def watched(self, *given):
        for chunk in looked_at(self, *given):
            seen.append(chunk.shape[:2])
            yield chunk

    monkeypatch.setattr(type(built.trainer.context.model), "perturbed_features", watched)
    built.trainer.train()
    assert (sum(n_images for _, n_images in seen) == 48) is asks


def test_feature_vectors_have_no_copies_to_make(tiny_config):
    random = np.random.default_rng(0)
    vectors = from_vectors(random.normal(size=(48, 6)).astype(np.float32))
    values = {"heads.epochs": 1, "heads.initialisation": "k-means", "sizes": "free"}
    values |= {"network.backbone": "vectors", "heads.neighbours": 2}
    config = resolve(with_values(tiny_config, values), vectors)
    build_training(config, vectors, SilentObserver(), None).trainer.train()
