"""One image at a time by Pillow, operation for operation as torchvision's PIL backend has them."""

import math

import numpy as np
import torch
from PIL import Image, ImageEnhance
from torch import Tensor

Picture = Image.Image
_BILINEAR = Image.Resampling.BILINEAR


def resize(image: Picture, side: int) -> Picture:
    return image.resize((side, side), _BILINEAR)


def crop(image: Picture, top: int, left: int, height: int, width: int) -> Picture:
    return image.crop((left, top, left + width, top + height))


def brightness(image: Picture, factor: float) -> Picture:
    return ImageEnhance.Brightness(image).enhance(factor)


def contrast(image: Picture, factor: float) -> Picture:
    return ImageEnhance.Contrast(image).enhance(factor)


def saturation(image: Picture, factor: float) -> Picture:
    return ImageEnhance.Color(image).enhance(factor)


def hue(image: Picture, turns: float) -> Picture:
    """In bytes: a whole turn is 255 steps on a circle of 256."""
    if image.mode == "L":
        return image
    circle, colour, value = image.convert("HSV").split()
    turned = np.array(circle, np.uint8) + np.int32(turns * 255).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(turned), colour, value)).convert(image.mode)


def grey(image: Picture) -> Picture:
    if image.mode == "L":
        return image
    luminance = np.array(image.convert("L"), np.uint8)
    return Image.fromarray(np.dstack([luminance] * 3))


def flip(image: Picture) -> Picture:
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def move(
    image: Picture, angle: float, right: float, down: float, scale: float, shear: float
) -> Picture:
    """Turned by degrees clockwise, sheared along x, scaled and shifted about the centre."""
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    tan = math.tan(math.radians(shear))
    centre_x, centre_y = image.width / 2, image.height / 2
    x, y = -centre_x - right, -centre_y - down
    a, b = (cos - sin * tan) / scale, (cos * tan + sin) / scale
    d, e = -sin / scale, cos / scale
    inverse = (a, b, a * x + b * y + centre_x, d, e, d * x + e * y + centre_y)
    return image.transform(image.size, Image.Transform.AFFINE, inverse, _BILINEAR)


def to_tensor(image: Picture) -> Tensor:
    """C x H x W in [0, 1]."""
    pixels = torch.from_numpy(np.array(image, np.uint8))
    pixels = pixels.view(image.height, image.width, len(image.getbands()))
    return pixels.permute(2, 0, 1).contiguous().float().div(255)


def add_noise(pixels: Tensor, std: float) -> Tensor:
    return (pixels + torch.randn_like(pixels) * std).clamp(0, 1)


def normalise(pixels: Tensor, mean: tuple[float, ...], std: tuple[float, ...]) -> Tensor:
    means, deviations = torch.tensor(mean), torch.tensor(std)
    return pixels.sub_(means[:, None, None]).div_(deviations[:, None, None])
