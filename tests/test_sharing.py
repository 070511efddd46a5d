"""A model as a folder, and by way of the hub, comes back as it was."""

import json
import shutil
from copy import deepcopy
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch

import dcdc
from dcdc.config import with_values
from dcdc.errors import InputError
from dcdc.run import run
from dcdc.run_folder import RunFolder
from dcdc.runtime import atomic_files
from kills import killed_before

FILES = {"config.json", "model.safetensors", "metrics.json", "README.md"}


@pytest.fixture(scope="module")
def trained_once(tiny_config, tiny_set):
    values = {"data.source": "/home/somebody/secret/photos", "augment.resize_to": 10}
    return run(with_values(tiny_config, values), tiny_set)


@pytest.fixture
def result(trained_once):
    """To do with as one likes."""
    return deepcopy(trained_once)


@pytest.fixture
def saved(result, tmp_path):
    return result.model.save(tmp_path / "model")


def files_of(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_saved_model_answers_bit_for_bit_as_before(result, saved, tiny_set):
    assert files_of(saved) == FILES
    model = dcdc.load(saved, "cpu")
    images = tiny_set.images
    assert np.array_equal(model.predict_proba(images), result.assigned.probabilities)
    assert np.array_equal(model.transform(images), result.model.transform(images))
    assert np.array_equal(model.predict(images), result.assigned.assignments)


def test_a_model_can_be_saved_again_with_names(saved, tmp_path):
    model = dcdc.load(saved, "cpu")
    model.names = {0: "cats"}
    again = model.save(tmp_path / "again")
    assert files_of(again) == FILES | {"names.json"}
    assert "| 0 | cats |" in (again / "README.md").read_text()
    assert dcdc.load(again, "cpu").names == {0: "cats"}
    model.names = {}
    model.save(again)  # its own folder is written anew
    assert files_of(again) == FILES
    for name in ("config.json", "model.safetensors", "metrics.json"):
        assert (again / name).read_bytes() == (saved / name).read_bytes()


def test_a_run_folder_is_a_model_folder_with_a_card(tiny_config, tiny_set, tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    trained = run(tiny_config, tiny_set, folder=folder)
    card = folder.card_file.read_text()
    assert card.startswith("---\nlibrary_name: dcdc\n")
    assert "48 images" in card
    model = dcdc.load(folder.path, "cpu")
    saved = model.save(tmp_path / "model")
    answers = dcdc.load(saved, "cpu").predict_proba(tiny_set.images)
    assert np.array_equal(answers, trained.assigned.probabilities)


def test_features_of_training_images_go_with_a_model_that_knows_them(
    result, saved, tiny_config, tiny_set, tmp_path
):
    assert result.model.training_features() is None
    assert dcdc.load(saved, "cpu").training_features() is None
    trained = run(tiny_config, tiny_set, folder=RunFolder.create(tmp_path / "run"))
    features = trained.model.training_features()
    assert features.shape == (48, 256)
    shared = dcdc.load(tmp_path / "run", "cpu").save(tmp_path / "shared")
    assert files_of(shared) == FILES | {"reference.npz"}
    again = dcdc.load(shared, "cpu")
    assert np.array_equal(again.training_features(), features)
    again.save(shared)  # its own folder is written anew
    assert np.array_equal(dcdc.load(shared, "cpu").training_features(), features)
    result.model.save(shared)
    assert files_of(shared) == FILES


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"torn", "is damaged"),
        ({"rows": np.zeros(3)}, "features is missing"),
        (
            {"features": np.zeros((30, 7), np.float16)},
            "shape .30, 7., it should be n x D with 256 for D",
        ),
    ],
)
def test_features_that_do_not_fit_are_one_line(saved, content, message):
    file = saved / "reference.npz"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        np.savez(file, **content)
    model = dcdc.load(saved, "cpu")  # which predicts all the same
    with pytest.raises(InputError, match=f"reference.npz.*{message}.*remove it"):
        model.training_features()


