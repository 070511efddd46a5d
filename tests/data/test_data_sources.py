from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from sklearn.datasets import load_digits as sklearn_digits

from dcdc.cli.words import COMMAND_LINE
from dcdc.data import label_column_of, label_columns, load_digits, load_images
from dcdc.data.benchmarks.original_files import recognised
from dcdc.data.sources import require_at_hand
from dcdc.errors import InputError


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(source, **options):
    """What the command line says."""
    with pytest.raises(InputError) as caught:
        load_images(source, **options)
    told = caught.value.told(COMMAND_LINE)
    assert "\n" not in told
    return told


def test_every_kind_of_source(here):
    images = np.arange(2 * 9 * 9 * 3, dtype=np.uint8).reshape(2, 9, 9, 3)
    np.save("a.npy", images)
    np.savez("b.npz", images=images, y=["u", "v"])
    (here / "a.npy").rename("A.NPY")
    (here / "photos").mkdir()
    Image.fromarray(images[1]).save("photos/p.png")
    (here / "list.txt").write_text("photos/p.png\n")
    (here / "list.CSV").write_text("path,kind\nphotos/p.png,good\n")
    (here / "hub" / "data").mkdir(parents=True)
    encoded = (here / "photos" / "p.png").read_bytes()
    table = pa.table({"image": [encoded, encoded], "fine_label": [1, 2], "coarse_label": [0, 0]})
    pq.write_table(table, "hub/data/train.parquet")
    for parquet in ("hub", "hub/data", "hub/data/train.parquet"):
        found = load_images(parquet, target="fine_label", size=9)
        assert np.array_equal(found.images, images[[1, 1]])
        assert found.class_names == ("1", "2")
        assert label_columns(parquet) == ["fine_label", "coarse_label"]
        assert label_column_of(parquet, 2) == "fine_label"
    assert load_images("hub").targets is None
    assert np.array_equal(load_images("list.txt", size=9).images, images[1:])
    assert load_images("list.CSV", size=9, target="kind").class_names == ("good",)
    for other in ("photos", "list.txt", "digits", "nowhere", "a.npy"):
        assert label_columns(other) == []
        assert label_column_of(other, 2) is None
    assert load_images("digits").n_images == 1797
    assert np.array_equal(load_images("A.NPY").images, images)
    assert load_images(here / "b.npz").class_names == ("u", "v")
    for one in ("photos", "photos/p.png", [here / "photos" / "p.png"]):
        assert np.array_equal(load_images(one, size=9).images, images[1:])


def test_size_goes_to_every_source(here):
    np.save("a.npy", np.zeros((1, 9, 20, 3), np.uint8))
    (here / "photos").mkdir()
    Image.new("RGB", (40, 30)).save("photos/p.png")
    for source in ("digits", "a.npy", "photos"):
        assert load_images(source, size=12).side == 12
    assert load_images("a.npy").image_shape == (9, 9, 3)
    assert "size is 0" in refused("digits", size=0)


def test_a_built_in_name_wins_unless_a_path_is_meant(here):
    (here / "digits").mkdir()
    Image.new("L", (8, 8)).save("digits/only.png")
    assert load_images("digits").n_images == 1797
    assert load_images("digits").known_as == "digits"
    for path in ("./digits", "digits/", here / "digits", Path("digits")):
        assert load_images(path).n_images == 1
        assert load_images(path).known_as == ""
    (here / "digits").rename("other")
    assert load_images(Path("digits")).n_images == 1797


@pytest.mark.parametrize("source", ["digit", "Digits", "didgits", "./digits"])
@pytest.mark.usefixtures("here")
def test_the_nearest_name_is_suggested(source):
    message = refused(source)
    assert repr(source) in message
    assert "did you mean 'digits'?" in message


@pytest.mark.parametrize("source", ["", "gone/", "gone.npy", "x" * 300, "nul\0", "digits@train"])
@pytest.mark.usefixtures("here")
def test_anything_else_lists_what_is_possible(source):
    message = refused(source)
    if len(source) < 300:
        assert "give images or a folder of them, a .parquet" in message
        assert "dcdc data list" in message


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("one.doc", "is of no kind that is read here"),
        ("one.png", "cannot read image one.png in the files given: not an image"),
        ("photos.zip", "is an archive: unpack it"),
        ("photos.tar.gz", "is an archive: unpack it"),
    ],
)
def test_a_file_of_another_kind_is_not_said_to_be_missing(here, name, said):
    (here / name).touch()
    assert said in refused(name)


@pytest.mark.parametrize("source", ["digits", "a.npy", "photos", "cifar10"])
def test_a_target_is_refused_where_there_are_no_columns(here, source):
    np.save("a.npy", np.zeros((1, 9, 9, 3), np.uint8))
    (here / "photos").mkdir()
    Image.new("L", (8, 8)).save("photos/a.png")
    assert "--target kind has no meaning for" in refused(source, target="kind")
    assert "no meaning" not in (refused(source, target="none") if source == "cifar10" else "")


