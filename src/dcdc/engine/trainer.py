"""The loop: epochs of passes of steps, and what is written between them."""

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dcdc.data.store import epoch_batches
from dcdc.engine.checkpoints import (
    CHECKPOINTS,
    Checkpoint,
    from_bytes,
    load_latest,
    remove_older,
    save_checkpoint,
    to_bytes,
)
from dcdc.engine.context import TrainingContext
from dcdc.engine.first_epochs import FirstEpochs
from dcdc.engine.history import HISTORY, append_history, read_history, rewind_history, write_history
from dcdc.engine.interruption import Interruption
from dcdc.engine.optimiser import Optimiser
from dcdc.engine.patch_dictionary import initialise_backbone
from dcdc.engine.plan import Place, Plan
from dcdc.engine.step import Step
from dcdc.engine.terms import EpochTerms
from dcdc.errors import InputError, Interrupted, TrainingError
from dcdc.runtime.batch_share import BatchShare
from dcdc.runtime.seeding import derive_generator, derive_seed

_STEPS_BETWEEN_QUESTIONS = {"cuda": 32}
"""Whether anyone was told to stop; elsewhere a step is long enough to ask at each."""


class Trainer:
    """Trains until the plan is done or a signal asks to stop; resumes from a checkpoint.

    `steps` and `optimisers` have one for each phase of the plan. `folder` takes `history.jsonl` and
    `checkpoint/`; without one nothing is written. Of several processes each takes its share of
    every batch, and the first alone has a folder.
    """

    def __init__(
        self,
        *,
        plan: Plan,
        steps: Sequence[Step],
        context: TrainingContext,
        optimisers: Sequence[Optimiser],
        generator: torch.Generator,
        evaluate: Callable[[], dict[str, Any]],
        folder: Path | None = None,
        keep_backbone: bool = False,
    ) -> None:
        """`keep_backbone`: it was given, so it takes nothing from the images first."""
        self.plan = plan
        self.steps = tuple(steps)
        self.context = context
        self.network, self.processes = context.network, context.processes
        self.observer = context.observer
        self.optimisers = tuple(optimisers)
        self.generator = generator
        self.evaluate = evaluate
        self.folder = folder
        self.keep_backbone = keep_backbone
        self.made_with: Mapping[str, Any] = {}
        """What its checkpoints depend on, in plain values that each of them keeps."""
        self.epoch, self.steps_done = 0, 0
        self.evaluated: int | None = None
        """The epoch after which the answers were last looked at."""
        self.terms = EpochTerms()
        self.history: list[dict[str, Any]] = []
        self._finished: dict[str, Tensor] | None = None
        self._warned: set[str] = set()
        self._rate: tuple[int, float] | None = None

    def resume(self, accept: Callable[[Mapping[str, Any]], None] = lambda _: None) -> bool:
        """Takes up the newest whole checkpoint; False when there is none.

        `accept` hears what the checkpoint was made with, and may raise; those of 0.1.0 do not say.
        """
        checkpoint = None
        if self.folder is not None:
            checkpoint = load_latest(self.folder / CHECKPOINTS, self.observer.warn)
            if checkpoint is not None:
                self._require_counts(checkpoint)
                accept(checkpoint.extra.get("made_with", {}))
        if self.processes.joined:  # the others may not see the folder
            content = self.processes.broadcast_bytes(to_bytes(checkpoint) if checkpoint else b"")
            checkpoint = from_bytes(content) if content else None
        if checkpoint is None:
            return False
        try:
            self._restore(checkpoint)
        except InputError:
            raise
        except (LookupError, ValueError, TypeError, RuntimeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(
                f"the checkpoint does not fit the run's settings ({reason})",
                remedy=("restore its config.json", "start a new run by {run}"),
            ) from None
        return True

    def take_up(self, first: FirstEpochs) -> None:
        """Goes on from them: all that they have learnt but the cluster head, which has not begun
        and may have another number of clusters."""
        network = first.weights_for(self.network)
        at_end = first.epoch and self.plan.at(first.epoch).is_last  # moments are of its loss alone
        kept = ("generator",) if at_end else ("generator", "optimiser/", "phase/")
        tensors = {name: t for name, t in first.tensors.items() if name.startswith(kept)}
        tensors |= {f"network/{name}": weight for name, weight in network.items()}
        self._restore(Checkpoint(first.epoch, 0, tensors, {"term_counts": {}}))
        self.history = list(first.history)
        self.keep_backbone = True
        if self.folder is not None:
            write_history(self.folder / HISTORY, first.history)
        self._save()

    def first_epochs(self) -> FirstEpochs:
        """Those that are done, for another training to take up."""
        tensors = {name: tensor.clone() for name, tensor in self._tensors().items()}
        history = self.history if self.folder is None else read_history(self.folder / HISTORY)
        return FirstEpochs(self.epoch, tensors, tuple(history))

    def train(self, *, to: int | None = None, keep_finished: bool = False) -> None:
        """To the end of the plan, or of epoch `to`; a signal saves the state and raises
        Interrupted.

        `keep_finished` holds a copy of the last finished epoch's weights in memory.
        """
        plan = self.plan
        to = plan.epochs if to is None else to
        self.observer.on_start(
            epoch=self.epoch,
            epochs=to,
            steps_left=plan.steps_after(self.epoch) - plan.steps_after(to) - self.steps_done,
        )
        if self.folder is not None:
            rewind_history(self.folder / HISTORY, self.epoch)
            remove_older(self.folder / CHECKPOINTS, plan.keep_checkpoints)
        with Interruption(ignore_repeats=self.processes.joined) as interruption:
            if self.epoch == 0 and self.steps_done == 0 and not self.keep_backbone:
                initialise_backbone(self.context)
                self.keep_backbone = True
            while self.epoch < to:
                wanted = self._train_epoch(interruption)
                if wanted:
                    self._save()
                    raise Interrupted(wanted, self.epoch)
                if keep_finished:
                    state = self.network.state_dict()
                    self._finished = {name: tensor.clone() for name, tensor in state.items()}
                if self.epoch == to or self.epoch % plan.checkpoint_every == 0:
                    self._save()

    def return_to_finished_epoch(self) -> bool:
        """After Interrupted: the weights as the last finished epoch left them, and a cluster head
        that can answer; False where no epoch was finished and kept."""
        if self._finished is None:
            return False
        self.network.load_state_dict(self._finished)
        self.steps_done, self.terms = 0, EpochTerms()
        begins, phase = self.plan.cluster_head_begins()
        if self.epoch < begins:
            phase.initialise_cluster_head(self.context)
        return True

    def _train_epoch(self, interruption: Interruption) -> str | None:
        """To its end, or to the signal that asks to stop."""
        started = time.perf_counter()
        number = self.epoch + 1
        place = self.plan.at(number)
        phase, batch_size = place.phase, self.plan.batch_size(number)
        if self.steps_done == 0:
            self._begin(place)
            self.generator.manual_seed(derive_seed(self.plan.seed, "augment", number))
        self.network.train()
        for indices, heads in self._batches_left():
            if wanted := self._wanted(interruption):
                return wanted
            self._set_learning_rate(place)
            terms = self.steps[place.index](indices, heads)
            self.terms.add(terms)
            self.steps_done += 1
            self.observer.on_step(terms, batch_size)
        self._require_finite()
        seconds = time.perf_counter() - started
        record: dict[str, Any] = {"epoch": number, "seconds": round(seconds, 3)}
        if len(self.plan.phases) > 1:
            record["phase"] = self.plan.names[place.index]
        means = self.terms.means()
        phase.end_epoch(self.context, means)
        record |= means
        self.epoch, self.steps_done, self.terms = number, 0, EpochTerms()
        due = number % self.plan.evaluate_every == 0 or place.is_last
        if due and phase.is_scored:
            try:
                record |= self.evaluate()
                self.evaluated = number
            except TrainingError as error:
                raise self._with_remedy(error, number) from None
            if not self.plan.trains_cluster_head(number):
                record["warnings"] = []  # of a cluster head that has not begun
        self._warn_once(record.get("warnings", ()))
        self.history.append(record)
        if self.folder is not None:
            append_history(self.folder / HISTORY, record)
        self.observer.on_epoch(record)
        return None

    def _wanted(self, interruption: Interruption) -> str | None:
        """A signal that reached any process, at the same step for all of them."""
        if not self.processes.joined:
            return interruption.wanted
        if self.steps_done % _STEPS_BETWEEN_QUESTIONS.get(self.generator.device.type, 1):
            return None
        own = signal.Signals[interruption.wanted] if interruption.wanted else 0
        number = self.processes.all_reduce_max(own)
        return signal.Signals(number).name if number else None

    def _begin(self, place: Place) -> None:
        """What an epoch needs before its first step."""
        if place.number == 1:
            self.context.state.clear()
            self.context.made.clear()
            place.phase.begin(self.context)
        place.phase.begin_epoch(self.context, place.number)

    def _batches_left(self) -> Iterator[tuple[Tensor, tuple[str, ...]]]:
        plan = self.plan
        device = self.generator.device
        epoch = self.epoch + 1
        phase, batch_size = plan.at(epoch).phase, plan.batch_size(epoch)
        first = 0  # step of the epoch at which the pass begins
        for number, heads in enumerate(plan.passes(epoch)):
            n_steps = plan.steps_of_pass(epoch, heads)
            if self.steps_done < first + n_steps:
                order = derive_generator(plan.seed, "order", epoch, number)
                batches = epoch_batches(plan.n_shown(heads), batch_size, order)
                batches = phase.batches(batches, self.context, order)
                left = batches[self.steps_done - first :]
                if self.processes.joined:
                    left = BatchShare(self.processes, batch_size).of(left)
                self.context.store.expect(left)
                for indices in left.to(device):
                    yield indices, heads
            first += n_steps

    def _set_learning_rate(self, place: Place) -> None:
        phase = place.phase
        progress = place.number - 1 + self.steps_done / self.plan.steps(self.epoch + 1)
        rate = phase.learning_rate * phase.rate_factor(progress)
        optimiser = self.optimisers[place.index]
        if not isinstance(optimiser.lr, Tensor):
            optimiser.lr = rate
        elif (place.index, rate) != self._rate:  # where a captured step reads it
            optimiser.lr.fill_(rate)
        self._rate = (place.index, rate)

    @property
    def optimiser(self) -> Optimiser:
        """Of the epoch that is under way, or else of the last one."""
        running = self.epoch + 1 if self.steps_done else max(self.epoch, 1)
        return self.optimisers[self.plan.at(running).index]

    def _require_finite(self) -> None:
        """The losses tell of every step but the last, whose update only the weights show."""
        try:
            self.terms.require_finite(self.epoch + 1)
            if not all(weight.isfinite().all() for weight in self.network.parameters()):
                raise TrainingError(f"the weights are not finite in epoch {self.epoch + 1}")
        except TrainingError as error:
            raise self._with_remedy(error, min(self.epoch + 1, self.plan.epochs)) from None

    def _with_remedy(self, error: TrainingError, epoch: int) -> TrainingError:
        place = self.plan.at(epoch)
        kept = f"the last good state is in {self.folder}" if self.folder else "nothing was saved"
        remedy = place.phase.remedies(self.plan.names[place.index])
        return TrainingError(f"{error}; {kept}", remedy=remedy)

    def _warn_once(self, warnings: Sequence[str]) -> None:
        for warning in warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                self.observer.warn(f"epoch {self.epoch}: {warning}")

    def _save(self) -> None:
        if self.folder is None and not self.processes.joined:
            return
        self._require_finite()
        self.processes.with_barrier(self._write_checkpoint)

    def _write_checkpoint(self) -> None:
        if self.folder is None:
            return
        checkpoint = Checkpoint(
            epoch=self.epoch,
            step=self.steps_done,
            tensors=self._tensors(),
            extra={
                "term_counts": self.terms.counts,
                "n_images": self.plan.n_images,
                "n_extra": self.plan.n_extra,
                "made_with": dict(self.made_with),
            },
        )
        save_checkpoint(self.folder / CHECKPOINTS, checkpoint, self.plan.keep_checkpoints)

    def _tensors(self) -> dict[str, Tensor]:
        """All that training depends on."""
        tensors = {f"network/{name}": t for name, t in self.network.state_dict().items()}
        tensors |= {f"optimiser/{name}": t for name, t in self.optimiser.named_state().items()}
        tensors |= {f"terms/{name}": total for name, total in self.terms.sums.items()}
        tensors["generator"] = self.generator.get_state()
        return tensors | {f"phase/{name}": t for name, t in self.context.state.items()}

    def _require_counts(self, checkpoint: Checkpoint) -> None:
        for count, kind in (("n_images", "images"), ("n_extra", "extra images")):
            then, now = checkpoint.extra.get(count, 0), getattr(self.plan, count)
            if then != now:
                raise InputError(
                    f"the run was trained on {then} {kind}, the source now has {now}: restore "
                    "them, or start a new run"
                )

    def _restore(self, checkpoint: Checkpoint) -> None:
        def under(prefix: str) -> dict[str, Tensor]:
            return {
                name.removeprefix(prefix): tensor
                for name, tensor in checkpoint.tensors.items()
                if name.startswith(prefix)
            }

        device = self.generator.device
        self.epoch, self.steps_done = checkpoint.epoch, checkpoint.step
        self.network.load_state_dict(under("network/"))
        self.optimiser.load_named_state(under("optimiser/"))
        self.generator.set_state(checkpoint.tensors["generator"])
        self.context.state.clear()
        self.context.state.update(under("phase/"))
        self.terms.sums = {name: total.to(device) for name, total in under("terms/").items()}
        self.terms.counts = dict(checkpoint.extra["term_counts"])
