"""The clustering network: normalise, Sobel or not, backbone, one softmax head per role.

Shapes: B images, D features, K clusters of a head.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dcdc.networks.copy_group_norm import require_copy_group_norms
from dcdc.networks.feature_vectors import Directions
from dcdc.networks.layers import Dense, Normalise, Sobel, front, resized
from dcdc.networks.pretrained.folding import frozen_for_inference

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
    """Images in [0, 1], B x C x H x W, or feature vectors, B x D, to features and the assignments
    of the heads asked for."""

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
        input_size: int | None = None,
        takes_vectors: bool = False,
    ) -> None:
        """`backbone` has an attribute `n_features`, and takes images of `in_channels`, or with
        `sobel` of two. `n_sub_heads` heads of each role; where there are several, the first answers
        until `answer_by` says which. Images of another side are resized to `input_size`. With
        `takes_vectors` the heads see directions of features, so that they can train on features
        alone: those of a frozen backbone, or given ones."""
        super().__init__()
        require_copy_group_norms(backbone)
        self.in_channels = in_channels
        self.input_size = input_size
        self.memory_format = torch.contiguous_format
        self.normalise = Normalise(mean, std)
        self.sobel = Sobel() if sobel else None
        self.backbone = backbone
        n_features = backbone.n_features
        assert isinstance(n_features, int)
        self.n_features = n_features
        self.directions = Directions(n_features) if takes_vectors else None
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
        self._for_inference: tuple[nn.Module] | None = None
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
        if self.input_size is not None:
            images = resized(images, self.input_size)
        x = front(images, self.normalise, self.sobel).contiguous(memory_format=self.memory_format)
        if x.shape[1] == 1 and self.memory_format == torch.channels_last:
            # One channel is laid out both ways at once; convolutions tell by the strides.
            x = x[:, 0, :, :, None].permute(0, 3, 1, 2)
        return x

    def features(self, images: Tensor) -> Tensor:
        """Of images, or of feature vectors as the backbone makes them."""
        features = self.raw_features(images) if images.ndim == 4 else images
        return features if self.directions is None else self.directions(features)

    def raw_features(self, images: Tensor) -> Tensor:
        """The backbone's own."""
        backbone = self.backbone if self._for_inference is None else self._for_inference[0]
        features: Tensor = backbone(self.preprocess(images))
        return features

    def freeze_backbone(self) -> None:
        """From now on its weights stay as they are; on a CPU a faster version computes for it."""
        self.backbone.requires_grad_(False)
        on_cpu = self.normalise.mean.device.type == "cpu"
        # in a tuple: it is no part of the state
        self._for_inference = (frozen_for_inference(self.backbone),) if on_cpu else None

    def forward(self, images: Tensor, heads: Iterable[str] = (CLUSTER_HEAD,)) -> NetworkOutput:
        """`heads` are roles, all of whose sub-heads answer, or single sub-heads."""
        features = self.features(images)
        assign: dict[str, Tensor] = {}
        for head in heads:
            names = self.sub_heads(head)
            if len(names) == 1:
                assign[names[0]] = _softmax(self.heads[names[0]](features))
            else:
                assign |= zip(names, self._shares(names, features), strict=True)
        return NetworkOutput(features, assign)

    def _shares(self, names: tuple[str, ...], features: Tensor) -> tuple[Tensor, ...]:
        """Of the sub-heads of a role by one product: they may be many, and each is small."""
        heads = [head for name in names if isinstance(head := self.heads[name], nn.Linear)]
        weight = torch.cat([head.weight for head in heads])
        bias = torch.cat([head.bias for head in heads])
        logits = F.linear(features, weight, bias).view(len(features), len(names), -1)
        return _softmax(logits).unbind(dim=1)


def _softmax(logits: Tensor) -> Tensor:
    return torch.softmax(logits if logits.dtype == torch.float64 else logits.float(), dim=-1)
