"""Clusters by relations of pairs: what DAC, DDC and DCCM have in common.

Before each epoch the network answers for every image. Pairs with much the same answers belong
together, pairs with other ones apart, and perturbed copies of the images learn so, for as many
passes as the phase has; then the network, which knows better now, answers again. Sure answers can
be labels besides, and an image's features can learn to know its own maps. The cluster head alone
trains. Shapes: N images, B of a batch, K clusters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dcdc.config import RunConfig
from dcdc.config.phase_settings import BATCH
from dcdc.config.ranges import SHARE, Range
from dcdc.config.rules import require
from dcdc.engine.cluster_head_initialisation import initialise_by_k_means
from dcdc.engine.context import TrainingContext
from dcdc.engine.objectives import StepTools, Terms
from dcdc.engine.optimiser import Adam, Optimiser
from dcdc.engine.phase import Passes, Phase, Trained
from dcdc.engine.views import Perturbed
from dcdc.errors import InputError
from dcdc.losses import (
    Relations,
    earlier_loss,
    even_threshold,
    find_relations,
    indicator_loss,
    local_information_loss,
    relation_loss,
    sure_label_loss,
)
from dcdc.losses.heads import at_least_float32
from dcdc.networks import CLUSTER_HEAD, ClusteringNetwork, CopyGroupNorm1d
from dcdc.networks.local_maps import LocalDiscriminator, ShowsMaps
from dcdc.runtime.seeding import derive_generator

EARLIER = "earlier"
"""N x K: what the network answered before the epoch."""
BAND = "band"
"""2: the cosines below which pairs are apart, and from which they are together."""
BETAS = (0.0, 0.9)
"""Of Adam without a first moment: RMSprop, but for its first steps, which are not as long."""
N_SEEN_FIRST = 50
"""Batches that norms see before the first answers, which need their statistics."""
N_COMPARED = 2_000
"""Images that say how far logits are spread, and whose pairs where an even threshold is."""


@dataclass(frozen=True)
class Relate(Phase):
    kind = "relate"
    label = "relations of pairs"
    color = "#9c36b5"

    epochs: Annotated[int, Range(0)] = 50
    batch_size: Annotated[int | None, BATCH] = 32
    n_passes: Annotated[int, Range(1, most=1_000)] = 1
    """Over the images in an epoch, by the same earlier answers."""
    threshold: Literal["band", "even"] = "band"
    """From which cosine on pairs belong together. band: `upper`, and below `lower` they are apart,
    and both meet halfway over the epochs; even: that which as many pairs exceed as even clusters
    would have."""
    upper: Annotated[float, SHARE] = 0.99
    lower: Annotated[float, SHARE] = 0.8
    earlier_weight: Annotated[float, Range(0)] = 0.0
    """Of the cross-entropy with an image's own earlier answer, as it is."""
    label_weight: Annotated[float, Range(0)] = 0.0
    """Of the cross-entropy with its earlier answer as a label, where that is sure."""
    label_threshold: Annotated[float, Range(0, 1, below=True)] = 0.9
    """Share from which an answer is sure."""
    indicator_weight: Annotated[float, Range(0)] = 0.0
    """Of what an answer lacks to be one cluster's alone."""
    information_weight: Annotated[float, Range(0)] = 0.0
    """Of the mutual information of features and maps; it takes a backbone that shows its maps."""
    logit_norm: bool = False
    """Whether logits have a batch norm and a ReLU while it trains, as DAC's authors' networks have:
    so no cluster's grow beyond all others'."""
    k_means_at: Annotated[tuple[float, ...], Range(0, 1, below=True)] = ()
    """Shares of the epochs after which the cluster head starts again, from K-Means on the features
    so far."""

    def check(self, name: str, config: RunConfig) -> None:
        super().check(name, config)
        require(self.lower <= self.upper, f"{name}.lower", self.lower, f"at most {self.upper}")
        n_heads = config.network.sub_heads
        one = n_heads == 1 or not self.epochs
        require(one, "network.sub_heads", n_heads, f"1 where {name}.epochs is above 0")

    def passes(self, number: int, heads: tuple[str, ...]) -> Passes:  # noqa: ARG002
        return ((CLUSTER_HEAD,),) * self.n_passes

    def part(self, network: ClusteringNetwork) -> "RelatePart | None":
        if not (self.information_weight or self.logit_norm):
            return None
        return RelatePart(network, with_maps=self.information_weight > 0, norm=self.logit_norm)

    def optimiser(self, trained: Trained) -> Optimiser:
        return trained.by(Adam, betas=BETAS)

    def begin(self, context: TrainingContext) -> None:
        """Norms learn what images are like, then the head's logits are spread: of weights as they
        are drawn all images are nearly alike, and all pairs would belong together."""
        n_images = context.store.n_answered
        n_rows = min(n_images, max(self.batch_size or 0, 2))
        context.network.train()
        with torch.no_grad(), context.model.autocast():
            for number in range(N_SEEN_FIRST):
                draws = derive_generator(context.seed, "seen first", number)
                rows = torch.randperm(n_images, generator=draws)[:n_rows]
                rows = rows[context.processes.share(n_rows)]  # norms see those of all processes
                context.network(context.model.prepare(context.store.batch(rows)))
        _spread_logits(context)

    def begin_epoch(self, context: TrainingContext, number: int) -> None:
        """In place, where a captured step reads it."""
        if number in {int(share * self.epochs) + 1 for share in self.k_means_at}:
            initialise_by_k_means(context.model, context.store, context.seed, spherical=False)
        device = context.model.device
        found = self._answers(context)
        if self.threshold == "even":
            some = found[torch.from_numpy(_evenly_spaced(len(found))).to(device)]
            band = even_threshold(some, found.shape[1]).expand(2)
        else:
            band = torch.tensor(self.band(number), device=device)
        for name, value in ((EARLIER, found), (BAND, band)):
            _on(device, context.state, name, like=value).copy_(value)

    def _answers(self, context: TrainingContext) -> Tensor:
        """N x K, on the device."""
        model, store = context.model, context.store
        if not self.logit_norm:
            return torch.from_numpy(model.assign_store(store).probabilities).to(model.device)
        logits = _logits(context, np.arange(store.n_answered))[1]
        return F.relu(logits).softmax(1)

    def end_epoch(self, context: TrainingContext, means: Mapping[str, float]) -> None:  # noqa: ARG002
        """The head takes the norm over: whoever asks the network has its answers without the
        norm, to which the head's own scale makes no difference."""
        if self.logit_norm:
            norm = self.part_of(context.network).norm
            assert norm is not None
            _spread_logits(context, norm.weight, norm.bias)

    def part_of(self, network: ClusteringNetwork) -> "RelatePart":
        part = network.parts[self.kind]
        assert isinstance(part, RelatePart)
        return part

    def band(self, number: int) -> tuple[float, float]:
        """Lower and upper in epoch `number`: in the last one they meet."""
        halfway = (self.upper - self.lower) / 2
        moved = halfway * (number - 1) / max(1, self.epochs - 1)
        return self.lower + moved, self.upper - moved

    def objective(self, context: TrainingContext, tools: StepTools) -> "RelateObjective":
        return RelateObjective(context, self, tools)


