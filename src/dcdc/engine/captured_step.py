"""The whole step as a CUDA graph: one launch a step instead of some two thousand.

The graph reads its images from the resident store by an index buffer, or from an image buffer
that a streamed store fills. Everything it touches keeps its place in memory: weights, optimiser
state, learning rate (a tensor), the generator's offset.
"""

import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from dcdc.engine.optimiser import Optimiser
from dcdc.engine.step import EagerStep
from dcdc.runtime.kernels_ahead import build_kernels_of

_WARM_UPS = 3  # the first finds algorithms, the second makes the optimiser's state


class Graph(Protocol):
    def replay(self) -> None: ...


Capture = Callable[[Callable[[], object], torch.Generator], Graph]
"""Warms a function up and records it; what it does not run inside may happen again."""


@dataclass(frozen=True)
class _Recorded:
    graph: Graph
    terms: dict[str, Tensor]


class CapturedStep:
    """An EagerStep with the same signature; a graph for each set of heads, made when needed."""

    def __init__(
        self,
        eager: EagerStep,
        n_rows: int,
        *,
        warn: Callable[[str], None],
        capture: Capture,
    ) -> None:
        """`n_rows`: indices of a batch, partners included."""
        self.eager, self._warn = eager, warn
        self.store, self.generator = eager.store, eager.generator
        self._capture = capture
        self._recorded: dict[tuple[str, ...], _Recorded | None] = {}  # None: runs eagerly
        device = eager.generator.device
        self._indices = torch.zeros(n_rows, dtype=torch.int64, device=device)
        self._images: Tensor | None = None
        if not eager.store.is_resident:
            some = torch.zeros(n_rows, dtype=torch.int64)  # the shape counts, and any image has it
            self._images = torch.zeros_like(eager.store.batch(some))

    def __call__(self, indices: Tensor, heads: Sequence[str]) -> dict[str, Tensor]:
        """The terms are the graph's own: the next step overwrites them."""
        self._indices.copy_(indices, non_blocking=True)
        if self._images is not None:
            self._images.copy_(self.store.batch(indices), non_blocking=True)
        key = tuple(heads)
        if key not in self._recorded:
            self._recorded[key] = self._record(key)
        recorded = self._recorded[key]
        if recorded is None:
            return self._train(key)
        recorded.graph.replay()
        return recorded.terms

    def _train(self, heads: tuple[str, ...]) -> dict[str, Tensor]:
        if self._images is None:
            return self.eager(self._indices, heads)
        self.eager.objective.see(self._indices)
        return self.eager.train_on(self._images, heads)

    def _record(self, heads: tuple[str, ...]) -> _Recorded | None:
        terms: dict[str, Tensor] = {}

        def step() -> None:
            terms.update(self._train(heads))

        try:
            with ignoring_streams():
                if self.generator.device.type == "cuda":
                    with unchanged(self.eager):
                        aside(lambda: build_kernels_of(step))
                with unchanged(self.eager):
                    graph = self._capture(step, self.generator)
        except RuntimeError as error:  # torch's own, of whatever cannot be captured
            self._warn(not_captured(error))
            return None
        return _Recorded(graph, terms)


def not_captured(error: RuntimeError) -> str:
    """What to tell."""
    first: BaseException = error
    while first.__context__ is not None:  # the end of a capture fails, too, and does not say why
        first = first.__context__
    reason = str(first).splitlines()[0]
    return f"the step cannot be captured, so it runs eagerly and slower: {reason}"


@contextmanager
def ignoring_streams() -> Iterator[None]:
    """A step warms up on a stream of its own, of which torch 2.11 complains."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The AccumulateGrad node's stream", UserWarning)
        yield


def aside(function: Callable[[], object]) -> None:
    """Runs it on a stream of its own, as what is recorded later has to be run first: a gradient
    that was once added up on the default stream would be added up there in the recording, too,
    which no recording allows."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        function()
    torch.cuda.current_stream().wait_stream(stream)


class CudaCapture:
    """Graphs that share one pool of memory: they never run at the same time."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(
        self, function: Callable[[], object], generator: torch.Generator | None = None
    ) -> Graph:
        def warm_up() -> None:
            for _ in range(_WARM_UPS):
                function()

        self.aside(warm_up)
        return self.record(function, generator)

    def aside(self, function: Callable[[], object]) -> None:
        aside(function)

    def record(
        self, function: Callable[[], object], generator: torch.Generator | None = None
    ) -> Graph:
        """What it does, not yet done; if that fails, generators draw for eager steps again."""
        gc.collect()  # of steps before nothing is left, which the recording could meet
        graph = torch.cuda.CUDAGraph()
        if generator is not None:
            graph.register_generator_state(generator)
        try:
            # A streamed set's reading thread may wait for its copies meanwhile.
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                function()
        except RuntimeError:  # to torch, pool and generators are still those of a recording
            self._pool = torch.cuda.graph_pool_handle()
            _draw_eagerly(torch.cuda.default_generators[torch.cuda.current_device()])
            if generator is not None:
                _draw_eagerly(generator)
            raise
        # What a recording begins with sets the graph's seed on the recording's own stream: where
        # that is late, the first replay would draw by it and not by the generator.
        torch.cuda.synchronize()
        return graph


def _draw_eagerly(generator: torch.Generator) -> None:
    generator.graphsafe_set_state(generator.clone_state())


@contextmanager
def unchanged(step: EagerStep) -> Iterator[None]:
    """Steps inside the block leave no trace: weights, statistics, optimiser, generator, and what
    the phase keeps."""
    kept = {name: tensor.clone() for name, tensor in step.network.state_dict().items()}
    kept_by_phase = {name: tensor.clone() for name, tensor in step.state.items()}
    state = {key: tensor.clone() for key, tensor in _state(step.optimiser).items()}
    generator_state = step.generator.get_state()
    try:
        yield
    finally:
        step.network.load_state_dict(kept)  # in place
        for key, tensor in _state(step.optimiser).items():
            if key in state:
                tensor.copy_(state[key])
            else:
                tensor.zero_()
        for name, tensor in kept_by_phase.items():
            step.state[name].copy_(tensor)
        step.generator.set_state(generator_state)


def _state(optimiser: Optimiser) -> dict[tuple[int, str], Tensor]:
    return {
        (id(parameter), name): value
        for parameter, values in optimiser.state.items()
        for name, value in values.items()
    }
