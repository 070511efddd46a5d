"""How many images of other kinds a model calls out of distribution, and how many of its own.

    python benchmarks/out_of_distribution.py [--seeds 5] [--references 1200] [--set KEY=VALUE ...]

For each seed the digits preset is trained on 1,200 digits, chosen by the seed; the other 597 and
eight kinds of images that are no digits are then shown to it. Prints the share that is flagged, the
median over the seeds: by the criterion in use, by the cosine distance to the fifth nearest training
image, and by a low confidence; each flags one training image in a hundred. `--references` keeps
fewer of the training images to compare with.
"""

import argparse
import statistics
from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from dcdc.config import with_settings, with_values
from dcdc.data import from_arrays, load_images
from dcdc.engine.out_of_distribution import ORDINARY, out_of_distribution_score_of
from dcdc.engine.trained_model import TrainedModel
from dcdc.prepare.presets import preset
from dcdc.run import run

N_TRAINED, N_MADE = 1200, 600
CLOTHES = {
    "shirt": ((8, 16, 24, 8, 40, 8, 56, 16, 50, 28, 44, 24, 44, 58, 20, 58, 20, 24, 14, 28),),
    "trousers": ((20, 6, 44, 6, 48, 60, 36, 60, 32, 24, 28, 60, 16, 60),),
    "bag": (
        (8, 24, 56, 24, 56, 56, 8, 56),
        (22, 24, 26, 10, 38, 10, 42, 24, 38, 24, 36, 14, 28, 14),
    ),
    "shoe": ((6, 30, 20, 24, 34, 38, 58, 44, 58, 54, 6, 54),),
}


def drawn(draw: Callable[[ImageDraw.ImageDraw], None], random: np.random.Generator) -> np.ndarray:
    """Drawn large, turned and moved a little, then brought to 8 x 8."""
    canvas = Image.new("L", (64, 64))
    draw(ImageDraw.Draw(canvas))
    moved = canvas.rotate(random.normal(0, 7), translate=tuple(random.integers(-4, 5, 2).tolist()))
    return np.asarray(moved.resize((8, 8), Image.Resampling.BILINEAR))


def clothes(random: np.random.Generator) -> np.ndarray:
    def draw(canvas: ImageDraw.ImageDraw) -> None:
        shade = int(random.integers(100, 256))
        for outline in list(CLOTHES.values())[random.integers(len(CLOTHES))]:
            canvas.polygon(outline, fill=shade)

    return np.stack([drawn(draw, random) for _ in range(N_MADE)])


def letters(random: np.random.Generator) -> np.ndarray:
    font = ImageFont.load_default(size=52)

    def draw(canvas: ImageDraw.ImageDraw) -> None:
        letter = "ACEFHKMNPRTUWXY"[random.integers(15)]
        canvas.text((32, 32), letter, fill=255, font=font, anchor="mm")

    return np.stack([drawn(draw, random) for _ in range(N_MADE)])


def textures(random: np.random.Generator) -> np.ndarray:
    """Spectra that fall as those of photographs do."""
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(64), np.fft.fftfreq(64))) + 1 / 64
    made = []
    for _ in range(N_MADE):
        spectrum = np.fft.fft2(random.normal(size=(64, 64))) / frequency ** random.uniform(0.8, 1.6)
        field = np.fft.ifft2(spectrum).real
        field = 255 * (field - field.min()) / np.ptp(field)
        picture = Image.fromarray(field.astype(np.uint8))
        made.append(np.asarray(picture.resize((8, 8), Image.Resampling.BILINEAR)))
    return np.stack(made)


def kinds(held_out: np.ndarray, random: np.random.Generator) -> dict[str, np.ndarray]:
    flat = np.repeat(random.integers(0, 256, N_MADE), 64).reshape(-1, 8, 8)
    return {
        "digits held out": held_out,
        "uniform noise": random.integers(0, 256, (N_MADE, 8, 8)),
        "photo-like textures": textures(random),
        "one flat grey": flat,
        "letters": letters(random),
        "pieces of clothing": clothes(random),
        "digits, inverted": 255 - held_out,
        "digits, a quarter turned": np.rot90(held_out, axes=(1, 2)),
        "digits, mirrored": held_out[:, :, ::-1],
    }


def flagged_by_cosine(known: np.ndarray, found: np.ndarray, nearest: int = 5) -> np.ndarray:
    known, found = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (known, found))
    own = 1 - known @ known.T
    np.fill_diagonal(own, np.inf)
    limit = np.quantile(np.sort(own, axis=1)[:, nearest - 1], ORDINARY)
    return np.sort(1 - found @ known.T, axis=1)[:, nearest - 1] > limit


def shares(
    model: TrainedModel, trained: np.ndarray, shown: np.ndarray, n_references: int
) -> tuple[float, float, float, float]:
    known = model.transform(trained[:n_references]).astype(np.float16)  # as a run keeps them
    found = model.transform(shown)
    score_of = out_of_distribution_score_of(known)
    assert score_of is not None
    confidence = model.predict_proba(shown).max(axis=1)
    unsure = np.quantile(model.predict_proba(trained).max(axis=1), 1 - ORDINARY)
    return (
        float((score_of.score(found) > 1).mean()),
        float(flagged_by_cosine(known.astype(np.float32), found).mean()),
        float((confidence < unsure).mean()),
        float(confidence.mean()),
    )


def one_seed(
    seed: int, n_references: int, settings: list[str]
) -> dict[str, tuple[float, float, float, float]]:
    digits = load_images("digits")
    assert digits.targets is not None
    order = np.random.default_rng(seed).permutation(digits.n_images)
    trained, held_out = digits.images[order[:N_TRAINED]], digits.images[order[N_TRAINED:], ..., 0]
    config = with_settings(with_values(preset("digits"), {"train.seed": seed}), settings)
    model = run(config, from_arrays(trained, digits.targets[order[:N_TRAINED]])).model
    shown = kinds(held_out, np.random.default_rng(seed + 1000))
    return {
        kind: shares(model, trained, np.ascontiguousarray(images, np.uint8), n_references)
        for kind, images in shown.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--references", type=int, default=N_TRAINED)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    arguments = parser.parse_args()
    found = [
        one_seed(seed, arguments.references, arguments.settings) for seed in range(arguments.seeds)
    ]
    print("| images | flagged | lowest to highest | by cosine | by confidence | mean confidence |")
    print("|---|---:|---:|---:|---:|---:|")
    for kind in found[0]:
        columns = list(zip(*(each[kind] for each in found), strict=True))
        ours, cosine, unsure, confidence = map(statistics.median, columns)
        spread = f"{min(columns[0]):.3f} to {max(columns[0]):.3f}"
        print(
            f"| {kind} | {ours:.3f} | {spread} | {cosine:.3f} | {unsure:.3f} | {confidence:.2f} |"
        )


if __name__ == "__main__":
    main()
