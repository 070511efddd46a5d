"""`dcdc bench --scale`: what more GPUs would give and cost, by the model of docs/scale.md."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dcdc.errors import InputError

if TYPE_CHECKING:
    import torch

    from dcdc.bench.case import Case

GPUS = (1, 8, 64, 512)
IMAGES = (10**6, 10**7, 10**8, 10**9)
PRICE = 4.0
"""Assumed dollars for an hour of one GPU."""


def show_scale(case: "Case", device: "torch.device", seconds: float, price: float) -> None:
    from dcdc.bench.scale import RECORDED, recipe_of, step_time
    from dcdc.bench.scale_model import LARGEST_BATCH, Links, affinity_bytes, epoch_cost, predict
    from dcdc.cli.console import say

    if not 0 <= price < float("inf"):
        raise InputError(f"--price is {price}: give dollars for an hour of one GPU")
    if device.type != "cuda" and case.preset != RECORDED:
        raise InputError(
            f"without a GPU --scale knows the steps of {RECORDED} alone: use --preset {RECORDED}"
        )
    recipe, links = recipe_of(case), Links()
    step = step_time(case, device, seconds)
    share = step.images[1]
    say(
        f"{case.preset}: {step.of(share):.2f} ms for {share} images on one GPU, {step.where}: "
        f"{step.fixed_ms:.2f} ms + {step.ms_per_image:.4f} ms an image"
    )
    say(
        f"batch: {share} images a GPU, {LARGEST_BATCH:,} at most together; another batch is "
        "another recipe, and may want another learning rate"
    )
    say(
        f"assumed: {links.gpus_per_host} GPUs a host, {links.within_host / 1e9:.0f} GB/s between "
        f"them, {links.between_hosts / 1e9:.0f} GB/s a GPU between hosts; {links.latency_us:.0f} "
        f"us a collective, {links.latency_per_doubling_us:.0f} more for each doubling of hosts; "
        f"nothing overlaps; {price:g} dollars for a GPU's hour"
    )
    found = [predict(step, recipe, n, min(share * n, LARGEST_BATCH), links) for n in GPUS]
    rows = []
    for one in found:
        per_gpu = one.images_per_second / one.n_gpus / found[0].images_per_second
        held = affinity_bytes(recipe, one.batch) / 1e9
        rows.append(
            [
                f"{one.n_gpus}",
                f"{one.batch:,}",
                f"{one.step_ms:.2f}",
                f"{one.loss_ms:.2f}",
                f"{one.exchange_ms:.2f}",
                f"{one.traffic.exchanged_bytes / 1e6:.0f}",
                f"{one.traffic.read_bytes * 1000 / one.step_ms / 1e6:.0f}",
                f"{one.images_per_second:,.0f}",
                f"{per_gpu:.2f}",
                f"{held:.1f}",
            ]
        )
    titles = ["GPUs", "batch", "ms a step", "loss", "exchange", "MB exchanged", "MB/s read"]
    _print([*titles, "images/s", "efficiency", "GB of affinities"], rows)
    say("one epoch, in which every head sees every image once:")
    table = [
        [
            f"{n:,}",
            *(
                f"{_hours(cost.hours)}, {_dollars(cost.price)}"
                for cost in (epoch_cost(one, recipe, n, price) for one in found)
            ),
        ]
        for n in IMAGES
    ]
    _print(["images", *(f"{n} GPUs" if n > 1 else "1 GPU" for n in GPUS)], table)


def _hours(hours: float) -> str:
    return f"{60 * hours:.1f} min" if hours < 1 else f"{hours:,.1f} h"


def _dollars(price: float) -> str:
    return f"${price:,.0f}" if price >= 10 else f"${price:.2f}"


def _print(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, width=140).print(table)
