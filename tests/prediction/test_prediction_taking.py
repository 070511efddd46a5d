"""What is taken away of a run is what people corrected, under the names they gave."""

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from dcdc.config import RunConfig, to_mapping, with_values
from dcdc.engine.edits import Edits, RunAnswers
from dcdc.errors import InputError
from dcdc.metrics import partition_health
from dcdc.prediction.run_answers import read_corrected, run_files
from dcdc.prediction.sidecars import Sidecars
from dcdc.prediction.sorting import Sorting
from dcdc.prediction.taking import Taking, take_away
from dcdc.run_folder import RunFolder
from dcdc.runtime.csv_text import unguarded

NAMES = ["=1+1.jpg", "a/1.jpg", "a/2.jpg", "b/1.jpg"]
CLUSTERS = np.array([0, 0, 1, 1])


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    return folder


def written(path, source, names=NAMES, targets=None):
    run = RunFolder.create(path)
    values = {"n_clusters": 2, "data.source": str(source)}
    run.write_config(to_mapping(with_values(RunConfig(), values)))
    n = len(names)
    runner_up = (1 - CLUSTERS[:n], np.full(n, 0.25))
    run.write_assignments(names, CLUSTERS[:n], np.linspace(0.75, 0.5, n), targets, runner_up)
    health = partition_health(np.eye(2)[CLUSTERS[:n]]).to_dict()
    run.write_metrics(
        {
            **{"n_images": n, "n_clusters": 2, "scores": None, "epochs": 1, "health": health},
            **{"seed": 0, "training_seconds": 1.0, "device": "cpu", "dcdc": "0.2.0"},
        }
    )
    return run


@pytest.fixture
def run(tmp_path, photos):
    """Image 1 belongs to none, image 3 is in a cluster of its own."""
    run = written(tmp_path / "run", photos)
    run.write_names({0: "@cats"})
    answers = RunAnswers(NAMES, CLUSTERS, 2)
    edits = Edits(answers.digest)
    for edit in (
        {"kind": "outside", "images": [[1, NAMES[1]]]},
        {"kind": "split", "cluster": 1, "parts": [[[3, NAMES[3]]]]},
        {"kind": "name", "cluster": 2, "name": "owls"},
    ):
        edits = edits.with_edit(edit, answers)
    run.write_edits(edits)
    return run


def take(run, **wishes):
    found = read_corrected(run)
    files = run_files(run.read_flat_config(), found.names)
    return take_away(Taking(**wishes), found, files, key="test")


def test_folders_are_of_the_corrected_clusters(run, tmp_path):
    done = take(run, sorting=Sorting(tmp_path / "out"))
    files = sorted(
        str(file.relative_to(tmp_path / "out")) for file in (tmp_path / "out").rglob("*.jpg")
    )
    assert files == ["@cats/=1+1.jpg", "cluster-01/a_2.jpg", "outliers/a_1.jpg", "owls/b_1.jpg"]
    assert done.sorted.n_placed == 4
    assert take(run, sorting=Sorting(tmp_path / "out")).sorted.n_there == 4


