"""What a training does, in plain numbers: phases of epochs of passes of steps."""

from dataclasses import dataclass

from dcdc.engine.phase import Passes, Phase, trains


@dataclass(frozen=True)
class Place:
    """Of an epoch in the plan."""

    index: int
    """Of its phase."""
    phase: Phase
    number: int
    """In the phase, counted from 1."""

    @property
    def is_last(self) -> bool:
        """Of its phase."""
        return self.number == self.phase.epochs


@dataclass(frozen=True)
class Plan:
    phases: tuple[Phase, ...]
    names: tuple[str, ...]
    """Of the phases, as settings have them."""
    batch_sizes: tuple[int, ...]
    heads: tuple[str, ...]
    """Of the network, the cluster head first."""
    n_images: int
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
    def cluster_head(self) -> str:
        return self.heads[0]

    def at(self, epoch: int) -> Place:
        """The place of `epoch`, counted from 1."""
        number = epoch
        for index, phase in enumerate(self.phases if epoch >= 1 else ()):
            if number <= phase.epochs:
                return Place(index, phase, number)
            number -= phase.epochs
        raise ValueError(f"epoch {epoch} is not one of 1 to {self.epochs}")

    def trains_cluster_head(self, epoch: int) -> bool:
        place = self.at(epoch)
        return trains(place.phase, self.cluster_head, place.number, self.heads)

    def cluster_head_begins(self) -> tuple[int, Phase]:
        """The epoch (counted from 1) in which the cluster head first trains, and its phase."""
        for epoch in range(1, self.epochs + 1):
            if self.trains_cluster_head(epoch):
                return epoch, self.at(epoch).phase
        raise ValueError("no phase trains the cluster head")

    def n_shown(self, heads: tuple[str, ...]) -> int:
        """Images in a pass that trains `heads`."""
        return self.n_images + (0 if self.cluster_head in heads else self.n_extra)

    def passes(self, epoch: int) -> Passes:
        place = self.at(epoch)
        return place.phase.passes(place.number, self.heads)

    def batch_size(self, epoch: int) -> int:
        return self.batch_sizes[self.at(epoch).index]

    def steps_of_pass(self, epoch: int, heads: tuple[str, ...]) -> int:
        """Every batch is full: the images left over come in another epoch's order."""
        return self.n_shown(heads) // self.batch_size(epoch)

    def steps(self, epoch: int) -> int:
        return sum(self.steps_of_pass(epoch, heads) for heads in self.passes(epoch))

    def steps_after(self, epoch: int) -> int:
        """To the end of the plan."""
        return sum(map(self.steps, range(epoch + 1, self.epochs + 1)))