def test_nothing_saved_tells_the_folders_of_whoever_trained_it(saved):
    assert json.loads((saved / "config.json").read_text())["data"]["source"] == "photos"
    for path in saved.iterdir():
        assert b"secret" not in path.read_bytes(), path.name


def test_a_folder_that_holds_other_things_is_left_alone(result, tiny_config, tiny_set, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "cat.jpg").write_text("mine")
    with pytest.raises(InputError, match="is no model folder"):
        result.model.save(tmp_path / "mine")
    with pytest.raises(InputError, match="is a file"):
        result.model.save(tmp_path / "mine" / "cat.jpg")
    folder = RunFolder.create(tmp_path / "run")
    run(tiny_config, tiny_set, folder=folder)
    before = folder.config_file.read_bytes()
    with pytest.raises(InputError, match="is a run folder"):
        result.model.save(folder.path)
    assert folder.config_file.read_bytes() == before
    assert files_of(tmp_path / "mine") == {"cat.jpg"}


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("config.json", '{"model_type": "vit"}', "a model of something else"),
        ("notes.txt", "mine", "notes.txt and is no model folder"),
        (".git/config", "mine", ".git and is no model folder"),
        ("backbone/deep/net.py", "mine", "backbone/deep and is no model folder"),
    ],
)
def test_what_is_not_of_a_model_of_ours_is_never_lost(result, saved, name, content, told):
    (saved / name).parent.mkdir(parents=True, exist_ok=True)
    (saved / name).write_text(content)
    before = {path: path.read_bytes() for path in saved.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match=f"holds {told}: save elsewhere"):
        result.model.save(saved)
    assert {path: path.read_bytes() for path in saved.rglob("*") if path.is_file()} == before


def test_a_folder_that_cannot_be_replaced_whole_is_told(result, saved, monkeypatch):
    monkeypatch.chdir(saved)
    with pytest.raises(InputError, match="cannot be replaced whole: save into a folder below"):
        result.model.save(".")
    assert files_of(saved) == FILES


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "can_exchange",
    [True, pytest.param(False, marks=pytest.mark.slow)],
    ids=["", "without an exchange"],
)
def test_killed_anywhere_a_save_leaves_the_one_model_or_the_other(
    result, tmp_path, monkeypatch, can_exchange
):
    if not can_exchange:  # as on a file system of a network
        monkeypatch.setattr(atomic_files, "exchange", lambda *_: False)
    place = tmp_path / "here" / "model"
    generations = []
    for name in ("old", "new"):
        result.model.names = {0: name}
        with torch.no_grad():
            result.model.network.heads["cluster_head"].bias[0] += 1
        generations.append(files(result.model.save(tmp_path / name / "model")))
    new = dcdc.load(tmp_path / "new" / "model", "cpu")
    met = []
    for number in count(1):
        shutil.rmtree(place.parent, ignore_errors=True)
        shutil.copytree(tmp_path / "old" / "model", place)
        was_killed = killed_before(number, lambda: new.save(place), place.parent)
        found = files(place) if place.exists() else None
        assert found in generations or (found is None and not can_exchange)
        met.append(found)
        if not was_killed:
            break
        new.save(place)
        assert files(place) == generations[1]
        assert [path.name for path in place.parent.iterdir()] == ["model"]
    assert met[0] == generations[0]
    assert met[-1] == generations[1]


