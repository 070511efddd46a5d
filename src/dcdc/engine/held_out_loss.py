"""The loss on perturbations that training never saw: comparable between runs on the same images.

Shapes: N images, B of a batch.
"""

import torch
from torch import Tensor

from dcdc.data.store import Store, epoch_batches
from dcdc.engine.objectives import Objective
from dcdc.networks import ClusteringNetwork
from dcdc.runtime.seeding import derive_generator

MOST_IMAGES = 4096


@torch.inference_mode()
def held_out_loss(
    network: ClusteringNetwork,
    store: Store,
    objective: Objective,
    *,
    batch_size: int,
    seed: int,
    partners: Tensor | None = None,
) -> float:
    """The mean over full batches of a fixed order under fixed draws, both by `seed`. `partners`
    are the rows (N) that take the place of perturbed copies where there are feature vectors.

    Of the head that answers; statistics are those of the trained norms, not of the batch.
    """
    device = next(network.parameters()).device
    order = derive_generator(seed, "held-out order")
    batches = epoch_batches(store.n_answered, batch_size, order)
    batches = batches[: max(1, MOST_IMAGES // batch_size)]
    if partners is not None:
        batches = torch.cat([batches, partners[batches]], dim=1)
    draws = derive_generator(seed, "held-out draws", device=device)
    heads = (network.answering_head,)
    was_training = network.training
    network.eval()
    try:
        losses: list[Tensor] = []
        store.expect(batches)
        for indices in batches.to(device):
            images = store.batch(indices)
            copies = objective.copies(images, objective.draw(images, draws))
            total, _ = objective.loss(network, copies, heads)
            losses.append(total.float())
    finally:
        network.train(was_training)
    return float(torch.stack(losses).mean())
