"""The estimator as a whole: what fit leaves, what the other methods answer, and what is refused."""

import copy
import os
import pickle
import signal
import subprocess
import sys

import joblib
import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dcdc import DCDC, InputError, TrainingError
from dcdc.config import with_values
from dcdc.estimator.watching import EstimatorObserver
from dcdc.metrics import cluster_accuracy
from dcdc.phases.heads import heads_of
from dcdc.prepare.presets import preset
from dcdc.run import run


@pytest.fixture(scope="module")
def tiny(tiny_file):
    return np.load(tiny_file)["images"], np.load(tiny_file)["targets"]


@pytest.fixture(scope="module")
def images(tiny):
    return tiny[0]


@pytest.fixture(scope="module")
def targets(tiny):
    return tiny[1]


@pytest.fixture(scope="module")
def model(estimator, images):
    return estimator().fit(images)


def test_fit_finds_the_kinds_and_every_method_agrees(model, images, targets):
    assert cluster_accuracy(targets, model.labels_) > 0.9
    assert np.array_equal(model.predict(images), model.labels_)
    probabilities = model.predict_proba(images)
    assert probabilities.shape == (48, 3)
    assert np.array_equal(probabilities.argmax(axis=1), model.labels_)
    assert model.n_iter_ == len(model.loss_curve_) == 4
    assert model.cluster_sizes_.tolist() == np.bincount(model.labels_, minlength=3).tolist()
    features = model.transform(images)
    assert features.shape == (48, 256)
    assert len(model.get_feature_names_out()) == 256
    assert model.get_feature_names_out()[0] == "dcdc0"
    assert model.n_features_in_ == 64
    assert model.init_scores_ is None


def test_score_is_acc_with_targets_and_a_silhouette_without(model, images, targets):
    assert model.score(images, targets) == cluster_accuracy(targets, model.labels_)
    names = np.array(["across", "down", "middle"])[targets]
    assert model.score(images, names) == model.score(images, targets)
    assert -1 <= model.score(images) <= 1


def test_fit_transform_and_fit_predict_are_fit_and_the_rest(estimator, model, images):
    assert np.array_equal(estimator().fit_predict(images), model.labels_)
    assert np.array_equal(estimator().fit_transform(images), model.transform(images))


def test_a_seed_fixes_the_answer_and_a_clone_gives_it_again(estimator, images):
    first = estimator(random_state=3).fit(images)
    again = clone(first).fit(images)
    assert np.array_equal(again.predict_proba(images), first.predict_proba(images))
    assert first.config_.train.seed == 3


def test_a_random_state_draws_the_seed(estimator, images):
    seeds = {
        estimator(random_state=state, epochs=3).fit(images).config_.train.seed
        for state in (None, np.random.RandomState(1), np.random.RandomState(1))
    }
    assert len(seeds) == 2


def test_the_answer_is_that_of_a_run_with_the_same_config_bit_for_bit(tiny_set, images):
    values = {"n_clusters": 3, "heads.epochs": 3, "heads.batch_size": 16, "train.seed": 5}
    result = run(with_values(preset("digits"), values | {"train.device": "cpu"}), tiny_set)
    model = DCDC(3, preset="digits", epochs=3, batch_size=16, random_state=5, device="cpu")
    model.fit(images)
    assert model.config_ == result.config
    assert np.array_equal(model.predict_proba(images), result.assigned.probabilities)
    assert model.loss_curve_ == [record["loss"] for record in result.history]
    for name, weight in result.model.network.state_dict().items():
        assert torch.equal(model.model_.network.state_dict()[name], weight), name


@pytest.mark.slow
def test_the_answer_is_that_of_the_command_line(tiny_file, tmp_path, images):
    flags = "--clusters 3 --epochs 3 --batch-size 16 --device cpu --seed 4 --quiet"
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "dcdc", "fit", str(tiny_file), *flags.split()]
    subprocess.run([*command, "--run", str(folder)], check=True, capture_output=True)
    import dcdc

    model = DCDC(3, epochs=3, batch_size=16, device="cpu", random_state=4).fit(images)
    answered = dcdc.load(folder, device="cpu").predict_proba(images)
    assert np.array_equal(model.predict_proba(images), answered)


def test_every_setting_can_be_reached_and_wins_over_the_rest(estimator, images):
    settings = {"heads.epochs": np.int64(1), "heads.temperature": 0.3, "data.size": 12}
    model = estimator(settings=settings).fit(images)
    assert (model.n_iter_, model.model_.size) == (1, 12)
    assert heads_of(model.config_).temperature == 0.3
    assert model.predict(images).shape == (48,)


def test_what_fit_saw_holds_until_the_next_fit(model, images):
    changed = copy.deepcopy(model).set_params(n_clusters=1, value_range=(0, 1), image_shape=(4, 16))
    assert np.array_equal(changed.predict(images), model.labels_)