def _on(
    device: torch.device, state: dict[str, Tensor], name: str, like: Tensor | None = None
) -> Tensor:
    """What the phase keeps by that name, in its one place there; out of a checkpoint it comes on a
    CPU. The first time it is `like` something."""
    if like is not None and name not in state:
        state[name] = torch.empty_like(like)
    if state[name].device.type != device.type:
        state[name] = state[name].to(device)
    return state[name]


def _with_maps(network: ClusteringNetwork) -> ShowsMaps:
    if not isinstance(network.backbone, ShowsMaps):
        raise InputError(
            f"a {type(network.backbone).__name__} does not show its maps",
            remedy=("set {relate.information_weight=0}", "use {network.backbone=convnet} or small"),
        )
    return network.backbone


def _evenly_spaced(n_images: int) -> np.ndarray:
    """Rows of some images: all, where there are few."""
    return np.linspace(0, n_images - 1, min(n_images, N_COMPARED)).astype(np.int64)


class RelatePart(nn.Module):
    def __init__(self, network: ClusteringNetwork, *, with_maps: bool, norm: bool) -> None:
        super().__init__()
        self.discriminator: LocalDiscriminator | None = None
        if with_maps:
            backbone = _with_maps(network)
            self.discriminator = LocalDiscriminator(backbone.n_maps, backbone.n_features)
        self.norm: CopyGroupNorm1d | None = None
        if norm:
            self.norm = CopyGroupNorm1d(_cluster_head(network).out_features)


