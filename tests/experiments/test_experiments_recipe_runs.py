"""Run folders that never ran: what is read from them, and what the table says of them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dcdc.config import to_mapping, with_values
from dcdc.experiments.paper import table
from dcdc.experiments.recipe_runs import Options, plan
from dcdc.experiments.reproduce_tables import epochs_text, markdown, record, write_table
from dcdc.experiments.rows import Figure, Standing, dotted, summarise
from dcdc.metrics import partition_health
from dcdc.run_folder import RunFolder

METRICS = {
    **{"n_images": 2, "n_clusters": 2, "scores": None, "epochs": 3, "seed": 0},
    "health": partition_health(np.eye(2)).to_dict(),
    "training_seconds": 12.4,
    "device": "a device",
    "torch": "2",
    "dcdc": "1",
    "commit": "abc",
}


def leave(run, *, accs=(0.2, 0.4, 0.3), done=True, **values) -> None:
    """A folder as a run with these ACCs leaves it."""
    config = with_values(run.named(), {"train.precision": "float32", **values})
    run.folder.mkdir(parents=True)
    RunFolder(run.folder).write_config(to_mapping(config))
    lines = [
        {
            "epoch": epoch,
            "seconds": 2.0,
            "cluster_head/sample_view": 5 - epoch,
            "active_clusters": 2,
            **{"acc": acc, "nmi": acc, "ari": acc},
        }
        for epoch, acc in enumerate(accs, start=1)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run.folder / "history.jsonl").write_text(text)
    if done:
        (run.folder / "metrics.json").write_text(json.dumps(METRICS))


@pytest.fixture
def options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Options(out=Path("out"), epochs=3)


def planned(name, options, row=0):
    return plan([table(name).rows[row]], options)


def test_a_folder_is_missing_begun_done_or_something_else(options):
    (run,) = planned("repeat", options)
    assert run.standing().state == "missing"
    leave(run, done=False)
    assert (run.standing().state, run.standing().epochs) == ("begun", 3)
    assert run.standing().chosen == {}
    (run.folder / "metrics.json").write_text(json.dumps(METRICS))
    outcome = run.standing()
    assert outcome.state == "done"
    assert outcome.chosen["last"].scores["acc"] == 0.3
    assert outcome.chosen["by_labels"].epoch == 2
    (run.folder / "config.json").write_text("{")
    assert run.standing().state == "other"
    assert "config.json is no JSON" in str(run.standing().fault)


def test_a_run_of_another_config_is_never_shown_as_this_one(options):
    (run,) = planned("repeat", options)
    leave(run, **{"heads.temperature": 0.9})
    outcome = run.standing()
    assert outcome.state == "other"
    assert "heads.temperature is 0.3, was 0.9" in str(outcome.fault)
    assert not outcome.chosen


def test_what_the_images_decide_and_where_it_ran_do_not_count_as_another_config(options):
    (run,) = planned("over-clustering", options)  # STL-10: mean and deviation are measured
    mean = {"network.mean": (0.1, 0.2, 0.3), "network.std": (0.1, 0.2, 0.3)}
    leave(run, **mean, **{"train.device": "cpu", "data.source": "elsewhere", "data.target": "kind"})
    assert run.standing().state == "done"
    assert run.standing().source == "elsewhere"


def test_a_source_that_is_given_must_be_the_runs_own(options):
    (run,) = planned("repeat", options)
    leave(run, **{"data.source": "elsewhere"})
    (given,) = planned(
        "repeat", Options(out=options.out, epochs=3, sources={"cifar100-20": "here"})
    )
    assert given.folder == run.folder
    assert "data.source is 'here', was 'elsewhere'" in str(given.standing().fault)


def test_a_shorter_run_is_read_from_the_longer_one_that_begins_with_it(options):
    (whole,) = planned("repeat", replace(options, epochs=None))
    (run,) = planned("repeat", options)
    leave(whole, accs=(0.2, 0.5, 0.3, 0.9), done=False)
    assert run.standing().state == "missing"  # a run that goes on may still be taken back
    (whole.folder / "metrics.json").write_text(json.dumps(METRICS))
    outcome = run.standing()
    assert (outcome.state, outcome.epochs, outcome.longer) == ("done", 3, whole.folder)
    assert outcome.chosen["last"].scores["acc"] == 0.3
    assert outcome.chosen["by_labels"].epoch == 2
    assert outcome.metrics["training_seconds"] == 6
    summary = summarise(plan(table("repeat").rows[:1], options), {})
    text = markdown(table("repeat"), summary, "")
    assert "| 3 of 200 epochs |" in text
    told = f"| the first epochs of {whole.folder.name} | a device | 1 (abc), torch 2 "
    assert f"{told}| `{whole.folder}/config.json` |" in text
    (found,) = record(table("repeat"), summary, "")["rows"][0]["runs"]
    assert found["is_beginning_of_longer"]
    assert found["config"] == f"{whole.folder}/config.json"
    leave(run, accs=(0.1, 0.1, 0.1))  # its own files come first
    assert run.standing().chosen["last"].scores["acc"] == 0.1


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: (whole.folder / "config.json").write_text("{"),
        lambda whole: (whole.folder / "metrics.json").write_text("{"),
        lambda whole: (whole.folder / "history.jsonl").write_text('{"epoch": 3}\n'),
    ],
)
def test_a_longer_run_that_cannot_be_read_is_no_beginning(options, damage):
    (whole,) = planned("repeat", replace(options, epochs=None))
    (run,) = planned("repeat", options)
    leave(whole)
    assert run.standing().state == "done"
    damage(whole)
    assert run.standing() == Standing("missing")


def test_a_longer_run_of_another_config_or_not_evaluated_there_is_no_beginning(options):
    (whole,) = planned("repeat", replace(options, epochs=None))
    (run,) = planned("repeat", options)
    leave(whole, **{"heads.temperature": 0.9})
    assert run.standing().state == "missing"
    shutil.rmtree(whole.folder)
    leave(whole)
    lines = [json.loads(line) for line in (whole.folder / "history.jsonl").open()]
    del lines[2]["active_clusters"]
    (whole.folder / "history.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    assert run.standing().state == "missing"


@pytest.mark.parametrize(
    "settings",
    [
        ("heads.schedule=cosine",),
        ("heads.over_clustering_first=0.5",),
        ("phases=heads,self_label", "self_label.epochs=1"),
    ],
)
def test_a_length_that_changes_the_first_epochs_makes_another_run(options, settings):
    (run,) = planned("repeat", options)
    assert run.longer == planned("repeat", replace(options, epochs=None))[0].folder
    assert planned("repeat", replace(options, settings=settings))[0].longer is None
    assert planned("repeat", replace(options, epochs=300))[0].longer is None


def test_a_table_says_what_was_run_and_a_dash_for_the_rest(options):
    seeds = Options(out=options.out, epochs=3, seeds=(0, 1, 2))
    runs = planned("repeat", seeds)
    leave(runs[0], accs=(0.2, 0.4, 0.3))
    leave(runs[1], accs=(0.2, 0.4, 0.5))
    leave(runs[2], accs=(0.9,), done=False)
    summary = summarise(plan(table("repeat").rows, seeds), {runs[2].folder: "no | more"})
    first = summary[0]
    assert str(first.figure("last", "acc")) == ".400 ± .141"
    assert str(first.figure("by_labels", "acc")) == ".450 ± .071"
    text = markdown(table("repeat"), summary, "")
    rows = [line for line in text.splitlines() if line.startswith("| CIFAR-100-20 | no sample")]
    assert rows[0] == (
        "| CIFAR-100-20 | no sample repeat | 0, 1 | 3 of 200 epochs "
        "| .400 ± .141 | .400 ± .141 | .400 ± .141 | .400 ± .141 | .400 ± .141 | .400 ± .141 "
        "| .450 ± .071 | .450 ± .071 | .450 ± .071 | - | .328 | - | 12 s |"
    )
    assert "| 0 | done | a device | 1 (abc), torch 2 | `out/cifar100-20/" in rows[1]
    assert "begun, at 1 of 3 epochs; failed: no \\| more" in rows[3]
    tiny = next(line for line in text.splitlines() if line.startswith("| Tiny-ImageNet | no"))
    assert tiny == f"| Tiny-ImageNet | no sample repeat {'| - ' * 12}| .163 | - | - |"
    assert "`dcdc fit cifar100-20 --preset cifar100-20-paper --seed 0 " in rows[1]
    for line in text.splitlines():
        if line.startswith("| CIFAR") or line.startswith("| Tiny"):
            assert line.replace("\\|", "").count("|") in (18, 9)


def test_the_record_holds_every_run_and_both_files_are_written(options):
    (run,) = planned("repeat", options)
    leave(run)
    summary = summarise(plan(table("repeat").rows, options), {})
    page, data = write_table(table("repeat"), summary, options)
    assert (page.name, data.name) == ("repeat-epochs-3.md", "repeat-epochs-3.json")
    assert json.loads(data.read_text()) == json.loads(
        json.dumps(record(table("repeat"), summary, ""))
    )
    row = json.loads(data.read_text())["rows"][0]
    assert row["ours"]["last"]["acc"] == {"mean": 0.3, "spread": None}
    assert row["paper"] == {"acc": 0.328, "nmi": None, "ari": None}
    (found,) = row["runs"]
    assert found["chosen"]["smallest_loss"] == {"epoch": 3, "nmi": 0.3, "acc": 0.3, "ari": 0.3}
    assert found["changes"] == {"heads.epochs": 3, "heads.n_repeats": 1}
    assert found["epochs_of_preset"] == 200
    assert found["commit"] == "abc"
    missing = json.loads(data.read_text())["rows"][2]["runs"][0]
    assert (missing["state"], missing["device"], missing["chosen"]) == ("missing", None, {})


def test_figures_and_epochs_as_text():
    figures = {0.6994: ".699", 1.0: "1.000", 0.0: ".000", -0.01: "-0.010"}
    assert [dotted(value) for value in figures] == list(figures.values())
    assert str(Figure(0.5)) == ".500"
    assert epochs_text(200, 200) == "200"
    assert epochs_text(60, 200) == "60 of 200 epochs"
    assert epochs_text(300, 200) == "300 instead of 200 epochs"
