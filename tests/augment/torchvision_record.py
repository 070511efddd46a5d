"""Stores what torchvision makes of small images, for machines without it.

    python tests/augment/torchvision_record.py tests/augment/torchvision_record.npz

Run once, where torchvision is installed. Nothing of dcdc is used here: images are random bytes, and
every parameter is drawn by torchvision itself or by NumPy and is stored beside the output, so
`test_augment_torchvision_recorded.py` needs no generator that agrees with another.

Entries are `op/case/name`. Outputs are whole numbers of 2^-18, which is a fifth of what the
comparison allows and half the size of float32.
"""

import sys
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import numpy as np
import torch
import torchvision
from torch import Tensor
from torchvision import transforms as v1
from torchvision.transforms import InterpolationMode, v2

tv = v2.functional
UNIT = 2.0**-18
SCALE, RATIO = (0.2, 1.0), (3 / 4, 4 / 3)
COLOUR, GREY, OBLONG, LARGE = (3, 3, 12, 12), (4, 1, 12, 12), (3, 3, 8, 15), (1, 1, 48, 48)
SHAPES = (COLOUR, GREY, OBLONG, LARGE)
OUTS = ((12, 12), (9, 14))
LARGER_OUTS = {GREY: ((24, 24),), LARGE: ((48, 48),)}
N_DRAWS = 700
OPS = (tv.adjust_brightness, tv.adjust_contrast, tv.adjust_saturation, tv.adjust_hue)
MOVES = {
    "turned": (180, 0.0, (1.0, 1.0), 0),
    "shifted": (0, 0.4, (1.0, 1.0), 0),
    "scaled": (0, 0.0, (0.5, 2.0), 0),
    "sheared": (0, 0.0, (1.0, 1.0), 40),
    "all": (45, 0.2, (0.7, 1.4), 20),
}

Record = Iterator[tuple[str, np.ndarray]]


def main(path: Path) -> None:
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    entries = {
        "version/torch": np.array(torch.__version__),
        "version/torchvision": np.array(torchvision.__version__),
        "unit": np.array(UNIT),
    }
    for part in (to_float, resized_crops, resize_crops, jitters, greys_and_flips, affines, laws):
        for name, value in part(random):
            assert name not in entries, name
            entries[name] = value
    np.savez_compressed(path, **entries)
    print(f"{path}: {len(entries)} entries, {path.stat().st_size:,} bytes")


def bytes_of(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return random.integers(0, 256, shape, dtype=np.uint8)


def seen(images: np.ndarray) -> Tensor:
    return tv.to_dtype(torch.from_numpy(images), torch.float32, scale=True)


def rounded(images: list[Tensor]) -> np.ndarray:
    """3 x ...: the three bytes of each whole number, the lowest first, which packs best."""
    whole = (torch.stack(images).double() / UNIT).round().to(torch.int64).numpy()
    assert whole.min() >= 0
    assert whole.max() < 2**24
    return np.stack([whole >> 8 * place & 255 for place in range(3)]).astype(np.uint8)


def name_of(*parts: object) -> str:
    return "-".join("x".join(map(str, p)) if isinstance(p, tuple) else str(p) for p in parts)


def to_float(_: np.random.Generator) -> Record:
    images = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16)
    yield "to_float/bytes/images", images
    yield "to_float/bytes/output", seen(images).numpy()


def resized_crops(random: np.random.Generator) -> Record:
    for shape in SHAPES:
        for out in OUTS + LARGER_OUTS.get(shape, ()):
            images = bytes_of(random, shape)
            floats = seen(images)
            boxes = [
                v1.RandomResizedCrop.get_params(image, list(SCALE), list(RATIO)) for image in floats
            ]
            theirs = [
                tv.resized_crop(image, *box, list(out), antialias=True)
                for image, box in zip(floats, boxes, strict=True)
            ]
            case = f"resized_crop/{name_of(shape, out)}"
            yield f"{case}/images", images
            yield f"{case}/boxes", np.array(boxes)
            yield f"{case}/output", rounded(theirs)


