"""`dcdc refine`: a new run beside the corrected one, and a line for what cannot be learnt."""

import json
import os
import shutil
import signal

import numpy as np
import pytest

from corrected_runs import answers_of, correct, mixed_vectors
from dcdc.config import RunConfig, to_mapping
from dcdc.run_folder import RunFolder, refined_name

MOVED = {"kind": "move", "to": 2, "rows": [2, 5, 8, 11]}
QUICK = ("--device", "cpu", "--no-report", "--set", "refine.epochs=2")


def refused(dcdc, tmp_path, *arguments):
    """The one line of a command that must be refused, and leaves nothing new."""
    before = sorted(tmp_path.rglob("*"))
    code, out, err = dcdc("refine", *arguments)
    assert (code, out) == (2, ""), err
    (line,) = [each for each in err.splitlines() if each.startswith("dcdc: ")]
    assert "Traceback" not in err
    assert sorted(tmp_path.rglob("*")) == before
    return line


def test_a_new_run_beside_the_corrected_one(dcdc, mixed_run, tmp_path):
    correct(mixed_run, dict(MOVED))
    before = {path: path.read_bytes() for path in mixed_run.rglob("*") if path.is_file()}
    code, out, err = dcdc("refine", mixed_run, *QUICK)
    assert code == 0, err
    assert "before" in out
    assert "refined" in out
    assert "learnt from 1 correction that people made" in out
    assert "the network answers 4 of 4 corrected images as told" in out
    assert "follow those that were corrected" in err
    assert {path: path.read_bytes() for path in before} == before
    assert len(before) == sum(path.is_file() for path in mixed_run.rglob("*"))
    refined = RunFolder.open(tmp_path / "mixed-run-refined")
    scores = [folder.read_metrics()["scores"]["acc"] for folder in (RunFolder(mixed_run), refined)]
    assert scores[0] < 0.7
    assert scores[1] > 0.95
    code, out, _ = dcdc("evaluate", refined.path)
    assert (code, "learnt from 1 correction" in out) == (0, True)
    code, _, err = dcdc("refine", mixed_run, *QUICK, "--quiet")
    assert (code, err) == (0, "")
    assert RunFolder.open(tmp_path / "mixed-run-refined-2").metrics_file.exists()


def test_edits_of_another_file_and_another_place(dcdc, mixed_run, tmp_path):
    correct(mixed_run, dict(MOVED), {"kind": "outside", "rows": [0, 1]})
    shutil.move(mixed_run / "edits.json", tmp_path / "said.json")
    code, _, err = dcdc("refine", mixed_run, "--edits", "said.json", "--run", "new/one", *QUICK)
    assert code == 0, err
    assert "2 images in no cluster" in err
    assert (answers_of(tmp_path / "new" / "one").clusters[:2] == -1).all()
    assert "--overwrite" in refused(
        dcdc, tmp_path, mixed_run, "--edits", "said.json", "--run", "new/one"
    )


def test_names_of_new_runs(tmp_path):
    (tmp_path / "photos").mkdir()
    assert refined_name(tmp_path / "photos") == tmp_path / "photos-refined"
    (tmp_path / "photos-refined").mkdir()
    for run in ("photos", "photos-refined", "photos-refined-7"):
        assert refined_name(tmp_path / run) == tmp_path / "photos-refined-2"


def test_no_edits_and_names_alone_teach_nothing(dcdc, mixed_run, tmp_path):
    assert "no edits to learn from (none)" in refused(dcdc, tmp_path, mixed_run)
    correct(mixed_run, {"kind": "name", "cluster": 0, "name": "owls"})
    assert "names alone" in refused(dcdc, tmp_path, mixed_run)


