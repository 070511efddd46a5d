"""AE: K-Means on the codes of an autoencoder.

Bengio et al., Greedy layer-wise training of deep networks, 2007. One network squeezes each image
into a few numbers, another makes the image again from them: what images have in common is kept.

Convolutional, and trained as a whole, not layer by layer. Photos are made again at even contrast,
from 64 numbers: as they are, a code knows little but large areas' colours (CIFAR-10: an NMI of .12
instead of .16). Settings are our own, chosen on digits and CIFAR-10: neither the paper nor those
that quote its figures name theirs.
"""

from dcdc.data import ImageSet
from dcdc.methods.autoencoding import build_autoencoder, reconstruction
from dcdc.methods.context import Clustering, Context
from dcdc.methods.training_context import TrainingContext, k_means
from dcdc.metrics.directions import directions
from dcdc.networks.generative import Autoencoder


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    context: Context,
    *,
    n_code: int | None = None,
    width: int | None = None,
    n_steps: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
) -> Clustering:
    training = TrainingContext.open(image_set, seed, context, batch_size)
    budget = training.budget(n_steps, width, learning_rate)
    n_code = training.code_size(n_code)
    network = build_autoencoder(training, Autoencoder, n_code, budget.width, denoising=False)
    phase = training.phase(
        reconstruction(network), network.parameters(), budget, may_be_captured=True
    )
    training.train(phase)
    codes = training.codes(network, network.encode)
    assignments, _ = k_means(directions(codes), n_clusters, seed, training.device)
    return Clustering(assignments, features=codes, network=network)