def write_cifar10(folder, n_train=4, n_test=3):
    folder.mkdir(parents=True)
    for number in range(1, 6):
        write_records(folder / f"data_batch_{number}.bin", n_train, first=10 * number)
    write_records(folder / "test_batch.bin", n_test, first=100)


def write_records(path, n_images, first):
    records = np.zeros((n_images, 1 + 3072), np.uint8)
    records[:, 0] = np.arange(n_images) % 10
    records[:, 1:] = first + np.arange(n_images)[:, None]
    path.write_bytes(records.tobytes())


def test_a_benchmark_is_found_by_name_by_split_and_elsewhere(here, monkeypatch):
    monkeypatch.setenv("DCDC_DATA", str(here / "cache"))
    message = refused("cifar10")
    assert "dcdc data get cifar10 downloads it (170 MB), or name a folder" in message
    write_cifar10(here / "cache" / "downloads" / "cifar10" / "cifar-10-batches-bin")
    write_cifar10(here / "elsewhere", n_test=2)
    whole = load_images("cifar10")
    assert whole.n_images == 5 * 4 + 3  # train and test, as the paper has it
    assert whole.known_as == load_images("cifar10@test:elsewhere").known_as == "cifar10"
    assert load_images("cifar10@test").images[:, 0, 0, 0].tolist() == [100, 101, 102]
    assert load_images("cifar10@test+train").images[0, 0, 0, 0] == 100
    assert load_images("cifar10:elsewhere").n_images == 5 * 4 + 2
    assert load_images("cifar10@test:elsewhere", size=16).image_shape == (16, 16, 3)
    assert load_images("elsewhere").n_images == 5 * 4 + 2  # known by its files


def test_wrong_use_of_benchmarks(here):
    assert "cifar10 has no split 'val': give train or test" in refused("cifar10@val")
    assert "nowhere, which is no folder" in refused("cifar10:nowhere")
    assert "ImageNet cannot be downloaded freely" in refused("imagenet-10")
    (here / "empty").mkdir()
    assert "empty" in refused("imagenet-dogs:empty")


def test_stl10_comes_with_its_unlabelled_part_and_can_do_without(here):
    folder = here / "stl"
    folder.mkdir()
    for split in ("train", "test", "unlabeled"):
        (folder / f"{split}_X.bin").write_bytes(bytes(2 * 3 * 96 * 96))
        (folder / f"{split}_y.bin").write_bytes(bytes([1, 2]))
    found = load_images("stl10:stl")
    assert (found.n_images, len(found.extra)) == (4, 2)
    (folder / "unlabeled_X.bin").unlink()
    message = refused("stl10:stl")
    assert "unlabeled_X.bin" in message
    without = message.rpartition("naming ")[2]
    assert without == "stl10@train+test:stl"
    assert load_images(without).extra is None


@pytest.mark.parametrize(
    ("files", "name"),
    [
        (["data_batch_1.bin"], "cifar10"),
        (["data_batch_1"], "cifar10"),
        (["train.bin", "fine_label_names.txt"], "cifar100"),
        (["train", "test", "meta"], "cifar100"),
        (["train_X.bin"], "stl10"),
        (["wnids.txt"], "tiny-imagenet"),
        (["train-images.idx3-ubyte"], "mnist"),
        (["train-images-idx3-ubyte.gz"], "mnist"),
        (["train", "test"], None),
        (["a.png"], None),
    ],
)
def test_a_folder_of_original_files_is_recognised(tmp_path, files, name):
    for file in files:
        (tmp_path / file).touch()
    assert recognised(tmp_path) == name


def test_bad_images_go_as_the_caller_chose(here):
    (here / "photos").mkdir()
    Image.new("L", (8, 8)).save("photos/a.png")
    (here / "photos" / "b.png").write_text("hello")
    assert "b.png" in refused("photos")
    seen = []
    found = load_images("photos", on_bad="skip", progress=lambda *step: seen.append(step))
    assert [entry.name for entry in found.skipped] == ["b.png"]
    assert seen == [(2, 2)]
    assert "'shrug'" in refused("digits", on_bad="shrug")


def test_a_source_at_hand_is_told_without_opening_it(here):
    (here / "a.npy").write_bytes(b"no array at all")
    for source in ("digits", "a.npy", "."):
        require_at_hand(source)
    for source in ("cifar10", "cifar10@train", "cifar10:nowhere", "a.npz", "digit", ""):
        with pytest.raises(InputError) as caught:
            require_at_hand(source)
        assert str(caught.value) == refused(source)


def test_digits_are_scikit_learns_stretched_to_255():
    digits, truth = load_digits(), sklearn_digits()
    assert digits.images.shape == (1797, 8, 8, 1)
    assert np.abs(digits.images[..., 0] / 255 * 16 - truth.images).max() < 0.04  # 16 / 255 / 2
    assert (digits.images.min(), digits.images.max()) == (0, 255)
    assert np.array_equal(digits.targets, truth.target)
    assert digits.class_names == tuple("0123456789")
    assert (digits.names[0], digits.names[-1]) == ("digit-0000", "digit-1796")


def test_digits_can_be_enlarged():
    assert load_digits(16).image_shape == (16, 16, 1)
