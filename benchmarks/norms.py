"""The fused norm, layer by layer of ResNet-34, against PyTorch's and against the memory's rate.

    python benchmarks/norms.py                                  # as it is set
    python benchmarks/norms.py --programs 2 4 8 --channels 32 64 --forward 8192 16384  # a sweep

Needs a CUDA device. Forward and backward of each of the backbone's 36 norms (with ReLU; and the
residual, two readers of the output and the stem's pool where the backbone has them), bfloat16,
captured ten at a time, medians of 7 x 20 replays. The stem, with its convolution, is timed apart
too: by PyTorch, with our norm, and in one.
"floor" is the bytes that must move over the rate of a large copy measured in the same run.
"""

import argparse
import itertools
import statistics
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from dcdc.networks import Convolution, CopyGroupNorm, fused_norm, fused_stem
from dcdc.networks.copy_group_norm import PooledNorm

# channels, side, how many with a residual, how many without
LAYERS = ((64, 17, 3, 3), (128, 9, 4, 5), (256, 5, 6, 7), (512, 3, 3, 4))
STEM = (64, 32)


def median_us(call: Callable[[], object], repeats: int = 10) -> float:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            call()
    times = []
    for _ in range(7):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(20):
            graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / (20 * repeats) * 1e3)
    return statistics.median(times)


def example(n: int, channels: int, side: int) -> Tensor:
    images = torch.randn(n, channels, side, side, device="cuda").bfloat16()
    return images.contiguous(memory_format=torch.channels_last).requires_grad_()


def norm_us(n: int, channels: int, side: int, add: bool, plain: bool) -> float:
    x, slope = example(n, channels, side), example(n, channels, side).detach()
    residual = example(n, channels, side) if add else None
    norm = CopyGroupNorm(channels).cuda()
    norm.groups = (n // 4, n - n // 4)
    theirs = torch.nn.BatchNorm2d(channels).cuda()
    inputs = [x, *norm.parameters(), *theirs.parameters(), *([residual] if add else [])]

    def call() -> object:
        if not plain:
            outs = norm(x, residual, fork=True) if add else (norm(x),)
        else:
            y = theirs(x)
            y = F.relu(y if residual is None else y + residual)
            outs = (y, y) if add else (y,)
        return torch.autograd.grad(outs, inputs, [slope] * len(outs), allow_unused=True)

    return median_us(call)


def stem_us(n: int, way: str) -> float:
    """With its convolution of two channels: by "PyTorch", as "norm, pool", or in "one"."""
    channels, side = STEM
    x, slope = example(n, 2, side).detach(), example(n, channels, side // 2 + 1).detach()
    kinds = {"PyTorch": torch.nn.BatchNorm2d, "norm, pool": CopyGroupNorm, "one": PooledNorm}
    norm = kinds[way](channels).cuda()
    norm.groups = (n // 4, n - n // 4)
    layer = Convolution(2, channels, 3).cuda().to(memory_format=torch.channels_last)

    def call() -> object:
        if way == "one":
            outs = norm(x, layer)
        else:
            y = norm(layer(x))
            y = F.max_pool2d(F.relu(y) if way == "PyTorch" else y, 2, 2, 1)
            outs = (y, y)
        return torch.autograd.grad(outs, [layer.weight, *norm.parameters()], [slope, slope])

    with torch.autocast("cuda", torch.bfloat16):
        return median_us(call)


def floor_us(n: int, rate: float) -> float:
    channels, side = STEM
    moved = 5 * channels * (side // 2 + 1) ** 2
    for channels, side, with_, without in LAYERS:
        moved += (8 * without + 12 * with_) * channels * side**2
    return moved * n * 2 / rate


def copy_rate() -> float:
    """Bytes read and written a microsecond."""
    big = torch.empty(2**30, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(big)
    return 2 * 2**30 / median_us(lambda: other.copy_(big), repeats=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, nargs="+", default=[200, 800])
    parser.add_argument("--programs", type=int, nargs="+")
    parser.add_argument("--channels", type=int, nargs="+")
    parser.add_argument("--forward", type=int, nargs="+")
    parser.add_argument("--backward", type=int, nargs="+")
    parser.add_argument("--windows", type=int, nargs="+")
    parser.add_argument("--pixels", type=int, nargs="+")
    parser.add_argument("--warps", type=int, nargs="+", help="of the stem's forward kernel")
    parser.add_argument("--backward-warps", type=int, nargs="+", help="and of its backward one")
    parser.add_argument("--statistics-programs", type=int, nargs="+", help="of the stem")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no CUDA device here")
    names = {
        "_PROGRAMS_PER_PROCESSOR": options.programs,
        "_BLOCK_CHANNELS": options.channels,
        "_FORWARD_BYTES": options.forward,
        "_BACKWARD_BYTES": options.backward,
        "_WINDOW_BYTES": options.windows,
        "_PIXEL_BYTES": options.pixels,
        "_WARPS": options.warps,
        "_BACKWARD_WARPS": options.backward_warps,
        "_STATISTICS_PROGRAMS": options.statistics_programs,
    }
    home = {name: fused_stem if hasattr(fused_stem, name) else fused_norm for name in names}
    swept = {name: values or [getattr(home[name], name)] for name, values in names.items()}
    rate = copy_rate()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, copy {rate / 1e6:.2f} TB/s")
    for n in options.images:
        plain = total_us(n, plain=True)
        print(f"{n} images: PyTorch {plain:.0f} us, floor {floor_us(n, rate):.0f} us")
        stem = {way: stem_us(n, way) for way in ("PyTorch", "norm, pool", "one")}
        print("  the stem: " + ", ".join(f"{way} {us:.0f} us" for way, us in stem.items()))
        for values in itertools.product(*swept.values()):
            for name, value in zip(swept, values, strict=True):
                setattr(home[name], name, value)
            fused_norm.plan.cache_clear()
            chosen = ", ".join(f"{name} {v}" for name, v in zip(swept, values, strict=True))
            stem_alone, all_of_it = stem_us(n, "one"), total_us(n, plain=False)
            print(f"  {all_of_it:6.0f} us, stem {stem_alone:4.0f} us  {chosen}", flush=True)


def total_us(n: int, plain: bool) -> float:
    return stem_us(n, "PyTorch" if plain else "one") + sum(
        count * norm_us(n, channels, side, add, plain)
        for channels, side, with_, without in LAYERS
        for add, count in ((True, with_), (False, without))
        if count
    )


if __name__ == "__main__":
    main()