def change_config(**changes):
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def cut_short(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


DAMAGES = {
    "no config": (lambda folder: (folder / "config.json").unlink(), "it has no config.json"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors"),
    "weights cut short": (cut_short, "is damaged"),
    "not weights": (
        lambda folder: (folder / "model.safetensors").write_text("version https://git-lfs"),
        "is damaged",
    ),
    "weights of another model": (change_config(n_clusters=7), "has n_clusters = 7, its model"),
    "next format": (change_config(format=3), "has format 3, this dcdc reads format 2"),
    "unknown key": (change_config(colour="red"), r"config.json: unknown config key 'colour'"),
    "unknown phase": (
        change_config(phases=[{"kind": "head"}]),
        r"config.json: unknown phase 'head'; did you mean 'heads'\?",
    ),
    "unknown backbone": (
        change_config(
            network={"backbone": "smal", "over_clusters": 6, "mean": [0.5], "std": [0.1]}
        ),
        r"unknown backbone 'smal'; did you mean 'small'\?",
    ),
    "not filled in": (change_config(n_clusters=None), "does not describe a model"),
    "no pixels": (change_config(data={"size": None}), "does not describe a model"),
    "no deviation": (
        change_config(
            network={"backbone": "small", "over_clusters": 6, "mean": [0.5], "std": [0.0]}
        ),
        r"config\.json: network\.std = \(0\.0,\) must be each above 0",
    ),
    "not JSON": (lambda folder: (folder / "config.json").write_text("{"), "is no JSON"),
    "names damaged": (lambda folder: (folder / "names.json").write_text("[]"), "names.json"),
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_damaged_model_is_refused_in_one_line(damage, saved):
    spoil, message = DAMAGES[damage]
    spoil(saved)
    with pytest.raises(InputError, match=message) as caught:
        dcdc.load(saved, "cpu")
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_device_that_is_not_here_is_no_fault_of_the_model(saved):
    with pytest.raises(InputError, match="cuda") as caught:
        dcdc.load(saved, "cuda")
    assert "config.json" not in str(caught.value)


def test_damaged_metrics_do_not_keep_a_model_from_answering(saved, tiny_set):
    (saved / "metrics.json").write_text("{")
    assert dcdc.load(saved, "cpu").predict(tiny_set.images).shape == (48,)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub on this disk in place of the net."""
    client = pytest.importorskip("huggingface_hub", reason="pip install 'dcdc[hub]'")
    shelf = tmp_path / "hub"
    asked = []

    def create_repo(_self, repo_id, **how):
        asked.append(("create", repo_id, how))

    def upload_folder(_self, *, repo_id, folder_path, repo_type):
        assert repo_type == "model"
        shutil.copytree(folder_path, shelf / repo_id, dirs_exist_ok=True)
        return f"https://hub/{repo_id}"

    def snapshot_download(repo_id, *, revision, allow_patterns):
        asked.append(("fetch", repo_id, revision))
        assert set(allow_patterns) >= FILES
        return str(shelf / repo_id)

    monkeypatch.setattr(client.HfApi, "create_repo", create_repo)
    monkeypatch.setattr(client.HfApi, "upload_folder", upload_folder)
    monkeypatch.setattr(client, "snapshot_download", snapshot_download)
    return shelf, asked


def test_a_model_goes_to_the_hub_and_comes_back(result, tiny_set, hub):
    shelf, asked = hub
    assert result.model.push_to_hub("me/tiny", private=True) == "https://hub/me/tiny"
    assert asked[0][:2] == ("create", "me/tiny")
    assert asked[0][2]["private"] is True
    card = (shelf / "me/tiny/README.md").read_text()
    assert "\n# me/tiny\n" in card
    assert 'dcdc.from_pretrained("me/tiny")' in card
    model = dcdc.from_pretrained("me/tiny", "cpu", revision="v1")
    assert asked[1] == ("fetch", "me/tiny", "v1")
    assert np.array_equal(model.predict_proba(tiny_set.images), result.assigned.probabilities)


def test_the_hubs_own_reader_takes_the_card(saved):
    client = pytest.importorskip("huggingface_hub", reason="pip install 'dcdc[hub]'")
    card = client.ModelCard.load(saved / "README.md")
    assert card.data.library_name == "dcdc"
    assert card.data.pipeline_tag == "image-feature-extraction"


def test_a_folder_here_goes_before_the_hub(saved, tiny_set, monkeypatch):
    monkeypatch.setattr("dcdc.run.loading.fetch_folder", lambda *_: pytest.fail("asked the hub"))
    assert dcdc.from_pretrained(saved, "cpu").predict(tiny_set.images).shape == (48,)


def test_a_model_built_by_hand_cannot_be_saved(result, tmp_path):
    result.model.config = None
    with pytest.raises(InputError, match="does not know its settings"):
        result.model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
