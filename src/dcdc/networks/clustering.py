"""The clustering network: normalise, Sobel or not, backbone, one softmax head per role.

Shapes: B images, D features, K clusters of a head.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dcdc.networks.copy_group_norm import require_copy_group_norms
from dcdc.networks.layers import Dense, Normalise, Sobel, front

CLUSTER_HEAD = "cluster_head"
OVER_CLUSTERING_HEAD = "over_clustering_head"
ROLES = (CLUSTER_HEAD, OVER_CLUSTERING_HEAD)


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
        backbone: nn.Module,
        *,
        in_channels: int,
        n_clusters: int,
        n_over_clusters: int = 0,
        sobel: bool = False,
        mean: Sequence[float],
        std: Sequence[float],
        n_sub_heads: int = 1,
    ) -> None:
        """`backbone` has an attribute `n_features`, and takes images of `in_channels`, or with
        `sobel` of two. `n_sub_heads` heads of each role; where there are several, the first answers
        until `answer_by` says which."""
        super().__init__()
        require_copy_group_norms(backbone)
        self.in_channels = in_channels
        self.memory_format = torch.contiguous_format
        self.normalise = Normalise(mean, std)
        self.sobel = Sobel() if sobel else None
        self.backbone = backbone
        n_features = backbone.n_features
        assert isinstance(n_features, int)
        self.n_features = n_features
        roles = {CLUSTER_HEAD: n_clusters}
        if n_over_clusters:
            roles[OVER_CLUSTERING_HEAD] = n_over_clusters
        self.roles = tuple(roles)
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
        self.parts = nn.ModuleDict()
        """What phases add while they train, by their kind; a finished network has none."""

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

    def load_finished(self, weights: Mapping[str, Tensor]) -> None:
        """Of backbone and heads; what phases add begins as it was drawn."""
        own = {name: t for name, t in self.state_dict().items() if name.startswith("parts.")}
        self.load_state_dict({**weights, **own})

    def drop_parts(self) -> None:
        """What was of the training alone."""
        self.parts = nn.ModuleDict()

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

    def preprocess(self, images: Tensor) -> Tensor:
        """What the backbone is given."""
        x = front(images, self.normalise, self.sobel).contiguous(memory_format=self.memory_format)
        if x.shape[1] == 1 and self.memory_format == torch.channels_last:
            # One channel is laid out both ways at once; convolutions tell by the strides.
            x = x[:, 0, :, :, None].permute(0, 3, 1, 2)
        return x

    def features(self, images: Tensor) -> Tensor:
        features: Tensor = self.backbone(self.preprocess(images))
        return features

    def forward(self, images: Tensor, heads: Iterable[str] = (CLUSTER_HEAD,)) -> NetworkOutput:
        """`heads` are roles, all of whose sub-heads answer, or single sub-heads."""
        features = self.features(images)
        names = [name for head in heads for name in self.sub_heads(head)]
        assign = {name: _softmax(self.heads[name](features)) for name in names}
        return NetworkOutput(features, assign)


def _softmax(logits: Tensor) -> Tensor:
    return torch.softmax(logits if logits.dtype == torch.float64 else logits.float(), dim=1)
