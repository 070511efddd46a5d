"""Draws a folder of small pictures to try dcdc on: houses, boats, trees, fish and more.

    python examples/drawings.py drawings              # 400 JPEG files, all in one folder
    python examples/drawings.py drawings --in-folders # a sub-folder for each kind: the truth

Colours, places, sizes, angles and backgrounds are drawn at random and say nothing of the kind.
"""

import argparse
import colorsys
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

SIDE, FINE = 160, 3  # pixels of a side; how much larger it is drawn, for smooth edges
Colour = tuple[int, int, int]


class Pen:
    """Draws in a square from -1 to 1, y downwards, that is turned, moved and scaled as a whole."""

    def __init__(self, canvas: Image.Image, random: np.random.Generator) -> None:
        self._draw = ImageDraw.Draw(canvas)
        self._half = canvas.width / 2
        self._scale = self._half * random.uniform(0.5, 0.72)
        self._angle = random.normal(0, 0.12)
        self._centre = self._half + self._half * random.uniform(-0.22, 0.22, 2)
        self._mirrored = -1 if random.random() < 0.5 else 1

    def _place(self, x: float, y: float) -> tuple[float, float]:
        x *= self._mirrored
        cos, sin = math.cos(self._angle), math.sin(self._angle)
        turned = np.array([x * cos - y * sin, x * sin + y * cos])
        return tuple((self._centre + self._scale * turned).tolist())

    def shape(self, colour: Colour, *points: float) -> None:
        pairs = zip(points[::2], points[1::2], strict=True)
        self._draw.polygon([self._place(x, y) for x, y in pairs], fill=colour)

    def oval(self, colour: Colour, x: float, y: float, wide: float, high: float) -> None:
        turns = [2 * math.pi * step / 40 for step in range(40)]
        around = [(x + wide * math.cos(turn), y + high * math.sin(turn)) for turn in turns]
        self.shape(colour, *(number for point in around for number in point))


def house(pen: Pen, one: Colour, two: Colour, three: Colour) -> None:
    pen.shape(one, -0.7, 0, 0.7, 0, 0.7, 0.9, -0.7, 0.9)
    pen.shape(two, -0.9, 0, 0, -0.8, 0.9, 0)
    pen.shape(three, -0.15, 0.4, 0.2, 0.4, 0.2, 0.9, -0.15, 0.9)
    pen.shape(three, -0.55, 0.2, -0.3, 0.2, -0.3, 0.45, -0.55, 0.45)


def boat(pen: Pen, one: Colour, two: Colour, three: Colour) -> None:
    pen.shape(one, -1, 0.4, 1, 0.4, 0.65, 0.85, -0.65, 0.85)
    pen.shape(three, -0.04, -0.95, 0.04, -0.95, 0.04, 0.4, -0.04, 0.4)
    pen.shape(two, 0.08, -0.9, 0.85, 0.25, 0.08, 0.25)
    pen.shape(two, -0.08, -0.6, -0.08, 0.25, -0.6, 0.25)


def tree(pen: Pen, one: Colour, two: Colour, three: Colour) -> None:
    pen.shape(three, -0.12, 0.4, 0.12, 0.4, 0.16, 1, -0.16, 1)
    for top, low, wide in ((-1, -0.3, 0.45), (-0.6, 0.15, 0.6), (-0.2, 0.6, 0.75)):
        pen.shape(one if wide < 0.7 else two, 0, top, wide, low, -wide, low)


def fish(pen: Pen, one: Colour, two: Colour, three: Colour) -> None:
    pen.shape(two, 0.45, 0, 1, -0.45, 1, 0.45)
    pen.oval(one, -0.15, 0, 0.75, 0.42)
    pen.shape(two, -0.2, -0.1, 0.15, 0.05, -0.2, 0.25)
    pen.oval(three, -0.6, -0.1, 0.09, 0.09)


