"""What the viewer knows of a run's images, and in which orders it shows them."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from viewer_runs import HOSTILE, photo, write_run

from dcdc.data.listing import BadImage
from dcdc.viewer import open_run
from dcdc.viewer.likeness import Likeness
from dcdc.viewer.oddity import look_for_oddity
from dcdc.viewer.told import about, overview
from dcdc.viewer.viewed_run import ORDERS, Wish


@pytest.fixture
def viewed(run):
    found = open_run(run)
    found.survey.start()
    assert found.survey.done.wait(60)
    return found


def test_every_order_shows_every_image_once(viewed):
    everything = set(range(viewed.n_images))
    for order in ORDERS:
        for backwards in (False, True):
            rows = viewed.rows(Wish(order=order, backwards=backwards, once=False)).tolist()
            assert len(rows) == len(set(rows)), order
            assert set(rows) <= everything
            assert set(rows) == everything or order == "odd"
    shown = [row for cluster in range(3) for row in viewed.rows(Wish(cluster, once=False)).tolist()]
    assert sorted(shown) == sorted(everything)


def test_orders_by_what_they_say(viewed, names):
    by_confidence = viewed.rows(Wish(order="confidence", once=False))
    assert (np.diff(viewed.facts.confidence[by_confidence]) <= 0).all()
    by_name = [names[row].rpartition("/")[2] for row in viewed.rows(Wish(order="name"))]
    assert by_name == sorted(by_name)
    by_folder = [names[row].rpartition("/")[::2] for row in viewed.rows(Wish(order="folder"))]
    assert by_folder == sorted(by_folder)
    from_centre = viewed.from_centre[viewed.rows(Wish(1, "centre"))]
    assert (np.diff(from_centre) >= 0).all()
    by_date = viewed.rows(Wish(order="date")).tolist()
    assert by_date[0] == names.index("turned.jpg")  # those without a date come last
    assert viewed.rows(Wish(order="date", backwards=True))[0] == names.index("turned.jpg")


def test_random_is_the_default_and_the_same_at_every_visit(viewed, run):
    by_chance = viewed.rows(Wish(once=False)).tolist()
    assert by_chance == open_run(run).rows(Wish(once=False)).tolist()
    assert by_chance != sorted(by_chance)
    assert np.corrcoef(viewed.facts.confidence[by_chance], np.arange(len(by_chance)))[0, 1] < 0.9


def test_images_are_found_by_a_part_of_their_name(viewed, names):
    assert viewed.rows(Wish(find="ONERROR")).tolist() == [names.index(HOSTILE)]
    assert len(viewed.rows(Wish(find="trip/"))) == 7  # copies too
    assert not len(viewed.rows(Wish(find="none such")))


def test_copies_are_told_and_shown_once(viewed, names):
    copy, first = names.index("trip/copy of 2.jpg"), names.index("trip/2.jpg")
    assert [sorted(group.tolist()) for group in viewed.duplicates.copies] == [sorted((copy, first))]
    shown = viewed.rows(Wish()).tolist()
    assert len(shown) == viewed.n_images - 1
    assert (copy in shown) != (first in shown)
    assert overview(viewed)["copies"] == {"groups": 1, "images": 2}
    assert about(viewed, [0, copy])[1]["copies"] == 2


def test_files_of_equal_size_are_not_copies_for_that(run, photos):
    one, other = photos / "trip/0.jpg", photos / "trip/1.jpg"
    size = max(one.stat().st_size, other.stat().st_size) + 1
    for file in (one, other):
        file.write_bytes(file.read_bytes().ljust(size, b"\0"))
    found = open_run(run)
    found.survey.start()
    assert found.survey.done.wait(60)
    assert len(found.duplicates.copies) == 1


def test_nearest_images_by_a_plain_loop():
    features = np.random.default_rng(1).normal(size=(40, 5)).astype(np.float32)
    rows = np.arange(3, 83, 2)
    found = Likeness.of(rows, features).nearest(7, 5)
    own = features[2] / np.linalg.norm(features[2])
    cosines = [float(each @ own / np.linalg.norm(each)) for each in features]
    wanted = sorted((at for at in range(40) if at != 2), key=lambda at: -cosines[at])[:5]
    assert [row for row, _ in found] == [int(rows[at]) for at in wanted]
    np.testing.assert_allclose([value for _, value in found], [cosines[at] for at in wanted], 1e-5)
    assert Likeness.of(rows, features).nearest(8, 5) == []  # no features of that one


def test_what_is_unlike_all_others_and_what_is_nearly_the_same():
    features = np.random.default_rng(2).normal(size=(300, 8))
    features[40] = features[200] + 1e-3
    features[41] = features[200] - 1e-3
    features[77] = 12.0
    found = look_for_oddity(features.astype(np.float32))
    assert found.scores.argmax() == 77
    assert found.scores[77] > 1
    assert (found.scores > 1).sum() <= 6
    assert [group.tolist() for group in found.near_duplicates] == [[40, 41, 200]]


def test_too_few_features_say_nothing():
    found = look_for_oddity(np.random.default_rng(0).normal(size=(12, 4)))
    assert found.scores is None
    assert found.near_duplicates == []


def test_images_of_parquet_and_of_arrays(tmp_path):
    def encoded(image):
        content = io.BytesIO()
        image.save(content, "PNG")
        return content.getvalue()

    bytes_of = [encoded(photo(10 * shade)) for shade in (1, 2, 3, 2)]
    pq.write_table(pa.table({"image": bytes_of}), tmp_path / "hub.parquet", row_group_size=2)
    names = [f"hub/{row:06d}" for row in range(4)]
    folder = write_run(tmp_path / "a", names, [0, 0, 1, 1], source=tmp_path / "hub.parquet")
    found = open_run(folder)
    assert [found.originals.of(row) for row in range(4)] == bytes_of
    found.survey.start()
    assert found.survey.done.wait(60)
    assert [group.tolist() for group in found.duplicates.copies] == [[1, 3]]

    pixels = np.random.default_rng(0).integers(0, 256, (4, 8, 8), np.uint8)
    np.save(tmp_path / "pixels.npy", pixels)
    names = [f"image-{row:04d}" for row in range(4)]
    folder = write_run(tmp_path / "b", names, [0, 0, 1, 1], source=tmp_path / "pixels.npy")
    found = open_run(folder)
    np.testing.assert_array_equal(found.originals.of(2)[..., 0], pixels[2])
    assert overview(found)["is_coarse"]


def test_arrays_are_enlarged(serve, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 9, 9), np.uint8)
    np.save(tmp_path / "pixels.npy", pixels)
    names = [f"image-{row:04d}" for row in range(4)]
    folder = write_run(tmp_path / "run", names, [0, 0, 1, 1], source=tmp_path / "pixels.npy")
    shown = Image.open(io.BytesIO(serve(folder).ask("/thumbnail/1").content))
    assert min(shown.size) >= 160
    times = shown.size[0] // 9
    np.testing.assert_array_equal(np.asarray(shown)[::times, ::times], pixels[1])


def test_a_source_that_lost_images_and_won_others(run, photos, names):
    (photos / "trip/0.jpg").unlink()
    photo(1).save(photos / "a new one.jpg")
    found = open_run(run)
    assert "1 images are no longer in the source" in found.notes
    assert isinstance(found.originals.of(names.index("trip/0.jpg")), BadImage)
    for name in ("clear.png", "trip/5.jpg", "turned.jpg"):
        assert found.originals.of(names.index(name)) == photos / name


@pytest.mark.parametrize("source", ["", "no/such/folder"])
def test_without_a_source_names_and_numbers_are_shown(serve, tmp_path, source):
    folder = write_run(tmp_path / "run", ["a", "b", "c"], [0, 1, 1], source=source)
    found = open_run(folder)
    assert found.originals is None
    assert any("names and numbers are shown" in note for note in found.notes)
    assert found.rows(Wish(1)).tolist() in ([1, 2], [2, 1])
    client = serve(folder)
    assert client.ask("/thumbnail/0").status == 404
    assert b'"has_images":false' in client.ask("/overview").content


def test_vectors_with_files_and_without(vector_run, tmp_path):
    from dcdc.run_folder import RunFolder

    found = open_run(RunFolder.open(vector_run))
    assert found.originals is not None
    assert found.originals.of(4).name == "04.png"
    assert len(found.nearest(0)) == 23
    np.save(tmp_path / "bare.npy", np.random.default_rng(0).normal(size=(5, 3)).astype("f4"))
    names = [f"image-{row:04d}" for row in range(5)]
    folder = write_run(tmp_path / "run", names, [0, 0, 1, 1, 2], source=tmp_path / "bare.npy")
    bare = open_run(folder)
    assert bare.originals is None
    assert "nothing tells which images they are of" in bare.notes[0]
    assert len(bare.nearest(0)) == 4


def test_neighbours_tell_where_the_share_overstates(tmp_path):
    random = np.random.default_rng(0)
    features, clusters = random.normal(size=(60, 6)), random.integers(0, 3, 60)
    names = [f"{row}.jpg" for row in range(60)]
    found = open_run(write_run(tmp_path / "run", names, clusters, features=features))
    assert overview(found)["agreement"] is None  # until it is known
    found.survey.start()
    assert found.survey.done.wait(60)
    told = overview(found)
    assert told["share"] == pytest.approx(0.7)
    assert told["agreement"] < 0.5  # clusters by chance
    assert told["overstates"]
    assert {each["number"] for each in told["clusters"] if each["agreement"] < 0.6} == {0, 1, 2}
    found.corrections.make({"kind": "merge", "clusters": [0, 1, 2], "into": 0}, "")
    found.take_corrections()
    assert overview(found)["agreement"] == 1
