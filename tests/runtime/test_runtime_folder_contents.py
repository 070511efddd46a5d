import pytest

from dcdc.runtime.folder_contents import Contents

OURS = Contents(("answer.txt", "pictures/*.png", "states/state-*/tensors", "config.json"))


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "folder"
    for name in ("answer.txt", "pictures/a.png", "states/state-1/tensors", "config.json"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("ours")
    return path


def test_all_that_is_ours_goes_and_nothing_is_strange(folder):
    (folder / ".answer.12-0123abcd.partial.txt").write_text("half")
    (folder / ".dcdc-lock").write_text("{}")
    assert list(OURS.strangers(folder)) == []
    OURS.remove(folder)
    assert {path.name for path in folder.iterdir()} == {
        ".answer.12-0123abcd.partial.txt",
        ".dcdc-lock",
    }


@pytest.mark.parametrize(
    "name",
    [
        *("config.json.bak", "Config.json", "notes", "pictures/a.jpg", "pictures/deep/a.png"),
        *("states/tensors", "states/state-1/notes", "states/other/tensors", ".hidden", "x.partial"),
    ],
)
def test_what_is_strange_is_named_and_stays(folder, name):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("mine")
    (stranger,) = OURS.strangers(folder)
    assert (folder / name).is_relative_to(stranger)
    OURS.remove(folder)
    assert [path for path in folder.rglob("*") if path.is_file()] == [folder / name]


def test_an_empty_folder_of_another_name_is_strange(folder):
    (folder / "mine").mkdir()
    assert list(OURS.strangers(folder)) == [folder / "mine"]


def test_what_a_link_leads_to_stays(folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "b.png").write_text("mine")
    (folder / "answer.txt").unlink()
    (folder / "answer.txt").symlink_to(elsewhere / "b.png")
    (folder / "pictures" / "a.png").unlink()
    (folder / "pictures").rmdir()
    (folder / "pictures").symlink_to(elsewhere)
    assert list(OURS.strangers(folder)) == [folder / "pictures"]
    OURS.remove(folder)
    assert [path.name for path in folder.iterdir()] == ["pictures"]
    assert (elsewhere / "b.png").read_text() == "mine"
