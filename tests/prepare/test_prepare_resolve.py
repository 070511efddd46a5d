"""What the images and the machine decide of a config, and what they do not allow."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dcdc.config import DataConfig, RunConfig, with_values
from dcdc.errors import InputError
from dcdc.phases.heads import heads_of
from dcdc.prepare.prepare_run import with_label_column
from dcdc.prepare.resolve import batch_sizes, resolve

ALL = ("contrast", "heads", "self_label")


def test_the_images_decide_what_the_config_leaves_open(tiny_set):
    config = with_values(RunConfig(), {"heads.batch_size": 8})
    resolved = resolve(config, tiny_set)
    assert (resolved.n_clusters, resolved.data.size) == (3, 8)
    pixels = tiny_set.images / 255
    assert resolved.network.mean == pytest.approx((pixels.mean(),), abs=1e-6)
    assert resolved.network.std == pytest.approx((pixels.std(),), abs=1e-6)
    assert resolve(resolved, tiny_set) == resolved


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n_clusters": 49}, "48 images cannot fill 49 clusters"),
        ({"heads.batch_size": 49}, "a batch of 49 is larger than the set of 48 images"),
        (
            {"phases": ALL, "contrast.epochs": 1, "contrast.batch_size": 49},
            r"^a batch of 49 is larger than .* images: lower contrast.batch_size$",
        ),
        (
            {"phases": ALL, "self_label.epochs": 1, "self_label.batch_size": 49},
            r"^a batch of 49 is larger than .* images: lower self_label.batch_size$",
        ),
        (
            {"heads.neighbours": 48},
            r"^48 images do not have 48 neighbours each: lower heads.neighbours$",
        ),
        ({"network.mean": (1, 1, 1), "network.std": (1, 1, 1)}, r"images of 1 channel"),
        ({"network.backbone": "smal"}, r"^unknown backbone 'smal'; did you mean 'small'\?"),
        (
            {"phases": ("contrast",), "contrast.epochs": 1},
            r"^no phase trains the cluster head: list heads in phases$",
        ),
        ({"phases": ()}, r"^no phase trains the cluster head: list heads in phases$"),
    ],
)
def test_what_the_images_cannot_bear_is_refused(tiny_config, tiny_set, values, message):
    with pytest.raises(InputError, match=message):
        resolve(with_values(tiny_config, values), tiny_set)


def test_a_phase_that_is_off_and_all_others_as_neighbours_are_no_matter(tiny_config, tiny_set):
    values = {"contrast.batch_size": 49, "self_label.batch_size": 49, "heads.neighbours": 47}
    resolved = resolve(with_values(tiny_config, {"phases": ALL} | values), tiny_set)
    assert heads_of(resolved).neighbours == 47


def test_a_batch_is_the_phases_own_or_that_of_the_one_before(tiny_config):
    values = {"contrast.epochs": 1, "contrast.batch_size": 9, "self_label.epochs": 1}
    config = with_values(tiny_config, {"phases": ALL} | values)
    assert batch_sizes(config) == {"contrast": 9, "heads": 16, "self_label": 16}
    without = with_values(config, {"heads.batch_size": None})
    assert batch_sizes(without) == {"contrast": 9, "heads": 9, "self_label": 9}


def test_without_classes_the_number_of_clusters_must_be_said(tiny_set):
    unlabelled = replace(tiny_set, targets=None, class_names=())
    with pytest.raises(InputError, match="nothing says how many clusters to find: give n_clusters"):
        resolve(RunConfig(), unlabelled)


def test_bfloat16_on_the_cpu_is_refused_before_training(tiny_config, tiny_set):
    with pytest.raises(InputError, match=r"bfloat16 .*use device = 'cuda'"):
        resolve(with_values(tiny_config, {"train.precision": "bfloat16"}), tiny_set)


@pytest.mark.parametrize(("given", "resolved"), [(0, 0), (0.5, 2), (0.99, 3), (1, 1), (3, 3)])
def test_features_first_may_be_a_share_of_the_epochs(tiny_config, tiny_set, given, resolved):
    config = resolve(with_values(tiny_config, {"heads.over_clustering_first": given}), tiny_set)
    assert heads_of(config).over_clustering_first == resolved


def test_a_batch_that_the_processes_cannot_share_is_refused(tiny_config, tiny_set):
    assert resolve(tiny_config, tiny_set, n_processes=16)
    with pytest.raises(InputError, match="16 images cannot be shared by 17 processes"):
        resolve(tiny_config, tiny_set, n_processes=17)


def test_the_clusters_to_find_tell_the_labels(tmp_path):
    """A column that was named stays, and so does the choice of none."""
    file = tmp_path / "hub.parquet"
    labels = {"fine_label": [0, 1, 2, 3], "coarse_label": [0, 0, 1, 1]}
    pq.write_table(pa.table({"image": [b"a", b"b", b"c", b"d"], **labels}), file)
    data = DataConfig(source=str(file))
    assert with_label_column(data, 2) == replace(data, target="coarse_label")
    assert with_label_column(data, 4) == replace(data, target="fine_label")
    for target in ("fine_label", "none"):
        named = replace(data, target=target)
        assert with_label_column(named, 2) == named
    for n_classes in (None, 3):
        assert with_label_column(data, n_classes) == data