def resize_crops(random: np.random.Generator) -> Record:
    """At a random place, and at the centre."""
    cases = [(shape, pair) for shape in SHAPES for pair in ((15, 12), (13, 8))]
    for shape, (resize_to, size) in [*cases, (LARGE, (56, 48))]:
        images = bytes_of(random, shape)
        resized = tv.resize(seen(images), [resize_to, resize_to], antialias=True)
        places = [v1.RandomCrop.get_params(image, (size, size))[:2] for image in resized]
        theirs = [
            tv.crop(image, *place, size, size) for image, place in zip(resized, places, strict=True)
        ]
        case = f"resize_crop/{name_of(shape, resize_to, size)}"
        yield f"{case}/images", images
        yield f"{case}/resize_to", np.array(resize_to)
        yield f"{case}/offsets", np.array(places)
        yield f"{case}/output", rounded(theirs)
        yield f"{case}/centre", rounded(list(tv.center_crop(resized, [size, size])))
    images = bytes_of(random, (2, 1, 11, 11))
    theirs = [
        tv.center_crop(tv.resize(seen(images), [8 + gap, 8 + gap], antialias=True), [8, 8])
        for gap in range(1, 8)
    ]
    yield "centre_crop/gaps/images", images
    yield "centre_crop/gaps/resize_to", np.arange(9, 16)
    yield "centre_crop/gaps/output", rounded(theirs)


def jitters(random: np.random.Generator) -> Record:
    """Every order, of ops that are on one by one, some together, and all."""
    some = ((0,), (1,), (2,), (3,), (0, 1), (1, 2, 3), (0, 1, 2, 3))
    orders = list(permutations(range(4)))
    jitter = v1.ColorJitter(0.8, 0.8, 0.8, 0.5)
    ranges = jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue
    for sizes in ((3, 4, 4), (1, 4, 4), (3, 3, 7)):
        images = bytes_of(random, (len(orders), *sizes))
        factors = np.array([jitter.get_params(*ranges)[1:] for _ in orders], np.float32)
        theirs = [
            torch.stack(
                [jittered(*one, on) for one in zip(seen(images), orders, factors, strict=True)]
            )
            for on in some
        ]
        case = f"jitter/{name_of(sizes)}"
        yield f"{case}/images", images
        yield f"{case}/orders", np.array(orders, np.uint8)
        yield f"{case}/factors", factors
        yield f"{case}/on", np.array([[op in on for op in range(4)] for on in some])
        yield f"{case}/output", rounded(theirs)


def jittered(
    image: Tensor, order: tuple[int, ...], factors: np.ndarray, on: tuple[int, ...]
) -> Tensor:
    for op in order:
        if op in on:
            image = OPS[op](image, float(factors[op]))
    return image


def greys_and_flips(random: np.random.Generator) -> Record:
    for shape in (COLOUR, GREY, OBLONG):
        images = bytes_of(random, shape)
        chosen = np.arange(len(images)) % 2 == 0
        grey = [
            tv.rgb_to_grayscale(image, num_output_channels=shape[1]) if one else image
            for image, one in zip(seen(images), chosen, strict=True)
        ]
        flipped = [
            tv.horizontal_flip(image) if one else image
            for image, one in zip(torch.from_numpy(images), chosen, strict=True)
        ]
        case = f"grey_and_flip/{name_of(shape)}"
        yield f"{case}/images", images
        yield f"{case}/chosen", chosen
        yield f"{case}/grey", rounded(grey)
        yield f"{case}/flipped", torch.stack(flipped).numpy()


