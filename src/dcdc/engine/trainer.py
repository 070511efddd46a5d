"""The loop: epochs of passes of steps, and what is written between them."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dcdc.data.order import epoch_batches
from dcdc.engine.checkpoints import CHECKPOINTS, Checkpoint, load_latest, save_checkpoint
from dcdc.engine.history import HISTORY, append_history, rewind_history
from dcdc.engine.interruption import Interruption
from dcdc.engine.observer import Observer
from dcdc.engine.schedule import learning_rate_factor
from dcdc.engine.step import Step
from dcdc.engine.terms import EpochTerms
from dcdc.errors import InputError, Interrupted, TrainingError
from dcdc.networks import ClusteringNetwork
from dcdc.runtime.seeding import derive_generator, derive_seed

Evaluation = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What a training does, in plain numbers."""

    epochs: int
    batch_size: int
    n_images: int
    heads: tuple[str, ...]
    """The cluster head first."""
    learning_rate: float
    seed: int
    n_extra: int = 0
    """More images, counted on from the others, for passes of the over-clustering head alone."""
    head_training: str = "alternate"
    """alternate: a pass over the images for each head, the cluster head last; joint: one pass."""
    over_clustering_first: int = 0
    """Epochs in which the over-clustering head trains alone."""
    schedule: str = "constant"
    warmup_epochs: float = 0.0
    evaluate_every: int = 1
    checkpoint_every: int = 10
    keep_checkpoints: int = 2

    def n_shown(self, heads: tuple[str, ...]) -> int:
        """Images in a pass that trains `heads`."""
        return self.n_images + (0 if self.heads[0] in heads else self.n_extra)

    def steps_of_pass(self, heads: tuple[str, ...]) -> int:
        """Every batch is full: the images left over come in another epoch's order."""
        return self.n_shown(heads) // self.batch_size

    def passes(self, epoch: int) -> tuple[tuple[str, ...], ...]:
        """The heads trained in each pass over the images in `epoch` (counted from 1)."""
        if epoch <= self.over_clustering_first:
            return (self.heads[1:],)
        if self.head_training == "joint":
            return (self.heads,)
        return tuple((head,) for head in reversed(self.heads))

    def steps(self, epoch: int) -> int:
        return sum(map(self.steps_of_pass, self.passes(epoch)))

    def steps_after(self, epoch: int) -> int:
        """To the end of the plan."""
        return sum(map(self.steps, range(epoch + 1, self.epochs + 1)))