def flower(pen: Pen, one: Colour, two: Colour, three: Colour) -> None:
    pen.shape(three, -0.05, 0, 0.05, 0, 0.05, 1, -0.05, 1)
    pen.oval(three, 0.28, 0.65, 0.25, 0.1)
    for turn in range(6):
        angle = turn * math.pi / 3
        pen.oval(one, 0.38 * math.cos(angle), -0.35 + 0.38 * math.sin(angle), 0.25, 0.25)
    pen.oval(two, 0, -0.35, 0.24, 0.24)


def car(pen: Pen, one: Colour, two: Colour, three: Colour) -> None:
    pen.shape(one, -1, 0, 1, 0, 1, 0.45, -1, 0.45)
    pen.shape(one, -0.6, 0, -0.4, -0.45, 0.35, -0.45, 0.65, 0)
    pen.shape(two, -0.45, -0.05, -0.32, -0.35, 0, -0.35, 0, -0.05)
    for x in (-0.55, 0.55):
        pen.oval(three, x, 0.45, 0.26, 0.26)
        pen.oval(two, x, 0.45, 0.11, 0.11)


def cup(pen: Pen, one: Colour, two: Colour, three: Colour) -> None:
    pen.oval(one, 0.6, 0.1, 0.36, 0.36)
    pen.oval(two, 0.6, 0.1, 0.2, 0.2)
    pen.shape(one, -0.65, -0.45, 0.65, -0.45, 0.5, 0.8, -0.5, 0.8)
    pen.oval(three, 0, -0.45, 0.65, 0.16)


def umbrella(pen: Pen, one: Colour, two: Colour, three: Colour) -> None:
    turns = [math.pi * (1 + step / 20) for step in range(21)]
    dome = [number for turn in turns for number in (0.95 * math.cos(turn), 0.9 * math.sin(turn))]
    pen.shape(one, *dome)
    pen.shape(two, 0, -0.9, 0.32, 0, -0.32, 0)
    pen.shape(three, -0.04, 0, 0.04, 0, 0.04, 0.85, -0.04, 0.85)
    pen.oval(three, 0.12, 0.85, 0.16, 0.1)


KINDS: Sequence[Callable[[Pen, Colour, Colour, Colour], None]] = (
    house, boat, tree, fish, flower, car, cup, umbrella,
)  # fmt: skip


def colour(random: np.random.Generator, saturation: float, value: float) -> Colour:
    """Of any hue."""
    red, green, blue = colorsys.hsv_to_rgb(random.random(), saturation, value)
    return round(255 * red), round(255 * green), round(255 * blue)


def drawing(kind: int, random: np.random.Generator) -> Image.Image:
    """One picture: a soft ground of two colours, and the thing in three stronger ones."""
    low, high = (
        np.array(colour(random, random.uniform(0.1, 0.35), random.uniform(0.8, 1)))
        for _ in range(2)
    )
    slope = np.linspace(0, 1, SIDE * FINE)[:, None, None]
    ground = np.broadcast_to(low + slope * (high - low), (SIDE * FINE, SIDE * FINE, 3))
    canvas = Image.fromarray(ground.astype(np.uint8)).rotate(90 * int(random.integers(4)))
    strong = [colour(random, random.uniform(0.55, 0.9), random.uniform(0.3, 0.9)) for _ in "123"]
    KINDS[kind](Pen(canvas, random), *strong)
    small = canvas.resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    return small.filter(ImageFilter.GaussianBlur(random.uniform(0, 0.8)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--number", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--in-folders", action="store_true", help="A sub-folder for each kind.")
    asked = parser.parse_args()
    random = np.random.default_rng(asked.seed)
    for number in range(asked.number):
        kind = int(random.integers(len(KINDS)))
        home = asked.folder / KINDS[kind].__name__ if asked.in_folders else asked.folder
        home.mkdir(parents=True, exist_ok=True)
        drawing(kind, random).save(home / f"drawing-{number:04}.jpg", quality=90)
    print(f"{asked.number} drawings in {asked.folder}")


if __name__ == "__main__":
    main()