def test_broken_edits(dcdc, mixed_run, tmp_path):
    correct(mixed_run, dict(MOVED))
    file = mixed_run / "edits.json"
    text = file.read_text()
    for broken in (text[:-20], text.replace('"to": 2', '"to": 9'), "[]", ""):
        file.write_text(broken)
        line = refused(dcdc, tmp_path, mixed_run)
        assert str(file) in line
    edits = json.loads(text)
    del edits["checksum"]
    edits["edits"][0]["to"] = 9
    file.write_text(json.dumps(edits))
    assert "there is no cluster 9" in refused(dcdc, tmp_path, mixed_run)
    assert "none.json" in refused(dcdc, tmp_path, mixed_run, "--edits", "none.json")


def test_edits_that_contradict_each_other_or_leave_one_cluster(dcdc, mixed_run, tmp_path):
    correct(mixed_run, {"kind": "together", "rows": [0, 1]}, {"kind": "apart", "rows": [0, 1]})
    assert "belong together, and apart" in refused(dcdc, tmp_path, mixed_run)
    (mixed_run / "edits.json").unlink()
    correct(mixed_run, {"kind": "merge", "clusters": [0], "into": 1})
    assert "two are the least" in refused(dcdc, tmp_path, mixed_run)


def test_edits_of_another_training(dcdc, mixed_run, mixed_image_run, tmp_path):
    correct(mixed_run, dict(MOVED))
    line = refused(dcdc, tmp_path, mixed_image_run, "--edits", mixed_run / "edits.json")
    assert "does not fit the run" in line


def test_runs_that_cannot_be_refined(dcdc, mixed_run, tmp_path):
    assert "is not a run folder" in refused(dcdc, tmp_path, tmp_path)
    correct(mixed_run, dict(MOVED))
    assert "stays as it is" in refused(dcdc, tmp_path, mixed_run, "--run", mixed_run)
    RunFolder.create(tmp_path / "begun").write_config(to_mapping(RunConfig(n_clusters=3)))
    assert "has no assignments yet" in refused(dcdc, tmp_path, tmp_path / "begun")
    config = json.loads((mixed_run / "config.json").read_text())
    (mixed_run / "model.safetensors").unlink()
    assert "model.safetensors" in refused(dcdc, tmp_path, mixed_run)
    config["data"]["source"] = ""
    (mixed_run / "config.json").write_text(json.dumps(config))
    assert "was given its images in Python" in refused(dcdc, tmp_path, mixed_run)


def test_a_source_that_changed_or_went(dcdc, mixed_run, tmp_path):
    correct(mixed_run, dict(MOVED))
    config = json.loads((mixed_run / "config.json").read_text())
    config["data"]["source"] = str(tmp_path / "moved.npz")
    (mixed_run / "config.json").write_text(json.dumps(config))
    assert "moved.npz" in refused(dcdc, tmp_path, mixed_run)
    vectors, kinds = mixed_vectors()
    np.savez(tmp_path / "moved.npz", vectors=vectors[:-1], targets=kinds[:-1])
    assert "other names than" in refused(dcdc, tmp_path, mixed_run)
    vectors[7, 3] += 1
    np.savez(tmp_path / "moved.npz", vectors=vectors, targets=kinds)
    assert "other" in (line := refused(dcdc, tmp_path, mixed_run))
    assert "was trained on" in line


def test_wrong_settings(dcdc, mixed_run, tmp_path):
    correct(mixed_run, dict(MOVED))
    line = refused(dcdc, tmp_path, mixed_run, "--set", "refine.label_share=2")
    assert "refine.label_share" in line


@pytest.mark.slow
def test_after_a_kill_it_goes_on(dcdc, mixed_run, tmp_path, monkeypatch):
    correct(mixed_run, dict(MOVED))
    from dcdc.engine import trainer

    def stop(*_):
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patched:
        patched.setattr(trainer, "append_history", stop)
        code, _, err = dcdc("refine", mixed_run, *QUICK)
    assert code == 143
    assert "--resume" in err
    code, _, err = dcdc("fit", "--run", "mixed-run-refined", "--resume", "--no-report")
    assert code == 0, err
    assert (answers_of(tmp_path / "mixed-run-refined").clusters[[2, 5, 8, 11]] == 2).all()