def _cluster_head(network: ClusteringNetwork) -> nn.Linear:
    head = network.heads[CLUSTER_HEAD]
    assert isinstance(head, nn.Linear)
    return head


@torch.no_grad()
def _logits(context: TrainingContext, rows: np.ndarray) -> tuple[nn.Linear, Tensor]:
    """The cluster head and what it says of those images."""
    head = _cluster_head(context.network)
    features = torch.from_numpy(context.model.features_of(context.store, rows)).to(head.weight)
    return head, head(features)


@torch.no_grad()
def _spread_logits(
    context: TrainingContext, deviation: Tensor | float = 1.0, mean: Tensor | float = 0.0
) -> None:
    """The cluster head's, over some images, cluster by cluster."""
    head, logits = _logits(context, _evenly_spaced(context.store.n_answered))
    scale = deviation / logits.std(0).clamp_min(1e-8)
    head.bias.copy_((head.bias - logits.mean(0)) * scale + mean)
    head.weight.mul_(scale[:, None])


class RelateObjective(Perturbed):
    def __init__(self, context: TrainingContext, phase: Relate, tools: StepTools) -> None:
        super().__init__(context.perturbed_copy(1), applied=tools.applied)
        self.context, self.phase, self.tools = context, phase, tools
        self._rows: Tensor | None = None

    def see(self, indices: Tensor) -> None:
        self._rows = indices

    def loss(
        self,
        network: ClusteringNetwork,
        copies: tuple[Tensor, ...],
        heads: Sequence[str],  # noqa: ARG002
    ) -> tuple[Tensor, Terms]:
        phase = self.phase
        with self.tools.autocast():
            if phase.information_weight:
                features, scores = self._with_scores(network, copies[0])
            else:
                features = network.raw_features(copies[0])
            assign = self._assign(network, features)
        (assign,) = self.tools.gather(assign)
        earlier, relations = self._known(assign.device)
        terms, weights = {"pairs": relation_loss(assign, relations)}, {"pairs": 1.0}
        if phase.earlier_weight:
            terms["earlier"] = earlier_loss(assign, earlier)
            weights["earlier"] = phase.earlier_weight
        if phase.label_weight:
            terms["labels"] = sure_label_loss(assign, earlier, phase.label_threshold)
            weights["labels"] = phase.label_weight
        if phase.indicator_weight:
            terms["indicator"] = indicator_loss(assign)
            weights["indicator"] = phase.indicator_weight
        if phase.information_weight:
            terms["information"] = local_information_loss(scores, relations.together)
            weights["information"] = phase.information_weight
        total = torch.stack([weights[name] * term for name, term in terms.items()]).sum()
        shares = {name: pairs.float().mean() for name, pairs in relations._asdict().items()}
        return total, terms | shares

    def _known(self, device: torch.device) -> tuple[Tensor, Relations]:
        """Earlier answers of the batch, B x K, and what they say of its pairs."""
        assert self._rows is not None
        state = self.context.state
        (rows,) = self.tools.gather(self._rows)
        earlier = _on(device, state, EARLIER)[rows]
        lower, upper = _on(device, state, BAND)
        return earlier, find_relations(earlier, lower, upper)

    def _assign(self, network: ClusteringNetwork, features: Tensor) -> Tensor:
        """`features` are the backbone's own."""
        logits = network.heads[CLUSTER_HEAD](network.features(features))
        if self.phase.logit_norm:
            norm = self.phase.part_of(network).norm
            assert norm is not None
            logits = norm(logits)
        return torch.softmax(at_least_float32(logits), dim=1)

    def _with_scores(self, network: ClusteringNetwork, images: Tensor) -> tuple[Tensor, Tensor]:
        """Features, and the score of each image's with each place of all maps."""
        backbone, part = _with_maps(network), self.phase.part_of(network).discriminator
        assert part is not None
        maps = backbone.maps(network.preprocess(images))
        features = backbone.features_of(maps)
        places, whole = part.places(maps), part.whole(features)
        (whole,) = self.tools.gather(whole)
        (flat,) = self.tools.gather(places.flatten(1))
        scores = torch.einsum("bd,cld->bcl", whole, flat.view(-1, *places.shape[1:]))
        return features, scores
