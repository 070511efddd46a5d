"""AE: K-Means on the codes of an autoencoder.

Bengio et al., Greedy layer-wise training of deep networks, 2007. One network squeezes each image
into a few numbers, another makes the image again from them: what images have in common is kept.

Convolutional, and trained as a whole, not layer by layer. Photos are made again at even contrast,
from 64 numbers: as they are, a code knows little but large areas' colours (CIFAR-10: an NMI of .12
instead of .16). Settings are our own, chosen on digits and CIFAR-10: neither the paper nor those
that quote its figures name theirs.
"""

from pathlib import Path

from dcdc.data import ImageSet
from dcdc.engine.observer import Observer
from dcdc.methods.autoencoding import build_autoencoder, reconstruction
from dcdc.methods.method import SILENT, Clustering, check_task
from dcdc.methods.representation import Studio, directions, k_means
from dcdc.networks.autoencoder import Autoencoder


def cluster(
    image_set: ImageSet,
    n_clusters: int,
    seed: int,
    *,
    device: str = "cpu",
    observer: Observer = SILENT,
    folder: Path | None = None,  # noqa: ARG001
    n_code: int | None = None,
    width: int | None = None,
    n_steps: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
) -> Clustering:
    check_task(image_set, n_clusters)
    studio = Studio.open(image_set, seed, device, observer, batch_size)
    effort = studio.effort(n_steps, width, learning_rate)
    n_code = studio.code_size(n_code)
    network = build_autoencoder(studio, Autoencoder, n_code, effort.width, mends=False)
    studio.train(studio.phase(reconstruction(network), network.parameters(), effort))
    codes = studio.codes(network, network.encode)
    assignments, _ = k_means(directions(codes), n_clusters, seed)
    return Clustering(assignments, features=codes, network=network)