class Trainer:
    """Trains until the plan is done or a signal asks to stop; resumes where it stood.

    `folder` takes `history.jsonl` and `checkpoint/`; without one nothing is written. `expect` is
    told every pass's batches before their steps, so that a streamed set can be read ahead.
    """

    def __init__(
        self,
        *,
        plan: Plan,
        step: Step,
        network: ClusteringNetwork,
        optimiser: torch.optim.Optimizer,
        generator: torch.Generator,
        evaluate: Callable[[], Evaluation],
        start_cluster_head: Callable[[], None] = lambda: None,
        expect: Callable[[Tensor], None] = lambda _: None,
        observer: Observer,
        folder: Path | None = None,
    ) -> None:
        self.plan = plan
        self.step = step
        self.network = network
        self.optimiser = optimiser
        self.generator = generator
        self.evaluate = evaluate
        self.start_cluster_head = start_cluster_head
        self.expect = expect
        self.observer = observer
        self.folder = folder
        self.epoch, self.steps_done = 0, 0
        self.terms = EpochTerms()
        self.history: list[dict[str, Any]] = []
        self._warned: set[str] = set()
        self._rate: float | None = None

    def resume(self) -> bool:
        """Takes up the newest whole checkpoint; False when there is none."""
        assert self.folder is not None
        checkpoint = load_latest(self.folder / CHECKPOINTS, self.observer.warn)
        if checkpoint is None:
            return False
        self._restore(checkpoint)
        return True

    def train(self) -> None:
        """To the end of the plan; a signal saves the state and raises Interrupted."""
        plan = self.plan
        self.observer.on_start(
            epoch=self.epoch,
            epochs=plan.epochs,
            steps_left=plan.steps_after(self.epoch) - self.steps_done,
            batch_size=plan.batch_size,
        )
        if self.folder is not None:
            rewind_history(self.folder / HISTORY, self.epoch)
        with Interruption() as interruption:
            while self.epoch < plan.epochs:
                if not self._train_epoch(interruption):
                    self._save()
                    assert interruption.wanted
                    raise Interrupted(interruption.wanted, self.epoch)
                last = self.epoch == plan.epochs
                if last or self.epoch % plan.checkpoint_every == 0:
                    self._save()

    def _train_epoch(self, interruption: Interruption) -> bool:
        started = time.perf_counter()
        number = self.epoch + 1
        if self.steps_done == 0:
            if self.epoch == self.plan.over_clustering_first:
                self.start_cluster_head()
            self.generator.manual_seed(derive_seed(self.plan.seed, "augment", number))
        self.network.train()
        for indices, heads in self._batches_left():
            if interruption.wanted:
                return False
            self._set_learning_rate()
            terms = self.step(indices, heads)
            self.terms.add(terms)
            self.steps_done += 1
            self.observer.on_step(terms)
        self._require_finite()
        seconds = time.perf_counter() - started
        record: dict[str, Any] = {"epoch": number, "seconds": round(seconds, 3)}
        record |= self.terms.means()
        self.epoch, self.steps_done, self.terms = number, 0, EpochTerms()
        if number % self.plan.evaluate_every == 0 or number == self.plan.epochs:
            record |= self.evaluate()
        if number <= self.plan.over_clustering_first:
            record["warnings"] = []  # of a cluster head that has not begun
        self._warn_once(record.get("warnings", ()))
        self.history.append(record)
        if self.folder is not None:
            append_history(self.folder / HISTORY, record)
        self.observer.on_epoch(record)
        return True

    def _batches_left(self) -> Iterator[tuple[Tensor, tuple[str, ...]]]:
        plan = self.plan
        device = self.generator.device
        first = 0  # step of the epoch at which the pass begins
        for number, heads in enumerate(plan.passes(self.epoch + 1)):
            n_steps = plan.steps_of_pass(heads)
            if self.steps_done < first + n_steps:
                order = derive_generator(plan.seed, "order", self.epoch + 1, number)
                batches = epoch_batches(plan.n_shown(heads), plan.batch_size, order)
                left = batches[self.steps_done - first :]
                self.expect(left)
                for indices in left.to(device):
                    yield indices, heads
            first += n_steps

    def _set_learning_rate(self) -> None:
        plan = self.plan
        progress = self.epoch + self.steps_done / plan.steps(self.epoch + 1)
        factor = learning_rate_factor(plan.schedule, progress, plan.epochs, plan.warmup_epochs)
        rate = plan.learning_rate * factor
        for group in self.optimiser.param_groups:
            if not isinstance(group["lr"], Tensor):
                group["lr"] = rate
            elif rate != self._rate:  # where a captured step reads it
                group["lr"].fill_(rate)
        self._rate = rate

    def _require_finite(self) -> None:
        """The losses tell of every step but the last, whose update only the weights show."""
        try:
            self.terms.require_finite(self.epoch + 1)
            if not all(weight.isfinite().all() for weight in self.network.parameters()):
                raise TrainingError(f"the weights are not finite in epoch {self.epoch + 1}")
        except TrainingError as error:
            kept = (
                f"the last good state is in {self.folder}" if self.folder else "nothing was saved"
            )
            raise TrainingError(
                f"{error}; {kept}; try a lower --set train.learning_rate "
                f"(now {self.plan.learning_rate}) or a higher loss.temperature"
            ) from None

    def _warn_once(self, warnings: Sequence[str]) -> None:
        for warning in warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                self.observer.warn(f"epoch {self.epoch}: {warning}")

    def _save(self) -> None:
        if self.folder is None:
            return
        self._require_finite()
        tensors = {f"network/{name}": t for name, t in self.network.state_dict().items()}
        for index, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser/{index}/{name}": t for name, t in state.items()}
        tensors |= {f"terms/{name}": total for name, total in self.terms.sums.items()}
        tensors["generator"] = self.generator.get_state()
        checkpoint = Checkpoint(
            epoch=self.epoch,
            step=self.steps_done,
            tensors=tensors,
            extra={
                "term_counts": self.terms.counts,
                "n_images": self.plan.n_images,
                "n_extra": self.plan.n_extra,
            },
        )
        save_checkpoint(self.folder / CHECKPOINTS, checkpoint, self.plan.keep_checkpoints)

    def _restore(self, checkpoint: Checkpoint) -> None:
        def under(prefix: str) -> dict[str, Tensor]:
            return {
                name.removeprefix(prefix): tensor
                for name, tensor in checkpoint.tensors.items()
                if name.startswith(prefix)
            }

        for count, kind in (("n_images", "images"), ("n_extra", "extra images")):
            then, now = checkpoint.extra.get(count, 0), getattr(self.plan, count)
            if then != now:
                raise InputError(
                    f"the run was trained on {then} {kind}, the source now has {now}: restore "
                    "them, or start a new run"
                )
        device = self.generator.device
        self.network.load_state_dict(under("network/"))
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in under("optimiser/").items():
            index, _, key = name.partition("/")
            state.setdefault(int(index), {})[key] = tensor
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": state})
        self.generator.set_state(checkpoint.tensors["generator"])
        self.terms.sums = {name: total.to(device) for name, total in under("terms/").items()}
        self.terms.counts = dict(checkpoint.extra["term_counts"])
        self.epoch, self.steps_done = checkpoint.epoch, checkpoint.step