def test_a_table_for_spreadsheets(run, tmp_path):
    take(run, table=tmp_path / "out" / "t.csv")
    content = (tmp_path / "out" / "t.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbfname,cluster,cluster_name,corrected,answered_cluster,")
    rows = list(csv.DictReader(content.decode("utf-8-sig").splitlines()))
    assert rows[0]["name"] == "'=1+1.jpg"
    assert unguarded(rows[0]["name"]) == NAMES[0]
    assert rows[0]["cluster_name"] == "'@cats"
    assert [row["cluster"] for row in rows] == ["0", "", "1", "2"]
    assert [row["corrected"] for row in rows] == ["false", "true", "false", "true"]
    assert [row["answered_cluster"] for row in rows] == ["0", "0", "1", "1"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["t.csv"]


def test_the_same_rows_in_other_formats(run, tmp_path):
    for suffix in ("parquet", "jsonl"):
        take(run, table=tmp_path / f"t.{suffix}")
    table = pq.read_table(tmp_path / "t.parquet").to_pylist()
    lines = (tmp_path / "t.jsonl").read_text().splitlines()
    assert [json.loads(line)["cluster"] for line in lines] == [0, None, 1, 2]
    assert [row["cluster"] for row in table] == [0, None, 1, 2]
    assert table[3]["cluster_name"] == "owls"


def test_classes_that_came_from_folders_are_called_so(tmp_path):
    names = ["a/1.jpg", "a/2.jpg", "b/1.jpg"]
    by_folder = written(tmp_path / "one", "", names, ["a", "a", "b"])
    assert "sub_folder" in read_corrected(by_folder).rows.column_names
    labelled = written(tmp_path / "two", "", names, ["a", "b", "b"])
    assert "target" in read_corrected(labelled).rows.column_names


def test_labels_for_fiftyone(run, photos, tmp_path):
    take(run, fiftyone=tmp_path / "labels.json")
    found = json.loads((tmp_path / "labels.json").read_text())
    assert found["classes"] == ["@cats", "cluster 1", "owls"]
    assert found["labels"][str(photos / "a/1.jpg")] is None
    owl = found["labels"][str(photos / "b/1.jpg")]
    assert (owl["label"], owl["attributes"]["cluster"]) == ("owls", 2)
    assert owl["attributes"]["corrected"] is True
    assert len(found["labels"]) == 4


def test_sidecars_beside_the_photos_or_in_a_folder(run, photos, tmp_path):
    assert take(run, sidecars=Sidecars(tmp_path / "xmp")).n_sidecars == 3
    assert not (tmp_path / "xmp/a/1.jpg.xmp").exists()
    assert "<rdf:li>owls</rdf:li>" in (tmp_path / "xmp/b/1.jpg.xmp").read_text()
    assert take(run, sidecars=Sidecars(tmp_path / "xmp")).n_sidecars == 0
    before = {file: file.read_bytes() for file in photos.rglob("*.jpg")}
    assert take(run, sidecars=Sidecars(photos)).n_sidecars == 3
    assert (photos / "b/1.jpg.xmp").exists()
    assert {file: file.read_bytes() for file in photos.rglob("*.jpg")} == before


def test_one_sidecar_that_is_none_keeps_all_from_being_written(run, photos, tmp_path):
    (photos / "b/1.jpg.xmp").write_text("my notes")
    with pytest.raises(InputError, match=r"b/1.jpg.xmp is no XMP sidecar .*nothing was written"):
        take(run, sidecars=Sidecars(photos), table=tmp_path / "t.csv")
    assert [file.name for file in photos.rglob("*.xmp")] == ["1.jpg.xmp"]
    assert not (tmp_path / "t.csv").exists()


def test_images_that_would_share_a_sidecar(tmp_path, photos):
    (photos / "a/1.png").write_bytes(b"")
    run = written(tmp_path / "run", photos, ["a/1.jpg", "a/1.png"])
    with pytest.raises(InputError, match=r"share the sidecar .*1.xmp"):
        take(run, sidecars=Sidecars(tmp_path / "xmp", like_lightroom=True))


def test_nothing_is_overwritten(run, tmp_path):
    for name, wish in (("t.csv", "table"), ("l.json", "fiftyone")):
        (tmp_path / name).write_text("mine")
        with pytest.raises(InputError, match=f"{name} exists"):
            take(run, **{wish: tmp_path / name})
        assert (tmp_path / name).read_text() == "mine"
    with pytest.raises(InputError, match="must end in"):
        take(run, table=tmp_path / "t.xlsx")


def test_an_image_that_is_gone_is_named(run, photos, tmp_path):
    (photos / "b/1.jpg").unlink()
    with pytest.raises(InputError, match=r"b/1.jpg is no longer in"):
        take(run, fiftyone=tmp_path / "labels.json")
    assert not (tmp_path / "labels.json").exists()
    take(run, table=tmp_path / "t.csv")  # needs no files


def test_a_source_without_files(tmp_path):
    run = written(tmp_path / "run", "digits", ["digits/0", "digits/1"])
    with pytest.raises(InputError, match="digits holds no image files"):
        take(run, sidecars=Sidecars(tmp_path))
