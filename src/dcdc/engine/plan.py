"""What a training does, in plain numbers: phases of epochs of passes of steps."""

from dataclasses import dataclass

INSTANCE, HEADS, SELF_LABEL = "instance", "heads", "self_label"
"""Kinds of phases, in the order in which a training has them."""


@dataclass(frozen=True)
class Phase:
    """Epochs of one kind of step; counted from 1 within the phase."""

    kind: str
    epochs: int
    batch_size: int
    heads: tuple[str, ...]
    """The cluster head first."""
    learning_rate: float
    schedule: str = "constant"
    warmup_epochs: float = 0.0
    head_training: str = "alternate"
    """alternate: a pass over the images for each head, the cluster head last; joint: one pass."""
    over_clustering_first: int = 0
    """Epochs in which the over-clustering head trains alone."""
    n_neighbours: int = 0
    """Of each image, found as the phase begins: the perturbed copies are of one of them."""
    temperature: str = ""
    """The setting that makes its loss calmer when it is higher, if it has one."""

    def passes(self, epoch: int) -> tuple[tuple[str, ...], ...]:
        """The heads trained in each pass over the images in `epoch`."""
        if epoch <= self.over_clustering_first:
            return (self.heads[1:],)
        if self.head_training == "joint":
            return (self.heads,)
        return tuple((head,) for head in reversed(self.heads))


@dataclass(frozen=True)
class Plan:
    phases: tuple[Phase, ...]
    n_images: int
    cluster_head: str
    seed: int
    n_extra: int = 0
    """More images, counted on from the others, for passes without the cluster head."""
    evaluate_every: int = 1
    checkpoint_every: int = 10
    keep_checkpoints: int = 2

    @property
    def epochs(self) -> int:
        return sum(phase.epochs for phase in self.phases)

    @property
    def cluster_head_begins(self) -> int:
        """The epoch (counted from 1) in which the cluster head first trains."""
        before = 0
        for phase in self.phases:
            if phase.kind == HEADS:
                return before + phase.over_clustering_first + 1
            before += phase.epochs
        return 1

    def phase(self, kind: str) -> Phase:
        (found,) = (phase for phase in self.phases if phase.kind == kind)
        return found

    def at(self, epoch: int) -> tuple[Phase, int]:
        """The phase of `epoch` (counted from 1) and its number there."""
        number = epoch
        for phase in self.phases if epoch >= 1 else ():
            if number <= phase.epochs:
                return phase, number
            number -= phase.epochs
        raise ValueError(f"epoch {epoch} is not one of 1 to {self.epochs}")

    def n_shown(self, heads: tuple[str, ...]) -> int:
        """Images in a pass that trains `heads`."""
        return self.n_images + (0 if self.cluster_head in heads else self.n_extra)

    def passes(self, epoch: int) -> tuple[tuple[str, ...], ...]:
        phase, number = self.at(epoch)
        return phase.passes(number)

    def steps_of_pass(self, epoch: int, heads: tuple[str, ...]) -> int:
        """Every batch is full: the images left over come in another epoch's order."""
        return self.n_shown(heads) // self.at(epoch)[0].batch_size

    def steps(self, epoch: int) -> int:
        return sum(self.steps_of_pass(epoch, heads) for heads in self.passes(epoch))

    def steps_after(self, epoch: int) -> int:
        """To the end of the plan."""
        return sum(map(self.steps, range(epoch + 1, self.epochs + 1)))
