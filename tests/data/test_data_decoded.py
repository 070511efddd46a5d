"""Listed images become an ImageSet once: sizes, channels, bad images, and the cache behind it."""

import io
from itertools import islice

import numpy as np
import pytest
from PIL import Image

from dcdc.cli.words import COMMAND_LINE
from dcdc.data import BadImage, Listing, decoded
from dcdc.data.decoded import decode_listing
from dcdc.errors import InputError

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DCDC_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


def png(side=32, channels=3, value=None):
    shape = (side, side, channels) if channels == 3 else (side, side)
    pixels = RNG.integers(0, 256, shape, np.uint8) if value is None else np.full(shape, value)
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "png")
    return file.getvalue()


def listing(images, targets=None, class_names=(), fingerprint="a"):
    asked = []

    def encoded(start):
        asked.append(start)
        return iter(images[start:])

    made = Listing(
        where="somewhere",
        names=[f"n{row}" for row in range(len(images))],
        encoded=encoded,
        fingerprint=fingerprint,
        targets=None if targets is None else np.array(targets),
        class_names=class_names,
    )
    object.__setattr__(made, "asked", asked)
    return made


def pixels(encoded):
    return np.asarray(Image.open(io.BytesIO(encoded)))


def test_images_come_in_order_with_names_and_targets():
    images = [png() for _ in range(5)]
    found = decode_listing(listing(images, [0, 1, 0, 1, 1], ("cat", "dog")))
    assert list(found.names) == ["n0", "n1", "n2", "n3", "n4"]
    assert found.targets.tolist() == [0, 1, 0, 1, 1]
    assert found.class_names == ("cat", "dog")
    assert np.array_equal(found.images, [pixels(image) for image in images])
    assert isinstance(found.images, np.memmap)


@pytest.mark.parametrize(
    ("sides", "asked", "found"),
    [
        ((33, 33, 500), {}, 32),
        ((5, 6), {}, 8),
        ((100, 200), {}, 96),
        ((100, 200), {"largest_side": 32}, 32),
        ((16, 20), {"largest_side": 32}, 16),
        ((300, 400), {"largest_side": 224}, 224),
        ((300, 400), {"size": 20, "largest_side": 16}, 20),
    ],
)
def test_the_side_is_asked_for_or_a_usual_one_near_the_median(sides, asked, found):
    images = [png(side) for side in sides]
    assert decode_listing(listing(images), **asked).side == found


def test_grey_images_stay_grey_unless_one_among_them_is_not(monkeypatch):
    monkeypatch.setattr(decoded, "_SAMPLE_RUNS", 2)
    monkeypatch.setattr(decoded, "_SAMPLE_RUN", 2)
    grey = [png(channels=1) for _ in range(20)]
    assert decode_listing(listing(grey)).channels == 1
    grey[9] = png(channels=3)  # not in the sample
    assert decode_listing(listing(grey, fingerprint="b")).channels == 3


def test_a_sample_of_a_large_set_is_spread_over_it(monkeypatch):
    monkeypatch.setattr(decoded, "_SAMPLE_RUNS", 3)
    monkeypatch.setattr(decoded, "_SAMPLE_RUN", 2)
    images = [png(8)] * 10 + [png(40)] * 10
    made = listing(images)
    assert [len(image) for image in decoded._spread(made)] == [
        len(images[row]) for row in (0, 1, 9, 10, 18, 19)
    ]


BAD = BadImage("no such file")


def test_a_bad_image_is_refused_by_name_with_what_to_do():
    with pytest.raises(InputError, match=r"image n1 in somewhere: ") as caught:
        decode_listing(listing([png(), b"nonsense", png()]))
    assert "--on-bad skip" in caught.value.told(COMMAND_LINE)
    with pytest.raises(InputError, match=r"image n0 in somewhere: no such file"):
        decode_listing(listing([BAD, png()]))