def test_one_cluster_is_everything(estimator, images):
    model = estimator(n_clusters=1, epochs=3).fit(images)
    assert not model.labels_.any()
    assert (model.predict_proba(images) == 1).all()
    assert model.cluster_sizes_.tolist() == [48]
    assert model.score(images) == -1


def test_a_set_with_classes_says_how_many_clusters(estimator, tiny_set):
    model = estimator(n_clusters=None, epochs=3).fit(tiny_set)
    assert len(model.cluster_sizes_) == 3


def test_verbose_prints_a_line_per_epoch(estimator, images, capsys):
    estimator(epochs=3, verbose=1).fit(images)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[-1].startswith("[DCDC] epoch 3/3, loss ")


def test_files_of_a_folder_that_are_left_out_are_warned_of(estimator, images, tmp_path):
    for number, image in enumerate(images):
        Image.fromarray(np.squeeze(image)).save(tmp_path / f"{number}.png")
    (tmp_path / "film.mp4").touch()
    with pytest.warns(UserWarning, match=r"left out: 1 \.mp4 \(take frames"):
        estimator().fit(str(tmp_path))


def test_sub_folders_are_counted_only_where_that_is_asked_for(estimator, images, tmp_path):
    for number, image in enumerate(images):
        album = tmp_path / ("2019 Iceland", "phone")[number % 2]
        album.mkdir(exist_ok=True)
        Image.fromarray(np.squeeze(image)).save(album / f"{number}.png")
    with pytest.raises(InputError, match=r"nothing says how many .* n_clusters='classes' for one"):
        estimator(n_clusters=None).fit(tmp_path)
    with pytest.raises(InputError, match="n_clusters='many' is no number of clusters"):
        estimator(n_clusters="many").fit(tmp_path)
    assert len(estimator(n_clusters="classes").fit(tmp_path).cluster_sizes_) == 2


def dumped_and_loaded(model, tmp_path):
    joblib.dump(model, tmp_path / "model")
    return joblib.load(tmp_path / "model")


@pytest.mark.parametrize(
    "travelled",
    [
        lambda model, _: pickle.loads(pickle.dumps(model)),
        lambda model, _: copy.deepcopy(model),
        dumped_and_loaded,
    ],
    ids=["pickle", "deepcopy", "joblib"],
)
def test_a_fitted_model_travels(model, images, tmp_path, travelled):
    other = travelled(model, tmp_path)
    assert np.array_equal(other.predict_proba(images), model.predict_proba(images))
    assert np.array_equal(other.labels_, model.labels_)
    assert other.get_params() == model.get_params()


def test_a_model_of_a_gpu_answers_on_a_cpu(model, images):
    state = model.__getstate__()
    assert all(tensor.device.type == "cpu" for tensor in state["_weights"].values())
    values = {"train.device": "cuda", "train.precision": "bfloat16"}  # as a GPU leaves it
    state["config_"] = with_values(state["config_"], values)
    state["device"] = "cuda"
    other = DCDC()
    other.__setstate__(state)
    if not torch.cuda.is_available():
        assert np.array_equal(other.predict(images), model.labels_)


def test_a_warm_start_goes_on_from_the_weights(estimator, images, targets):
    model = estimator(warm_start=True).fit(images)
    before = model.score(images, targets)
    first = {name: t.clone() for name, t in model.model_.network.state_dict().items()}
    model.set_params(epochs=1).fit(images)
    assert model.n_iter_ == len(model.loss_curve_) == 5
    assert model.score(images, targets) >= before - 0.1
    second = model.model_.network.state_dict()
    moved = [(second[n].float() - first[n].float()).abs().max() for n in first if "weight" in n]
    assert 0 < max(moved) < 0.1  # from there, and not from the start
    seeds = {model.config_.train.seed}
    seeds.add(model.fit(images).config_.train.seed)
    assert len(seeds) == 2, "other draws in every round"
    assert estimator().fit(images).n_iter_ == 4


def test_a_warm_start_refuses_another_network(estimator, images):
    model = estimator(warm_start=True).fit(images)
    with pytest.raises(InputError, match="n_clusters was 3, is 4; keep it, or set warm_start=Fal"):
        model.set_params(n_clusters=4).fit(images)
    model.set_params(n_clusters=3)
    with pytest.raises(InputError, match="pixels a side was 8, is 16"):
        model.fit(images.repeat(2, axis=1).repeat(2, axis=2))


@pytest.fixture
def ctrl_c(monkeypatch):
    """Presses it in an epoch, counted from 1 over all trainings; before any step of it is done."""

    def press(epoch: int) -> None:
        seen = [0]

        def on_epoch(_self, _record) -> None:
            seen[0] += 1
            if seen[0] == epoch - 1:
                os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(EstimatorObserver, "on_epoch", on_epoch)
        if epoch == 1:
            monkeypatch.setattr(
                EstimatorObserver,
                "on_step",
                lambda *_: os.kill(os.getpid(), signal.SIGINT),
            )

    return press


