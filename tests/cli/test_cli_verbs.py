"""The command line in this process: what it prints, writes and returns."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import dcdc as package
from dcdc.cli.report import _page_of


def test_fit_leaves_a_whole_run_folder_and_says_where(dcdc, tiny_file, tiny_flags, tmp_path):
    code, out, err = dcdc("fit", tiny_file, *tiny_flags, "--baseline", "k-means")
    assert code == 0
    names = {path.name for path in (tmp_path / "runs" / "tiny").iterdir()}
    assert names == {
        *("config.json", "history.jsonl", "checkpoint", "model.safetensors", "hierarchy.json"),
        *("assignments.parquet", "metrics.json", "README.md", "report.html", "figures"),
        *("sample.npz", "map.npz"),
    }
    lines = out.splitlines()
    assert lines[0].split() == ["ACC", "NMI", "ARI"]
    assert lines[1].startswith("K-Means")
    assert lines[2].startswith("DCDC")
    assert "run folder: runs/tiny" in out
    assert "report:     runs/tiny/report.html" in out
    assert "48 images of 8x8x1, 3 classes to score against, 3 clusters to find" in err


@pytest.mark.slow
def test_the_report_may_be_left_for_later(dcdc, tiny_file, tiny_flags, tmp_path):
    code, out, err = dcdc("fit", tiny_file, "--run", "run", "--no-report", *tiny_flags)
    assert code == 0, err
    assert "dcdc report run" in out
    assert not (tmp_path / "run" / "report.html").exists()
    assert dcdc("report", "run")[0] == 0
    assert (tmp_path / "run" / "report.html").exists()


def test_without_a_terminal_there_are_no_control_codes(dcdc, tiny_file, tiny_flags):
    _, out, err = dcdc("fit", tiny_file, *tiny_flags, "--no-report")
    assert "\x1b" not in out + err
    assert "\r" not in out + err
    assert err.count("epoch") <= 2 + 10
    _, out, err = dcdc("fit", tiny_file, *tiny_flags, "--run", "again", "--quiet", "--no-report")
    assert err == ""


def test_on_a_terminal_there_is_a_progress_bar(on_terminal, tiny_file, tiny_flags, tmp_path):
    more = (*tiny_flags, "--epochs", "10", "--no-report")
    text = on_terminal("fit", tiny_file, "--run", tmp_path / "r", *more)
    for wanted in ("epoch", "/10", "3/3 clusters", "images/s"):
        assert wanted in text, wanted
    # Of whichever head trained when the bar was drawn.
    assert re.search(r"(over|cluster)\.sample", text)


def test_config_file_flags_and_set_are_laid_over_each_other(dcdc, tiny_file, tiny_flags, tmp_path):
    (tmp_path / "run.toml").write_text(
        "[train]\nseed = 5\n[heads]\nepochs = 9\nlearning_rate = 0.002\nn_repeats = 1\n"
    )
    code, _, err = dcdc(
        *("fit", tiny_file, *tiny_flags, "--config", "run.toml", "--epochs", "3", "--no-report"),
        *("--set", "heads.learning_rate=0.003", "--set", "heads.temperature=0.7"),
    )
    assert code == 0, err
    config = json.loads((tmp_path / "runs/tiny/config.json").read_text())
    assert config["train"]["seed"] == 5
    (heads,) = config["phases"]
    assert heads["kind"] == "heads"
    assert heads["epochs"] == 3
    assert heads["learning_rate"] == 0.003
    assert heads["temperature"] == 0.7


def test_phases_are_listed_by_a_flag_or_as_tables_of_a_config_file(
    dcdc, tiny_file, tiny_flags, tmp_path
):
    listed = ("--set", "phases=contrast,heads", "--set", "contrast.epochs=1")
    listed = (*listed, "--set", "contrast.batch_size=16", "--run", "listed")
    code, _, err = dcdc("fit", tiny_file, *tiny_flags, *listed, "--no-report")
    assert code == 0, err
    (tmp_path / "run.toml").write_text(
        '[[phases]]\nkind = "contrast"\nepochs = 1\nbatch_size = 16\n[[phases]]\nkind = "heads"\n'
    )
    tables = ("--config", "run.toml", "--run", "tables", "--no-report")
    code, _, err = dcdc("fit", tiny_file, *tiny_flags, *tables)
    assert code == 0, err
    found = [
        json.loads((tmp_path / name / "config.json").read_text()) for name in ("listed", "tables")
    ]
    for config in found:
        assert [(table["kind"], table["epochs"]) for table in config["phases"]] == [
            ("contrast", 1),
            ("heads", 4),
        ]
    history = [json.loads(line) for line in (tmp_path / "listed/history.jsonl").open()]
    assert [line["phase"] for line in history] == ["contrast", *["heads"] * 4]


def test_a_config_file_may_name_the_images(dcdc, tiny_file, tiny_flags, tmp_path):
    (tmp_path / "run.toml").write_text(f"[data]\nsource = {str(tiny_file)!r}\n")
    code, _, err = dcdc("fit", "--config", "run.toml", "--quiet", "--no-report", *tiny_flags)
    assert code == 0, err
    assert (tmp_path / "runs" / "tiny" / "metrics.json").exists()


def test_evaluate_scores_the_run_itself_and_other_images(dcdc, finished, tiny_file):
    code, own, _ = dcdc("evaluate", finished)
    assert code == 0
    code, other, _ = dcdc("evaluate", finished, tiny_file)
    assert code == 0
    assert own == other
    assert own.splitlines()[1].startswith("DCDC")


@pytest.mark.slow
def test_without_labels_everything_works_and_reports_no_acc(dcdc, tiny_flags, tmp_path, tiny_set):
    np.save(tmp_path / "plain.npy", tiny_set.images)
    code, out, _ = dcdc("fit", "plain.npy", *tiny_flags)
    assert code == 0
    assert "no targets" in out
    assert "DCDC" not in out
    code, _, err = dcdc("evaluate", "runs/plain")
    assert (code, err.count("\n")) == (2, 1)
    assert "without targets" in err


@pytest.mark.parametrize("how", [[], ["--preset", "digits"]])
def test_of_two_label_columns_the_clusters_tell(dcdc, write_hub, tiny_set, tiny_flags, how):
    hub = write_hub(fine_label=range(48), coarse_label=tiny_set.targets)
    code, out, err = dcdc("fit", hub, "--clusters", "3", *how, *tiny_flags, "--no-report")
    assert code == 0, err
    assert "3 classes to score against (column coarse_label)" in err
    assert "--target" not in err
    assert "ACC" in out
    (run,) = Path("runs").iterdir()
    assert json.loads((run / "config.json").read_text())["data"]["target"] == "coarse_label"


def test_the_report_is_drawn_again_without_images_that_are_gone(dcdc, finished, tiny_file):
    report = finished / "report.html"
    with_images = report.read_text()
    config = json.loads((finished / "config.json").read_text())
    config["data"]["source"] = f"{tiny_file}.gone"
    (finished / "config.json").write_text(json.dumps(config))
    code, _, err = dcdc("report", finished)
    assert code == 0
    assert "not at hand" in err
    assert len(report.read_text()) < len(with_images)


@pytest.mark.slow
def test_an_older_run_gets_its_sample_when_its_images_are_at_hand(dcdc, finished):
    written = (finished / "sample.npz").read_bytes()
    for name in ("sample.npz", "map.npz", "figures/map.png", "figures/affinity.svg"):
        (finished / name).unlink()
    code, _, err = dcdc("report", finished)
    assert code == 0
    assert "the model makes one, once" in err
    assert (finished / "sample.npz").read_bytes() == written
    assert (finished / "map.npz").exists()
    assert (finished / "figures" / "map.png").exists()
    assert (finished / "figures" / "affinity.svg").exists()
    _, _, err = dcdc("report", finished)
    assert "sample" not in err


@pytest.mark.slow
def test_an_older_run_without_images_or_model_is_drawn_without_a_map(dcdc, finished, tiny_file):
    for name in ("sample.npz", "map.npz", "model.safetensors"):
        (finished / name).unlink()
    code, _, err = dcdc("report", finished, "--quiet")
    assert code == 0
    assert "no map and no affinities" in err
    config = json.loads((finished / "config.json").read_text())
    config["data"]["source"] = f"{tiny_file}.gone"
    (finished / "config.json").write_text(json.dumps(config))
    assert dcdc("report", finished)[0] == 0
    assert not (finished / "sample.npz").exists()


def test_a_damaged_sample_is_one_line_or_made_again(dcdc, finished, tiny_file):
    whole = (finished / "sample.npz").read_bytes()
    (finished / "sample.npz").write_bytes(b"torn")
    code, _, err = dcdc("predict", finished, tiny_file)
    assert (code, err.count("\n")) == (2, 1)
    assert "sample.npz is damaged (File is not a zip file): remove it, or make it again" in err
    code, _, err = dcdc("report", finished)
    assert code == 0
    assert "sample.npz is damaged (File is not a zip file): the model makes one, once" in err
    assert (finished / "sample.npz").read_bytes() == whole


def test_runs_are_compared_on_one_page(dcdc, finished, tiny_file, tiny_flags, tmp_path):
    other = ("--run", "runs/other", "--seed", "1", "--set", "heads.temperature=0.3", "--quiet")
    assert dcdc("fit", tiny_file, *tiny_flags, *other, "--no-report")[0] == 0
    before = {file: file.stat().st_mtime_ns for file in finished.rglob("*")}
    code, out, err = dcdc("report", finished, "runs/other")
    assert (code, out, err) == (0, "comparison: compare-tiny-other.html\n", "")
    page = (tmp_path / "compare-tiny-other.html").read_text()
    assert "<td>0.3</td>" in page
    assert dcdc("report", finished, "runs/other", "--out", "pages/both.html")[0] == 0
    assert (tmp_path / "pages" / "both.html").read_text() == page
    assert {file: file.stat().st_mtime_ns for file in finished.rglob("*")} == before
    shutil.copytree("runs/other", "elsewhere/other")
    assert dcdc("report", finished, "elsewhere/other")[1] == (
        "comparison: compare-tiny-elsewhere-other.html\n"
    )
    assert (tmp_path / "compare-tiny-other.html").read_text() == page


def test_pages_of_many_runs_have_names_that_a_disk_takes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = [Path(f"runs/{'long' * 9}-{number}") for number in range(9)]
    names = {_page_of(runs).name, _page_of(runs[1:]).name, _page_of(runs[::-1]).name}
    assert len(names) == 3
    assert max(map(len, names)) < 100


def test_a_saved_models_folder_is_known_for_what_it_is(dcdc, finished, tiny_file, tmp_path):
    package.load(finished, "cpu").save(tmp_path / "saved")
    before = {file: file.read_bytes() for file in (tmp_path / "saved").iterdir()}
    for arguments, told in (
        (("fit", "--run", "saved", "--resume"), "saved is a saved model's folder, which has no"),
        (("fit", tiny_file, "--run", "saved"), "saved holds a saved model: replace it by --overwr"),
        (("report", "saved"), "saved is a saved model's folder, which keeps no assignments: give"),
        (("report", finished, "saved"), "which keeps no assignments"),
        (("evaluate", "saved"), "which keeps no assignments"),
    ):
        code, out, err = dcdc(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert told in err
        assert "finish it by" not in err
    assert {file: file.read_bytes() for file in (tmp_path / "saved").iterdir()} == before


def test_runs_that_cannot_be_compared_are_one_line(dcdc, finished, tmp_path):
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "config.json").write_text("{}")
    for arguments, told in (
        (("report", finished, finished), "is given twice"),
        (("report", finished, "nowhere"), "nowhere is not a run folder"),
        (("report", finished, unfinished), "--resume"),
        (("report", finished, unfinished, "--out", "page.txt"), "must end in .html"),
        (("report", finished, "--out", "page.html"), "--out is for"),
    ):
        code, out, err = dcdc(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert told in err
    assert not list(tmp_path.glob("*.html"))


def test_presets_are_listed_and_shown(dcdc):
    _, out, _ = dcdc("presets")
    assert "cifar10-paper" in out
    _, out, _ = dcdc("presets", "cifar10-paper")
    assert "heads.temperature = 0.5" in out


def test_a_recipe_that_the_machine_cannot_bear_is_passed_over_aloud(tiny_config, tiny_set, capfd):
    from dcdc.cli.recipe_lines import announce
    from dcdc.prepare.prepare_run import Prepared
    from dcdc.prepare.resolve import resolve

    announce(Prepared(resolve(tiny_config, tiny_set), tiny_set, None, "cifar10"), 1)
    assert "made for a GPU: ask for it by --preset cifar10" in capfd.readouterr().err


def test_resume_of_a_finished_run_trains_nothing_more(dcdc, finished, tiny_file, tiny_flags):
    code, out, err = dcdc("fit", "--run", finished, "--resume", "--no-report")
    assert code == 0, err
    assert "trained 4 epochs" in out
    code, _, err = dcdc("fit", tiny_file, "--run", finished, "--resume", *tiny_flags, "--no-report")
    assert code == 0, err


def test_fit_sorts_the_files_that_it_groups(dcdc, tiny_set, tiny_flags, tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    for index, pixels in enumerate(tiny_set.images):
        Image.fromarray(pixels[..., 0]).save(photos / f"{index:02}.png")
    (photos / "bad.png").write_text("no image")
    flags = ("--run", "run", "--no-report", "--quiet", "--on-bad", "skip")
    code, out, err = dcdc("fit", "photos", *tiny_flags, *flags, "--copy-to", "photos/sorted")
    assert (code, out) == (2, "")
    assert "photos/sorted/cluster-00 lies in photos" in err
    assert not (tmp_path / "run").exists()
    code, out, _ = dcdc("fit", "photos", *tiny_flags, *flags, "--copy-to", "sorted")
    assert code == 0
    assert out.endswith("48 files copied: sorted\n")
    table = pq.read_table("run/assignments.parquet").to_pylist()
    for row in table:
        copy = tmp_path / "sorted" / f"cluster-{row['cluster']:02}" / row["name"]
        assert copy.read_bytes() == (photos / row["name"]).read_bytes()
    assert len(list((tmp_path / "sorted").rglob("*.png"))) == 48
    code, out, _ = dcdc("fit", "--resume", *flags, "--link-to", "links")
    assert out.endswith("48 files linked: links\n")


def test_fit_has_no_files_to_sort_in_an_array(dcdc, tiny_file, tiny_flags, tmp_path):
    code, out, err = dcdc("fit", tiny_file, *tiny_flags, "--copy-to", "sorted")
    assert (code, out) == (2, "")
    assert (
        "tiny.npz holds no image files: --copy-to, --link-to, --xmp and --fiftyone are for" in err
    )
    assert not list(tmp_path.iterdir())


def test_a_source_is_the_same_by_all_its_names(dcdc, tiny_set, tiny_flags, tmp_path):
    (tmp_path / "photos").mkdir()
    for index, pixels in enumerate(tiny_set.images):
        Image.fromarray(pixels[..., 0]).save(tmp_path / "photos" / f"{index}.png")
    (tmp_path / "others").symlink_to("photos")
    flags = ("--run", "run", "--no-report", "--quiet")
    assert dcdc("fit", "photos", *tiny_flags, *flags)[0] == 0
    for name in ("photos/", "./photos", tmp_path / "photos", "others"):
        code, _, err = dcdc("fit", name, "--resume", *flags)
        assert (code, err) == (0, "")
    shutil.copytree("photos", "copies")
    code, _, err = dcdc("fit", "copies/", "--resume", *flags)
    assert code == 2
    assert "data.source is 'copies/', was 'photos'" in err


def test_a_folder_of_photos_is_one_argument(dcdc, tmp_path, tiny_set):
    from PIL import Image

    for index, pixels in enumerate(tiny_set.images):
        folder = tmp_path / "photos" / f"kind-{tiny_set.targets[index]}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[..., 0]).save(folder / f"{index}.png")
    code, out, err = dcdc(
        *("fit", "photos", "--clusters", "3", "--epochs", "6"),
        *("--set", "heads.over_clustering_first=3"),
        "--no-report",
    )
    assert code == 0, err
    assert "settings chosen from the images" in err
    assert "DCDC" in out


def test_help_is_quick_because_torch_stays_out():
    program = (
        "import sys, dcdc, dcdc.cli; "
        "assert not {'torch', 'numpy', 'sklearn', 'matplotlib'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_training_on_a_cpu_does_without_torchs_compiler(finished_once):
    """A second and a half, and 140 MB."""
    imported = (finished_once.parent / "imports").read_text()
    assert re.search(r"\| +torch\n", imported)
    assert "torch._dynamo" not in imported


@pytest.mark.parametrize("by", ["its restart", "its job"])
def test_what_torchrun_starts_again_goes_on(dcdc, finished, tiny_file, tiny_flags, monkeypatch, by):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "photos")
    command = ["fit", tiny_file, "--run", finished, "--quiet", "--no-report", *tiny_flags]
    code, _, err = dcdc(*command)
    assert code == 2
    assert "exists" in err
    if by == "its job":
        (finished / "job").write_text("photos\n")
    else:
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    code, out, err = dcdc(*command)
    assert code == 0, err
    assert "4 epochs" in out


def test_torchruns_restart_does_not_go_on_with_a_run_that_was_to_be_overwritten(
    dcdc, finished, tiny_file, tiny_flags, monkeypatch
):
    """Its first start came to its end before the older run did."""
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    command = ["fit", tiny_file, "--run", finished, "--quiet", "--no-report", "--overwrite"]
    code, _, err = dcdc(*command, *tiny_flags, "--seed", 8)
    assert code == 0, err
    history = (finished / "history.jsonl").read_bytes()
    assert json.loads((finished / "metrics.json").read_text())["seed"] == 8
    assert dcdc(*command, *tiny_flags, "--seed", 8)[0] == 0  # now it is its own
    assert (finished / "history.jsonl").read_bytes() == history