def test_bad_images_are_skipped_and_recorded_and_classes_without_images_go():
    images = [BAD, png(value=1), b"nonsense", png(value=3), png()[:60]]
    found = decode_listing(listing(images, [0, 2, 1, 3, 0], tuple("abcd")), on_bad="skip")
    assert list(found.names) == ["n1", "n3"]
    assert found.images[:, 0, 0, 0].tolist() == [1, 3]
    assert (found.targets.tolist(), found.class_names) == ([0, 1], ("c", "d"))
    assert [skipped.name for skipped in found.skipped] == ["n0", "n2", "n4"]
    assert found.skipped[0].reason == "no such file"
    assert all(skipped.reason for skipped in found.skipped)


def test_a_set_without_a_good_image_is_refused():
    with pytest.raises(InputError, match=r"none of the 2 images in somewhere can be read \(n0: "):
        decode_listing(listing([b"x", b"y"]), on_bad="skip")


def test_unknown_policies_and_sizes_are_refused():
    with pytest.raises(InputError, match="on_bad is 'maybe'"):
        decode_listing(listing([png()]), on_bad="maybe")
    with pytest.raises(InputError, match="image size is 3"):
        decode_listing(listing([png()]), size=3)


def test_a_second_time_nothing_is_read():
    images = [png() for _ in range(3)]
    first = decode_listing(listing(images))
    again = listing(images)
    assert np.array_equal(decode_listing(again).images, first.images)
    assert again.asked == []


def test_a_size_that_was_chosen_and_one_that_is_asked_for_share_their_rows():
    images = [png(40) for _ in range(3)]
    chosen = decode_listing(listing(images))
    asked = decode_listing(listing(images), size=32)
    assert asked.images.filename == chosen.images.filename


@pytest.mark.parametrize("change", [{"size": 16}, {"largest_side": 16}, {"fingerprint": "b"}])
def test_content_and_size_have_caches_of_their_own(change):
    images = [png() for _ in range(3)]
    decode_listing(listing(images))
    other = listing(images, fingerprint=change.pop("fingerprint", "a"))
    decode_listing(other, **change)
    assert other.asked


def test_skipping_after_a_refusal_goes_on_with_what_was_decoded(monkeypatch):
    monkeypatch.setattr(decoded, "_BLOCK_ROWS", 2)
    images = [png(value=v) for v in range(4)] + [BAD, png(value=5)]
    with pytest.raises(InputError, match="n4"):
        decode_listing(listing(images))
    rest = listing(images)
    found = decode_listing(rest, on_bad="skip")
    assert found.images[:, 0, 0, 0].tolist() == [0, 1, 2, 3, 5]
    assert set(rest.asked) == {4}
    with pytest.raises(InputError, match="n4"):
        decode_listing(listing(images))


@pytest.mark.parametrize("side", [32, 80])
def test_threads_and_blocks_change_nothing(side, monkeypatch, tmp_path):
    images = [png(side) if row % 7 else BAD for row in range(60)]
    plain = decode_listing(listing(images), size=16, on_bad="skip")
    monkeypatch.setenv("DCDC_DATA", str(tmp_path / "other"))
    for name, value in (("_BLOCK_ROWS", 11), ("_PER_TASK", 3), ("_THREADS_FROM", 33)):
        monkeypatch.setattr(decoded, name, value)
    monkeypatch.setattr(decoded, "available_cores", lambda: 4)
    split = decode_listing(listing(images), size=16, on_bad="skip")
    assert np.array_equal(split.images, plain.images)
    assert (split.names, split.skipped) == (plain.names, plain.skipped)


def test_progress_counts_every_image_bad_or_good():
    told = []
    images = [png(), BAD, png()]
    decode_listing(listing(images), on_bad="skip", progress=lambda *done: told.append(done))
    assert told == [(3, 3)]


def test_blocks_are_bounded_by_bytes_too(monkeypatch):
    monkeypatch.setattr(decoded, "_BLOCK_BYTES", 100)
    images = iter([b"x" * 60] * 10)
    assert [len(list(decoded._some(images))) for _ in range(5)] == [2] * 5
    assert list(islice(decoded._some(iter([])), 1)) == []
