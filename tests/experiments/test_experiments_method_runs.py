"""Settings as they are typed; folders: what names them, and when one is taken for the run that is
asked for."""

import json
import os

import pytest

from dcdc.cli.words import COMPARE
from dcdc.errors import InputError
from dcdc.experiments.method_runs import Features, read_settings, with_earlier
from dcdc.methods import find_method


def test_folders_are_named_by_method_changes_and_seed(make_run):
    assert make_run("k-means").folder.name == "k-means-seed-0"
    assert make_run("k-means", "k-means.n_init=3", seed=2).folder.name == "k-means-n-init-3-seed-2"
    named = make_run("sc", n_clusters=5, named={"clusters": 5, "size": 16})
    assert named.folder.name == "sc-clusters-5-size-16-seed-0"


def test_a_folder_is_missing_begun_done(make_run, leave_run):
    run, other = make_run("k-means"), make_run("sc")
    assert run.standing().state == "missing"
    leave_run(run, done=False)
    assert run.standing().state == "begun"
    leave_run(other, 0.25)
    assert other.standing().state == "done"
    assert other.standing().metrics["scores"]["acc"] == 0.25


def test_a_whole_table_has_the_runs_of_earlier_calls_on_the_same_images(make_run, leave_run):
    asked = [make_run("k-means"), make_run("dcdc")]
    earlier = [make_run("sc"), make_run("sc", seed=1), make_run("k-means", seed=3)]
    others = [
        make_run("ac", n_clusters=2, named={"clusters": 2}),  # another table's
        make_run("k-means", "k-means.n_init=3", seed=1),  # asked for otherwise now
    ]
    for run in (*earlier, *others, asked[0]):
        leave_run(run)
    leave_run(make_run("nmf"), done=False)
    (asked[0].folder.parent / "mine").mkdir()
    (asked[0].folder.parent / "mine" / "metrics.json").write_text("{}")
    found = with_earlier(asked, asked[0].folder.parent)
    assert [(run.method, run.seed) for run in found] == [
        *(("k-means", 0), ("k-means", 3), ("sc", 0), ("sc", 1), ("dcdc", 0))
    ]
    assert with_earlier(asked, asked[0].folder / "nowhere") == asked


def test_of_an_earlier_method_the_settings_count_that_it_had_last(make_run, leave_run):
    asked = make_run("k-means")
    for number, run in enumerate((make_run("sc"), make_run("sc", "sc.n_neighbours=5"))):
        os.utime(leave_run(run) / "metrics.json", (number, number))
    found = with_earlier([asked], asked.folder.parent)
    assert [run.settings["n_neighbours"] for run in found if run.method == "sc"] == [5]


def test_settings_that_are_tuples_are_known_again(make_run, leave_run):
    run = make_run("dcdc", "dcdc.heads.batch_size=16")
    leave_run(run)
    assert run.standing().state == "done"


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("n_clusters", 4, "n_clusters is 3, was 4"),
        ("settings", {"n_init": 1}, "settings.n_init is 10, was 1"),
        ("settings", {}, "settings.n_init is 10, was 'absent'"),
        ("data", {"source": "elsewhere"}, "was 'elsewhere'"),
    ],
)
def test_a_folder_of_something_else_is_left_alone(make_run, leave_run, key, value, told):
    run = make_run("k-means")
    config = leave_run(run) / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {key: value}))
    standing = run.standing()
    assert standing.state == "other"
    assert told in str(standing.fault)
    assert standing.fault.told(COMPARE).endswith(": move it away, or choose another --out")


def test_a_folder_with_an_older_name_of_a_setting_is_known_again(make_run, leave_run):
    run = make_run("ac")
    config = leave_run(run) / "config.json"
    config.write_text(config.read_text().replace("n_micro_clusters", "n_heaps"))
    assert run.standing().state == "done"


@pytest.mark.parametrize("method", ["k-means", "sc", "dcdc"])
def test_a_folder_of_an_older_format_is_known_again(make_run, leave_run, method):
    run = make_run(method)
    config = leave_run(run) / "config.json"
    for form in ({}, {"format": 1}):
        config.write_text(json.dumps(form | run.described()))
        assert run.standing().state == "done"


def test_a_folder_from_before_feature_vectors_is_known_again(make_run, leave_run):
    run = make_run("k-means")
    config = json.loads((leave_run(run) / "config.json").read_text())
    assert config["data"].keys() == {"source", "size", "target", "on_bad", "dataset"}
    assert "backbone" not in config
    assert run.standing().state == "done"


def test_a_run_on_the_features_of_a_backbone_is_another_one_without_published_figures(
    make_run, leave_run
):
    plain = make_run("k-means", dataset="cifar10")
    leave_run(plain)
    assert plain.row.published is not None
    features = Features("features of a network", "a-network", n_features=4)
    run = make_run("k-means", dataset="cifar10", features=features)
    assert run.row.published is None
    assert run.standing().state == "other"
    assert "backbone is 'a-network', was 'absent'" in str(run.standing().fault)


