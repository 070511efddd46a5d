"""What a training costs on more GPUs than are here: measured times, counted bytes, assumed links.

A step of R GPUs that share a batch of B images is computed on B / R of them, plus what every GPU
does alike (the loss over the whole batch), plus exchanges that wait for each other: nothing is
assumed to overlap, so the model errs on the slow side. Shapes: R GPUs, B images a batch, r
perturbed copies, K clusters, C channels of a norm.
"""

import math
from dataclasses import dataclass

FLOAT, HALF = 4, 2  # bytes
_PASSES_OVER_AFFINITY = 8
"""Times that a step writes or reads the sample view's rB x rB affinities: product, scale, softmax,
loss, and back."""
LARGEST_BATCH = 8192
"""Beyond it a batch is shared by more GPUs instead of growing: the loss grows with its square."""


@dataclass(frozen=True)
class StepTime:
    """Of one GPU: a line through two measured batches."""

    images: tuple[int, int]
    ms: tuple[float, float]
    where: str

    def __post_init__(self) -> None:
        assert self.images[0] < self.images[1], self.images

    @property
    def ms_per_image(self) -> float:
        return max(0.0, (self.ms[1] - self.ms[0]) / (self.images[1] - self.images[0]))

    @property
    def fixed_ms(self) -> float:
        """Of launches and of layers too small to fill a chip."""
        return max(0.0, self.ms[0] - self.ms_per_image * self.images[0])

    def of(self, n_images: float) -> float:
        return self.fixed_ms + self.ms_per_image * n_images


H200 = StepTime((50, 200), (2.65, 6.94), "measured on one NVIDIA H200 (docs/results.md)")
"""Of `cifar10-paper`."""


@dataclass(frozen=True)
class Recipe:
    """What decides how much a step exchanges."""

    half_gradients: int
    """Numbers in bfloat16: of the convolutions' weights."""
    full_gradients: int
    """Numbers in float32."""
    norm_channels: tuple[int, ...]
    n_repeats: int
    n_clusters: int
    """Of the head that trains, the larger one."""
    n_heads: int
    """Passes over the images in an epoch."""
    image_bytes: int
    copy_groups: int = 2


@dataclass(frozen=True)
class Links:
    """Assumed, not measured."""

    gpus_per_host: int = 8
    within_host: float = 300e9
    """Bytes a second and GPU that collectives reach."""
    between_hosts: float = 40e9
    latency_us: float = 15.0
    """Of a collective within a host..."""
    latency_per_doubling_us: float = 8.0
    """...and for each doubling of the hosts."""
    memory: float = 4.0e12
    """Bytes a second that a GPU reads and writes of its own memory."""


@dataclass(frozen=True)
class Traffic:
    """Of one GPU and step; bytes are what it receives."""

    gradient_bytes: float
    statistics_bytes: float
    assignment_bytes: float
    n_collectives: int
    read_bytes: float

    @property
    def exchanged_bytes(self) -> float:
        return self.gradient_bytes + self.statistics_bytes + self.assignment_bytes


@dataclass(frozen=True)
class Prediction:
    n_gpus: int
    batch: int
    compute_ms: float
    loss_ms: float
    """Of what every GPU computes for the whole batch, beyond one GPU's own part of it."""
    exchange_ms: float
    traffic: Traffic

    @property
    def step_ms(self) -> float:
        return self.compute_ms + self.loss_ms + self.exchange_ms

    @property
    def images_per_second(self) -> float:
        return 1000 * self.batch / self.step_ms


@dataclass(frozen=True)
class Cost:
    hours: float
    price: float


def traffic(recipe: Recipe, batch: int, n_gpus: int) -> Traffic:
    """All-reduce receives 2 (R - 1) / R of a tensor, all-gather (R - 1) / R of the whole."""
    others = (n_gpus - 1) / n_gpus
    gradients = HALF * recipe.half_gradients + FLOAT * recipe.full_gradients
    channels, norms = sum(recipe.norm_channels), len(recipe.norm_channels)
    gathered = FLOAT * recipe.copy_groups * (2 * channels + norms) * (n_gpus - 1)
    reduced = FLOAT * recipe.copy_groups * 2 * channels * 2 * others
    rows = batch * (1 + recipe.n_repeats)
    return Traffic(
        gradient_bytes=2 * others * gradients,
        statistics_bytes=gathered + reduced,
        assignment_bytes=FLOAT * rows * recipe.n_clusters * others,
        # one each way for a norm, one of assignments, one for each type of gradient
        n_collectives=0 if n_gpus == 1 else 2 * norms + 1 + 2,
        read_bytes=batch / n_gpus * recipe.image_bytes,
    )


def predict(
    step: StepTime, recipe: Recipe, n_gpus: int, batch: int, links: Links | None = None
) -> Prediction:
    """`batch`: of all GPUs together."""
    links = links or Links()
    found = traffic(recipe, batch, n_gpus)
    n_hosts = math.ceil(n_gpus / links.gpus_per_host)
    rate = links.within_host if n_hosts == 1 else links.between_hosts
    latency = links.latency_us + links.latency_per_doubling_us * math.log2(n_hosts)
    exchange = 1000 * found.exchanged_bytes / rate + found.n_collectives * latency / 1000
    return Prediction(
        n_gpus=n_gpus,
        batch=batch,
        compute_ms=step.of(batch / n_gpus),
        loss_ms=_affinity_ms(recipe, batch, links) - _affinity_ms(recipe, batch / n_gpus, links),
        exchange_ms=exchange,
        traffic=found,
    )


def _affinity_ms(recipe: Recipe, batch: float, links: Links) -> float:
    numbers = (recipe.n_repeats * batch) ** 2
    return 1000 * _PASSES_OVER_AFFINITY * FLOAT * numbers / links.memory


def affinity_bytes(recipe: Recipe, batch: int) -> int:
    """On every GPU: the affinities and their gradient, at least."""
    return 2 * FLOAT * (recipe.n_repeats * batch) ** 2


def epoch_cost(
    prediction: Prediction, recipe: Recipe, n_images: int, price_per_gpu_hour: float
) -> Cost:
    """Every head sees every image once; the answers at its end are not in it."""
    hours = recipe.n_heads * n_images / prediction.images_per_second / 3600
    return Cost(hours, hours * prediction.n_gpus * price_per_gpu_hour)
