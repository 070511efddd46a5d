"""The clustering network: normalise, Sobel or not, trunk, one softmax head per role, projection.

Shapes: B images, D features, K clusters of a head.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from dcdc.networks.copy_group_norm import CopyGroupNorm1d
from dcdc.networks.dense import Dense
from dcdc.networks.front import Normalise, Sobel, front
from dcdc.networks.patches import PatchTrunk
from dcdc.networks.resnet import resnet18, resnet34
from dcdc.networks.slow_copy import SlowCopy
from dcdc.networks.small import SmallTrunk

TRUNKS: dict[str, Callable[[int], nn.Module]] = {
    "resnet34": resnet34,
    "resnet18": resnet18,
    "resnet34-unpooled": partial(resnet34, pool=False),
    "resnet18-unpooled": partial(resnet18, pool=False),
    "small": SmallTrunk,
    "patches": PatchTrunk,
}

CLUSTER_HEAD = "cluster_head"
OVER_CLUSTERING_HEAD = "over_clustering_head"
ROLES = (CLUSTER_HEAD, OVER_CLUSTERING_HEAD)
PROJECTION = "projection"


@dataclass(frozen=True)
class NetworkOutput:
    features: Tensor
    """B x D"""
    assign: dict[str, Tensor]
    """By head: B x K, rows sum to 1."""

    def first(self, n: int) -> "NetworkOutput":
        """Of the first images alone."""
        return NetworkOutput(
            self.features[:n], {name: rows[:n] for name, rows in self.assign.items()}
        )


class ClusteringNetwork(nn.Module):
    """Images in [0, 1], B x C x H x W, to features and the assignments of the heads asked for."""

    def __init__(
        self,
        *,
        trunk: str,
        in_channels: int,
        n_clusters: int,
        n_over_clusters: int = 0,
        sobel: bool = False,
        mean: Sequence[float],
        std: Sequence[float],
        n_projected: int = 0,
        predicts: bool = False,
        n_sub_heads: int = 1,
    ) -> None:
        """`n_projected` numbers of a projection for instance contrast; 0: none. `predicts`: another
        copy's projection can be predicted from an image's. `n_sub_heads` heads of each role; where
        there are several, the first answers until `answer_by` says which."""
        super().__init__()
        self.in_channels = in_channels
        self.memory_format = torch.contiguous_format
        self.normalise = Normalise(mean, std)
        self.sobel = Sobel() if sobel else None
        self.trunk = TRUNKS[trunk](Sobel.out_channels if sobel else in_channels)
        n_features = self.trunk.n_features
        assert isinstance(n_features, int)
        self.n_features = n_features
        roles = {CLUSTER_HEAD: n_clusters}
        if n_over_clusters:
            roles[OVER_CLUSTERING_HEAD] = n_over_clusters
        self.n_sub_heads = n_sub_heads
        self.heads = nn.ModuleDict(
            {
                name: Dense(n_features, k)
                for role, k in roles.items()
                for name in self.sub_heads(role)
            }
        )
        self.answering: Tensor | None
        self.register_buffer("answering", torch.tensor(0) if n_sub_heads > 1 else None)
        self.projection: nn.Module | None = None
        self.predictor: nn.Module | None = None
        self.slow_copy: SlowCopy | None = None
        if n_projected and predicts:
            self.projection = _normed_layers(n_features, n_projected)
            self.predictor = _normed_layers(n_projected, n_projected)
        elif n_projected:
            self.projection = _projection(n_features, n_projected)

    def sub_heads(self, head: str) -> tuple[str, ...]:
        """The heads of a role, which is the name of its head where there is one alone."""
        if self.n_sub_heads == 1 or head not in ROLES:
            return (head,)
        return tuple(f"{head}_{number}" for number in range(1, self.n_sub_heads + 1))

    @property
    def answering_head(self) -> str:
        """Waits for the device where there are several."""
        number = 0 if self.answering is None else int(self.answering)
        return self.sub_heads(CLUSTER_HEAD)[number]

    def answer_by(self, head: str) -> None:
        """From now on; the weights know it when they are saved."""
        number = self.sub_heads(CLUSTER_HEAD).index(head)
        if self.answering is not None:
            self.answering.fill_(number)

    @property
    def n_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    def lay_out(self, memory_format: torch.memory_format) -> None:
        """Weights of convolutions, and images before the first of them, as `memory_format` has it:
        the same results, at another speed."""
        self.memory_format = memory_format
        for weight in (*self.parameters(), *self.buffers()):
            if weight.ndim == 4:
                weight.data = weight.data.contiguous(memory_format=memory_format)

    def seen(self, images: Tensor) -> Tensor:
        """What the trunk is given."""
        x = front(images, self.normalise, self.sobel).contiguous(memory_format=self.memory_format)
        if x.shape[1] == 1 and self.memory_format == torch.channels_last:
            # One channel is laid out both ways at once; convolutions tell by the strides.
            x = x[:, 0, :, :, None].permute(0, 3, 1, 2)
        return x

    def features(self, images: Tensor) -> Tensor:
        features: Tensor = self.trunk(self.seen(images))
        return features

    def forward(self, images: Tensor, heads: Iterable[str] = (CLUSTER_HEAD,)) -> NetworkOutput:
        """`heads` are roles, all of whose sub-heads answer, or single sub-heads."""
        features = self.features(images)
        names = [name for head in heads for name in self.sub_heads(head)]
        assign = {name: _softmax(self.heads[name](features)) for name in names}
        return NetworkOutput(features, assign)

    def project(self, images: Tensor) -> Tensor:
        """B x D: where instance contrast compares images."""
        projected: Tensor = self._projecting(self.seen(images))
        return projected

    def predict(self, images: Tensor) -> Tensor:
        """B x D: what the slow copy should make of another copy of each image."""
        assert self.predictor is not None, "built without a predictor"
        predicted: Tensor = self.predictor(self.project(images))
        return predicted

    def project_slowly(self, images: Tensor) -> Tensor:
        """B x D: as the slow copy does, without a gradient."""
        assert self.slow_copy is not None, "there is no slow copy"
        projected: Tensor = self.slow_copy(self.seen(images))
        return projected

    def keep_slow_copy(self) -> None:
        """From now on, of trunk and projection as they are; one that is there catches up."""
        if self.slow_copy is None:
            self.slow_copy = SlowCopy(self._projecting)
        else:
            self.slow_copy.catch_up(self._projecting)

    def drop_slow_copy(self) -> None:
        self.slow_copy = None

    def follow_slowly(self, momentum: float) -> None:
        assert self.slow_copy is not None, "there is no slow copy"
        self.slow_copy.follow(self._projecting, momentum)

    @property
    def _projecting(self) -> nn.Sequential:
        assert self.projection is not None, "built without a projection"
        return nn.Sequential(self.trunk, self.projection)


def _projection(n_features: int, n_projected: int) -> nn.Sequential:
    """Two layers between features and contrast: what the contrast throws away, features keep."""
    return nn.Sequential(
        nn.Linear(n_features, n_features), nn.ReLU(), nn.Linear(n_features, n_projected)
    )


def _normed_layers(n_in: int, n_out: int) -> nn.Sequential:
    """Two layers, with a norm and ReLU between them."""
    n_hidden = 2 * max(n_in, n_out)
    return nn.Sequential(
        nn.Linear(n_in, n_hidden), CopyGroupNorm1d(n_hidden), nn.Linear(n_hidden, n_out)
    )


def _softmax(logits: Tensor) -> Tensor:
    return torch.softmax(logits if logits.dtype == torch.float64 else logits.float(), dim=1)
