"""What a person brings along: a folder of photos, drawn here, and what else the pages speak of."""

import colorsys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

N_PHOTOS = 90
_KINDS = 6


def bring(folder: Path) -> None:
    """Everything that the pages name and that no command of theirs makes."""
    draw_photos(folder / "photos", N_PHOTOS, seed=0)
    draw_photos(folder / "new_photos", 6, seed=1)
    for name in ("new.jpg", "holiday.jpg"):
        picture(2, np.random.default_rng(7)).save(folder / name)
    random = np.random.default_rng(0)
    kinds = random.normal(size=(12, 32))[np.arange(240) % 12]
    np.save(folder / "embeddings.npy", (kinds + 0.3 * random.normal(size=(240, 32))).astype("f4"))


def draw_photos(folder: Path, n_photos: int, seed: int) -> None:
    folder.mkdir()
    random = np.random.default_rng(seed)
    for number in range(n_photos):
        picture(number % _KINDS, random).save(folder / f"IMG_{number:04d}.jpg", quality=90)


def picture(kind: int, random: np.random.Generator) -> Image.Image:
    """Of shapes of one kind, in colours, places and a format of the picture that say nothing."""
    size = (int(random.integers(120, 200)), int(random.integers(120, 200)))
    ground, ink = (_colour(random, light) for light in (0.85, 0.35))
    canvas = Image.new("RGB", size, ground)
    pen = ImageDraw.Draw(canvas)
    for _ in range(int(random.integers(1, 4))):
        side = int(random.integers(30, 60))
        x, y = (int(random.integers(0, length - side)) for length in size)
        box = (x, y, x + side, y + side)
        if kind == 0:
            pen.rectangle(box, fill=ink)
        elif kind == 1:
            pen.ellipse(box, fill=ink)
        elif kind == 2:
            pen.polygon([(x, y + side), (x + side, y + side), (x + side // 2, y)], fill=ink)
        elif kind == 3:
            pen.ellipse(box, outline=ink, width=5)
        elif kind == 4:
            for step in range(0, side, 10):
                pen.line((x, y + step, x + side, y + step), fill=ink, width=3)
        else:
            pen.line((x, y, x + side, y + side), fill=ink, width=8)
            pen.line((x, y + side, x + side, y), fill=ink, width=8)
    return canvas


def _colour(random: np.random.Generator, light: float) -> tuple[int, int, int]:
    red, green, blue = colorsys.hls_to_rgb(random.random(), light, 0.6)
    return round(255 * red), round(255 * green), round(255 * blue)