@pytest.mark.parametrize("file", ["config.json", "metrics.json"])
def test_damaged_files_are_told_not_run_over(make_run, leave_run, file):
    run = make_run("k-means")
    (leave_run(run) / file).write_text("{")
    assert run.standing().state == "other"
    assert file in str(run.standing().fault)


def test_a_methods_settings_are_what_its_function_takes_beside_the_task():
    assert find_method("k-means").settings() == {"n_init": 10}
    assert "device" not in find_method("dcdc").settings()


def test_values_are_read_by_the_types_of_the_signature():
    found = read_settings(
        ["k-means.n_init=3", "dcdc.epochs=5", "dcdc.recipe=digits"], ["k-means", "dcdc"]
    )
    assert found["k-means"] == {"n_init": 3}
    assert (found["dcdc"]["epochs"], found["dcdc"]["recipe"]) == (5, "digits")
    assert read_settings(["dcdc.epochs=none"], ["dcdc"])["dcdc"]["epochs"] is None


def test_dotted_keys_are_settings_of_the_run_that_dcdc_is():
    texts = ["dcdc.heads.batch_size=16", "dcdc.augment.crop_scale=0.2,1.0"]
    found = read_settings(texts, ["dcdc"])
    assert found["dcdc"]["changes"] == ("heads.batch_size=16", "augment.crop_scale=0.2,1.0")
    one = read_settings(["dcdc.changes=heads.batch_size=16"], ["dcdc"])
    assert one["dcdc"]["changes"] == ("heads.batch_size=16",)


def test_a_phase_that_only_some_recipes_have_is_taken():
    texts = ["dcdc.self_label.epochs=2", "dcdc.phases=contrast,heads,self_label"]
    assert read_settings(texts, ["dcdc"])["dcdc"]["changes"] == (
        "self_label.epochs=2",
        "phases=contrast,heads,self_label",
    )


def test_settings_are_checked_beside_each_other():
    texts = ["dcdc.heads.over_clustering_first=250", "dcdc.heads.epochs=300"]
    assert len(read_settings(texts, ["dcdc"])["dcdc"]["changes"]) == 2
    with pytest.raises(InputError, match="must be a share of the epochs"):
        read_settings(texts[:1], ["dcdc"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("n_init=3", "--set n_init=3 is not METHOD.KEY=VALUE"),
        ("sc.n_near=3", "--set sc.n_near=3 is for sc, which is not compared: name it in --methods"),
        ("k-means.n_init=many", "--set k-means.n_init=many must be a whole number"),
        ("dcdc.heads.epochs=x", "--set dcdc.heads.epochs=x must be a whole number"),
        ("dcdc.train.seed=3", "use --seeds and --first-seed"),
        ("dcdc.data.source=x", "use DATA"),
    ],
)
def test_the_command_line_hears_of_its_own_options(text, told):
    with pytest.raises(InputError) as refused:
        read_settings([text], ["k-means", "dcdc"])
    assert told in refused.value.told(COMPARE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "k-means.n_inti=3",
            "k-means has no setting 'n_inti'; did you mean 'n_init'? It takes n_init",
        ),
        ("k-means.seed=3", "k-means has no setting 'seed'"),
        ("k-means.heads.epochs=3", "k-means has no setting 'heads.epochs'"),
        ("k-means.n_init=many", "k-means.n_init = 'many' must be a whole number"),
        ("k-means.n_init=", "k-means.n_init = None must be a whole number"),
        ("kmeans.n_init=3", "unknown method 'kmeans'; did you mean 'k-means'?"),
        ("sc.n_near=3", "sc, which is not compared: name it in methods"),
        ("n_init=3", "is not METHOD.KEY=VALUE"),
        ("k-means.n_init", "is not METHOD.KEY=VALUE"),
        ("dcdc.train.epoch=3", "unknown config key 'train.epoch'; did you mean 'heads.epochs'?"),
        ("dcdc.heads.epochs=x", "dcdc.heads.epochs = 'x' must be a whole number"),
        ("dcdc.train.epochs=3", "'train.epochs' is called 'heads.epochs' now"),
        ("dcdc.phases=heads,heads", "dcdc.phases = 'heads,heads' must number phases"),
        ("dcdc.recipe=cifr10", "unknown preset 'cifr10'; did you mean 'cifar10'?"),
        ("dcdc.train.seed=3", "use seeds and first_seed"),
        ("dcdc.data.size=8", "use data.size"),
    ],
)
def test_what_a_method_does_not_take_is_refused_with_a_hint(text, message):
    with pytest.raises(InputError) as refused:
        read_settings([text], ["k-means", "dcdc"])
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
