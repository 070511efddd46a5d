"""The settings of a run that learns from corrections of another one."""

from dataclasses import replace

from dcdc.config import RunConfig
from dcdc.errors import InputError
from dcdc.networks.feature_vectors import VECTORS
from dcdc.phases.refine import Refine
from dcdc.prepare.suggestions import FINE_TUNING_RATE

_STEPS = 100
_MOST_EPOCHS = 20
_WHOLE_NETWORK_EPOCHS = 10
_WHOLE_NETWORK_RATE = 3e-4


def refined(stored: RunConfig, n_clusters: int, n_images: int, *, whole_network: bool) -> RunConfig:
    """`stored`: of the corrected run, whose network goes on. Its other heads number their clusters
    otherwise, so that no correction speaks of them."""
    batch_size = max(2, min(256, n_images // 2))
    network = replace(stored.network, over_clusters=0, sub_heads=1)
    if whole_network:
        if network.backbone == VECTORS:
            raise InputError("the run is of feature vectors, and has no whole network to train")
        if network.frozen:
            network = replace(network, frozen=False, backbone_rate=FINE_TUNING_RATE)
        batch_size = min(batch_size, _batch_size(stored) or batch_size)
        phase = Refine(
            epochs=_WHOLE_NETWORK_EPOCHS,
            batch_size=batch_size,
            learning_rate=_WHOLE_NETWORK_RATE,
            whole_network=True,
        )
    else:
        steps = max(1, n_images // batch_size)
        phase = Refine(epochs=min(_MOST_EPOCHS, -(-_STEPS // steps)), batch_size=batch_size)
    return replace(
        stored,
        n_clusters=n_clusters,
        network=network,
        phases=(phase,),
        train=replace(stored.train, device="auto", precision="auto", evaluate_every=1),
    )


def _batch_size(stored: RunConfig) -> int | None:
    """Of its last phase, which fitted into memory."""
    sizes = [phase.batch_size for phase in stored.phases if phase.epochs and phase.batch_size]
    return sizes[-1] if sizes else None
