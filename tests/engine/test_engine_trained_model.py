import numpy as np
import pytest
import torch
from PIL import Image

from dcdc.config import with_values
from dcdc.data import from_vectors
from dcdc.engine.observer import SilentObserver
from dcdc.errors import InputError
from dcdc.prepare.assembly import build_model, build_training
from dcdc.prepare.resolve import resolve


@pytest.fixture
def model(tiny_config, tiny_set):
    return build_model(resolve(tiny_config, tiny_set))


def test_predictions_agree_and_keep_the_order(model, tiny_set, monkeypatch):
    whole = model.predict_proba(tiny_set.images)
    monkeypatch.setattr("dcdc.engine.network_on_store.CHUNK", 7)  # 48 does not divide evenly
    assert np.allclose(model.predict_proba(tiny_set.images), whole, atol=1e-6)
    assert np.array_equal(model.predict(tiny_set.images), whole.argmax(1))
    assert whole.shape == (48, 3)
    assert whole.sum(1) == pytest.approx(np.ones(48))
    assert model.transform(tiny_set.images).shape == (48, 256)
    shuffled = np.random.default_rng(0).permutation(48)
    assert np.allclose(model.predict_proba(tiny_set.images[shuffled]), whole[shuffled], atol=1e-6)


def test_an_answer_does_not_depend_on_its_neighbours_or_change_the_model(model, tiny_set):
    model.network.train()
    before = [tensor.clone() for tensor in model.network.state_dict().values()]
    whole = model.predict_proba(tiny_set.images)
    assert np.allclose(model.predict_proba(tiny_set.images[:1]), whole[:1], atol=1e-6)
    after = model.network.state_dict().values()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert model.network.training


def test_larger_images_are_brought_to_size(model, tiny_set):
    larger = tiny_set.images.repeat(3, axis=1).repeat(3, axis=2)
    assert model.predict(larger).shape == (48,)


def test_files_and_sources_are_read_as_training_reads_them(model, tiny_set, tmp_path, monkeypatch):
    for index, pixels in enumerate(tiny_set.images[:5]):
        colours = np.repeat(pixels, 3, axis=2) if index % 2 else pixels[..., 0]
        Image.fromarray(colours).save(tmp_path / f"{index}.png")
    paths = sorted(tmp_path.iterdir())
    known = model.predict_proba(tiny_set.images[:5])
    assert np.allclose(model.predict_proba(tmp_path), known, atol=1e-6)
    assert np.allclose(model.transform(str(tmp_path)), model.transform(tiny_set.images[:5]))
    monkeypatch.setenv("DCDC_DATA", str(tmp_path / "cache"))
    mixed = [str(paths[0]), *paths[1:]]
    assert np.allclose(model.predict_proba(mixed), known, atol=1e-6)
    assert np.array_equal(model.predict(paths[0]), model.predict(tiny_set.images[:1]))
    assert np.array_equal(model.predict([paths[1]] * 2), known[[1, 1]].argmax(1))


def test_files_one_by_one_leave_nothing_in_the_cache(model, tiny_set, tmp_path, monkeypatch):
    monkeypatch.setenv("DCDC_DATA", str(tmp_path / "cache"))
    Image.fromarray(tiny_set.images[0, ..., 0]).save(tmp_path / "a.png")
    model.predict([tmp_path / "a.png"])
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
    with pytest.raises(InputError, match=r"cannot read image .*nowhere.png.*no such file"):
        model.predict([tmp_path / "a.png", tmp_path / "nowhere.png"])


def test_sources_of_another_kind_are_refused(model, tmp_path):
    np.save(tmp_path / "vectors.npy", np.random.default_rng(0).normal(size=(9, 256)))
    with pytest.raises(InputError, match=r"trained on images, .*vectors.npy holds feature vectors"):
        model.predict(tmp_path / "vectors.npy")


def test_other_channels_are_refused(model):
    with pytest.raises(InputError, match=r"trained on images of 1 channel.*these have 3"):
        model.predict(np.zeros((2, 8, 8, 3), np.uint8))


def test_pixels_at_its_size_are_answered_as_a_set_is(model, tiny_set, monkeypatch):
    features, assigned = model.look_at_rows(tiny_set.images)
    assert np.allclose(features, model.transform(tiny_set.images), atol=1e-6)
    assert np.allclose(assigned.probabilities, model.predict_proba(tiny_set.images), atol=1e-6)
    monkeypatch.setattr("dcdc.engine.network_on_store.CHUNK", 7)
    assert model.look_at_rows(tiny_set.images)[0].shape == (48, 256)


def test_means_of_maps_are_those_of_the_layers_one_image_at_a_time(model, tiny_set):
    rows = np.array([0, 3, 47])
    network, store = model.network.eval(), model._store_of(tiny_set)
    found = model.map_means_of(store, rows)
    for row, means in zip(rows, found, strict=True):
        x = network.preprocess(model.prepare(store.batch(torch.tensor([row, row]))))
        with torch.no_grad():
            for layer in network.backbone.layers[: network.backbone.up_to_maps]:
                x = layer(x)
        assert means == pytest.approx(x[0].flatten(1).mean(1).numpy(), abs=1e-5)
    network.backbone = torch.nn.Identity()
    assert model.map_means_of(store, rows) is None


def test_given_vectors_are_those_of_the_set_and_images_have_none(model, tiny_set, tiny_config):
    rows = np.array([0, 3, 47])
    assert model.given_vectors_of(model._store_of(tiny_set), rows) is None
    vectors = np.random.default_rng(0).normal(size=(48, 6)).astype(np.float32)
    values = {"network.backbone": "vectors", "heads.neighbours": 2}
    given = from_vectors(vectors)
    config = resolve(with_values(tiny_config, values), given)
    of_vectors = build_training(config, given, SilentObserver(), None).trainer.context
    store = of_vectors.store
    assert np.array_equal(of_vectors.model.given_vectors_of(store, rows), vectors[rows])
    assert not np.allclose(of_vectors.model.features_of(store, rows), vectors[rows])