def affines(random: np.random.Generator) -> Record:
    for shape in SHAPES:
        for kind in ("all",) if shape == LARGE else MOVES:
            fills = (None, 0.0, 0.3) if kind == "all" else (None, 0.3)
            images = bytes_of(random, shape)
            draws = [drawn(random_affine(*MOVES[kind]), shape[3], shape[2]) for _ in images]
            theirs = [
                torch.stack([moved(*one, fill) for one in zip(seen(images), draws, strict=True)])
                for fill in fills
            ]
            case = f"affine/{name_of(shape, kind)}"
            yield f"{case}/images", images
            yield f"{case}/draws", np.array(draws)
            yield f"{case}/fills", np.array([np.nan if fill is None else fill for fill in fills])
            yield f"{case}/output", rounded(theirs)


def moved(image: Tensor, draw: tuple[float, ...], fill: float | None) -> Tensor:
    angle, right, down, scale, shear = draw
    return tv.affine(
        image,
        angle=angle,
        translate=[right, down],
        scale=scale,
        shear=[shear, 0.0],
        interpolation=InterpolationMode.BILINEAR,
        fill=fill,
    )


def random_affine(
    rotation: float, shift: float, scale: tuple[float, float], shear: float
) -> v1.RandomAffine:
    return v1.RandomAffine(rotation, translate=(shift, shift), scale=scale, shear=shear)


def drawn(move: v1.RandomAffine, width: int, height: int) -> tuple[float, ...]:
    angle, (right, down), scale, (shear, along_y) = move.get_params(
        move.degrees, move.translate, move.scale, move.shear, [width, height]
    )
    assert along_y == 0
    return angle, right, down, scale, shear


def laws(_: np.random.Generator) -> Record:
    """Parameters as torchvision draws them, for the settings named beside."""
    for side in ((32, 32), (96, 96), (24, 64)):
        image = torch.zeros(3, *side)
        boxes = [
            v1.RandomResizedCrop.get_params(image, list(SCALE), list(RATIO)) for _ in range(N_DRAWS)
        ]
        yield f"law_of_resized_crop/{name_of(side)}/boxes", np.array(boxes, np.uint8)
        yield f"law_of_resized_crop/{name_of(side)}/side", np.array(side)
        yield f"law_of_resized_crop/{name_of(side)}/scale", np.array(SCALE)
        yield f"law_of_resized_crop/{name_of(side)}/ratio", np.array(RATIO)
    places = [v1.RandomCrop.get_params(torch.zeros(3, 40, 40), (32, 32)) for _ in range(N_DRAWS)]
    yield "law_of_resize_crop/40-32/offsets", np.array(places, np.uint8)[:, :2]
    yield "law_of_resize_crop/40-32/sizes", np.array((40, 32))
    strengths = (0.4, 0.8, 1.5, 0.3)
    jitter = v1.ColorJitter(*strengths)
    ranges = jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue
    draws = [jitter.get_params(*ranges) for _ in range(N_DRAWS)]
    yield "law_of_jitter/one/strengths", np.array(strengths)
    yield "law_of_jitter/one/factors", np.array([draw[1:] for draw in draws], np.float32)
    yield "law_of_jitter/one/orders", torch.stack([draw[0] for draw in draws]).numpy().astype("u1")
    settings = (20, 0.1, (0.8, 1.5), 5)
    move = random_affine(*settings)
    yield "law_of_affine/one/height_width", np.array((10, 30))
    yield "law_of_affine/one/settings", np.array((20, 0.1, 0.8, 1.5, 5))
    found = np.array([drawn(move, 30, 10) for _ in range(N_DRAWS)], np.float32)
    yield "law_of_affine/one/draws", found
    for level in (0.1, 0.9):  # where the clip counts, at either end
        noisy = v2.GaussianNoise(mean=0.0, sigma=0.25, clip=True)(torch.full((1, 20, 20), level))
        yield f"law_of_noise/{level}/settings", np.array((level, 0.25))
        yield f"law_of_noise/{level}/output", noisy.flatten().numpy()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
