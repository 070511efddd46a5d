# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls
# mypy: disable-error-code="import-untyped, import-not-found"
"""Random numbers to boxes in one kernel, which tensor ops do in some forty launches.

B images, A attempts; a box is top, left, height, width
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 64


@triton.jit
def _fitting_boxes(
    areas,
    aspects,
    places,
    boxes,
    n,
    height,
    width,
    centred_height,
    centred_width,
    attempts: tl.constexpr,
    block: tl.constexpr,
):
    image = tl.program_id(0) * block + tl.arange(0, block)
    inside = image < n
    box_height = tl.zeros((block,), tl.float32)
    box_width = tl.zeros((block,), tl.float32)
    found = image < 0
    for attempt in tl.static_range(attempts):
        area = tl.load(areas + image * attempts + attempt, mask=inside, other=0.0)
        aspect = tl.load(aspects + image * attempts + attempt, mask=inside, other=1.0)
        high = tl.floor(tl.sqrt_rn(tl.div_rn(area, aspect)) + 0.5)
        wide = tl.floor(tl.sqrt_rn(area * aspect) + 0.5)
        fits = (high > 0) & (high <= height) & (wide > 0) & (wide <= width)
        box_height = tl.where(fits & ~found, high, box_height)
        box_width = tl.where(fits & ~found, wide, box_width)
        found = found | fits
    top = tl.floor(tl.load(places + image, mask=inside, other=0.0) * (height - box_height + 1))
    left = tl.floor(tl.load(places + n + image, mask=inside, other=0.0) * (width - box_width + 1))
    top = tl.where(found, top.to(tl.int32), (height - centred_height) // 2)
    left = tl.where(found, left.to(tl.int32), (width - centred_width) // 2)
    box_height = tl.where(found, box_height.to(tl.int32), centred_height)
    box_width = tl.where(found, box_width.to(tl.int32), centred_width)
    tl.store(boxes + 4 * image, top.to(tl.int64), mask=inside)
    tl.store(boxes + 4 * image + 1, left.to(tl.int64), mask=inside)
    tl.store(boxes + 4 * image + 2, box_height.to(tl.int64), mask=inside)
    tl.store(boxes + 4 * image + 3, box_width.to(tl.int64), mask=inside)


def fitting_boxes(
    areas: Tensor,
    aspects: Tensor,
    places: Tensor,
    limits: tuple[int, int],
    centred: tuple[int, int],
) -> Tensor:
    """B x 4 from areas, aspects (B x A) and places (2 x B); limits, centred: height and width."""
    n, attempts = areas.shape
    boxes = torch.empty((n, 4), dtype=torch.int64, device=areas.device)
    with torch.cuda.device_of(areas):
        _fitting_boxes[(triton.cdiv(n, _BLOCK),)](
            *(areas, aspects, places, boxes, n, *limits, *centred),
            attempts=attempts,
            block=_BLOCK,
            num_warps=2,
        )
    return boxes