def test_ctrl_c_leaves_the_last_finished_epoch(estimator, images, ctrl_c):
    ctrl_c(4)
    with pytest.warns(ConvergenceWarning, match="Ctrl-C: the model is that of epoch 3, the last"):
        model = estimator(epochs=9).fit(images)
    assert model.n_iter_ == len(model.loss_curve_) == 3
    straight = estimator(epochs=9, settings=model.settings | {"heads.epochs": 3}).fit(images)
    assert np.array_equal(model.predict_proba(images), straight.predict_proba(images))


def test_ctrl_c_before_the_cluster_head_began_leaves_one_that_answers(
    estimator, images, targets, ctrl_c
):
    ctrl_c(3)  # two epochs of the over-clustering head alone
    with pytest.warns(ConvergenceWarning, match="epoch 2"):
        model = estimator(epochs=9).fit(images)
    assert model.score(images, targets) > 0.9


def test_ctrl_c_in_the_first_epoch_is_one(estimator, images, ctrl_c):
    ctrl_c(1)
    model = estimator()
    with pytest.raises(KeyboardInterrupt):
        model.fit(images)
    with pytest.raises(NotFittedError):
        model.predict(images)


def test_ctrl_c_in_a_later_training_leaves_the_finished_ones(estimator, images, ctrl_c):
    ctrl_c(8)  # in the third of three
    with pytest.warns(ConvergenceWarning, match=r"Ctrl-C: the answer is of the 2 training\(s\)"):
        model = estimator(epochs=3, n_init=3).fit(images)
    assert len(model.init_scores_) == 2
    assert model.n_iter_ == 3


def test_flat_rows_in_a_pipeline(estimator, images, model):
    def to_shares(rows):
        return rows / 255

    pipeline = make_pipeline(FunctionTransformer(to_shares), estimator(image_shape=(8, 8)))
    labels = pipeline.fit_predict(images.reshape(48, 64))
    assert np.array_equal(labels, model.labels_)
    assert pipeline.transform(images.reshape(48, 64)).shape == (48, 256)


def test_a_grid_search_over_the_number_of_clusters_needs_no_labels(estimator, images):
    pipeline = make_pipeline(FunctionTransformer(), estimator(epochs=3, image_shape=(8, 8)))
    grid = {"dcdc__n_clusters": np.array([2, 3])}
    search = GridSearchCV(pipeline, grid, cv=2).fit(images.reshape(48, 64))
    assert search.best_params_["dcdc__n_clusters"] in (2, 3)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(images.reshape(48, 64)).shape == (48,)


def test_a_training_that_diverges_says_which_setting_to_change(estimator, images):
    with pytest.raises(TrainingError, match=r'try a lower settings\["heads.learning_rate"\]'):
        estimator(settings={"heads.learning_rate": 1e30}).fit(images)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform", "score"])
def test_before_fitting_nothing_is_answered(estimator, images, method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(estimator(), method)(images)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_clusters": 0}, r"^n_clusters=0 must be at least 2$"),
        ({"n_clusters": 49}, r"n_samples=48 cannot fill n_clusters=49: give at least 49 images"),
        ({"preset": "nothing"}, "unknown preset 'nothing'"),
        ({"epochs": 0}, r"^epochs=0 must be at least 1$"),
        ({"epochs": 1.5}, r"^epochs=1.5 must be a whole number$"),
        ({"batch_size": 64}, "a batch of 64 is larger than the set of 48 images: lower batch_size"),
        ({"device": "tpu"}, r"^device='tpu' is not one of auto, cpu"),
        ({"n_init": 0}, "n_init=0 must be a whole number from 1"),
        ({"n_init": "auto"}, "n_init='auto' must be a whole number from 1"),
        ({"n_init_criterion": "best"}, "n_init_criterion='best' is not one of loss, agreement"),
        ({"settings": {"epoch": 3}}, "unknown config key 'epoch'; did you mean 'epochs'"),
        ({"settings": {"heads.epochs": 0}}, r"^epochs=0 must be at least 1$"),
        (
            {"settings": {"heads.temperature": -1}},
            r'^settings\["heads.temperature"\]=-1.0 must be above 0$',
        ),
        (
            {"settings": {"contrast.epochs": 1}},
            r'no phase contrast .*: list it in settings\["phases"\], such as contrast,heads$',
        ),
        ({"settings": {"train.epochs": 3}}, "'train.epochs' is called 'heads.epochs' now"),
        ({"settings": {"network.backbone": "smal"}}, "unknown backbone 'smal'; did you mean"),
        ({"settings": "heads.epochs=3"}, "is no dict"),
        ({"image_shape": 8}, "image_shape=8 must be a tuple"),
        ({"value_range": (1, 0)}, r"value_range=\(1, 0\) is no range"),
    ],
)
def test_a_wrong_parameter_is_named_by_fit_in_one_line(estimator, images, changes, message):
    model = estimator(**changes)  # the constructor only stores
    with pytest.raises(InputError, match=message) as caught:
        model.fit(images)
    assert "\n" not in str(caught.value)
    assert "--" not in str(caught.value)
