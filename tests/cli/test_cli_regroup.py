"""`dcdc fit --run RUN --clusters 8`: a finished run grouped anew, beside the earlier answer."""

QUICK = ("--epochs", "2", "--set", "network.sub_heads=2", "--device", "cpu")


def test_another_number_is_a_run_beside_the_first(dcdc, finished):
    before = (finished / "assignments.parquet").read_bytes()
    group = ("fit", "--run", finished, "--clusters", "2", *QUICK)
    code, told, _ = dcdc(*group)
    assert code == 0
    assert f"run folder: {finished}-2" in told
    assert (finished.with_name("tiny-2") / "report.html").exists()
    assert (finished / "assignments.parquet").read_bytes() == before
    code, _, said = dcdc(*group)
    assert code == 2
    assert "tiny-2 exists: replace it by --overwrite, or move it away" in said
    assert dcdc(*group, "--overwrite", "--no-report", "-q")[0] == 0


def test_what_cannot_be_grouped_anew_is_refused(dcdc, finished):
    code, _, said = dcdc("fit", "--run", "runs/none", "--clusters", "2")
    assert code == 2
    assert "runs/none is no run to group anew" in said
    code, _, said = dcdc("fit", "--run", finished, "--clusters", "2", "--size", "16")
    assert code == 2
    assert "--size 16 has no meaning where the features of a run are grouped anew" in said
    code, _, said = dcdc("fit", "--run", finished)
    assert code == 2
    assert "say what to cluster" in said
    assert [each.name for each in finished.parent.iterdir()] == ["tiny"]
