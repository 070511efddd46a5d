"""Where a training step's time goes on a GPU, kernel by kernel.

    python benchmarks/step_profile.py --preset cifar10-paper --set heads.batch_size=200
    python benchmarks/step_profile.py --preset stl10 --phase contrast

The step runs eagerly under torch's profiler. Times are of kernels, so work on two streams at once
counts twice. Needs a CUDA device.
"""

import argparse
from collections import defaultdict

import torch
from torch.profiler import ProfilerActivity, profile

from dcdc.bench.steps import build_case
from dcdc.engine.observer import SilentObserver
from dcdc.prepare.assembly import build_training

KINDS = {
    "weight gradients": ("wgrad",),
    "input gradients": ("dgrad",),
    "convolutions forward": ("fprop", "convolve", "implicit_gemm", "Convolution"),
    "norms": ("_partial_statistics", "_apply", "_partial_gradients", "_input_gradient", "norm"),
    "pool": ("_forward", "_backward", "pool"),
    "optimiser": ("_adam", "multi_tensor"),
    "compiled": ("triton_",),
    "perturbations": ("_make_copies", "_fitting_boxes"),
    "random draws": ("distribution", "philox"),
    "copies and conversions": ("copy", "Memcpy", "Memset", "Fill"),
}
N_STEPS = 5


def kind_of(kernel: str) -> str:
    for kind, marks in KINDS.items():
        if any(mark in kernel for mark in marks):
            return kind
    return "others"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="cifar10-paper")
    parser.add_argument("--phase", default="heads", help="as settings call it")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--most", type=int, default=15, help="single kernels to list")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no CUDA device here")
    values = {"train.device": "cuda", "train.capture": False}
    case = build_case(options.preset, values, options.settings)
    trainer = build_training(case.config, case.image_set, SilentObserver(), None).trainer
    trainer.network.train()
    trainer.generator.manual_seed(0)
    plan = trainer.plan
    number = plan.names.index(options.phase)
    phase, step = plan.phases[number], trainer.steps[number]
    phase.begin(trainer.context)
    indices = torch.arange(plan.batch_sizes[number] * phase.index_rows(), device="cuda")
    heads = phase.passes(phase.epochs, plan.heads)[-1]
    for _ in range(5):
        step(indices, heads)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(N_STEPS):
            step(indices, heads)
        torch.cuda.synchronize()
    kernels = sorted(profiled.key_averages(), key=lambda found: -found.device_time_total)
    times: dict[str, float] = defaultdict(float)
    for kernel in kernels:
        times[kind_of(kernel.key)] += kernel.device_time_total / N_STEPS
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {options.preset}, "
        f"{options.phase}, "
        f"B={plan.batch_sizes[number]}"
    )
    for kind, time in sorted(times.items(), key=lambda item: -item[1]):
        print(f"{time:9.1f} us  {kind}")
    print(f"{sum(times.values()):9.1f} us  in all")
    for kernel in kernels[: options.most]:
        time, count = kernel.device_time_total / N_STEPS, kernel.count / N_STEPS
        print(f"{time:9.1f} us {count:6.1f} x  {kernel.key[:100]}")


if __name__ == "__main__":
    main()
