import pytest
import torch

from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD, ClusteringNetwork


def network(**changes) -> ClusteringNetwork:
    given = {
        "trunk": "small",
        "in_channels": 3,
        "n_clusters": 4,
        "n_over_clusters": 9,
        "mean": (0.5, 0.4, 0.3),
        "std": (0.2, 0.3, 0.4),
    }
    return ClusteringNetwork(**(given | changes))


def test_features_and_the_assignments_asked_for_come_out():
    output = network()(torch.rand(5, 3, 16, 16), (CLUSTER_HEAD, OVER_CLUSTERING_HEAD))
    assert output.features.shape == (5, 256)
    assert {name: assign.shape for name, assign in output.assign.items()} == {
        CLUSTER_HEAD: (5, 4),
        OVER_CLUSTERING_HEAD: (5, 9),
    }
    for assign in output.assign.values():
        torch.testing.assert_close(assign.sum(1), torch.ones(5))
    assert list(network()(torch.rand(5, 3, 16, 16)).assign) == [CLUSTER_HEAD]


def test_without_over_clusters_there_is_no_such_head():
    assert list(network(n_over_clusters=0).heads) == [CLUSTER_HEAD]


def test_sobel_sees_no_colour():
    with_sobel, without = network(sobel=True).eval(), network().eval()
    image = torch.rand(1, 3, 16, 16)
    recoloured = image.clone()
    # moved between two channels so that the mean of the normalised channels stays
    recoloured[:, 0] += 0.02 * 2
    recoloured[:, 1] -= 0.02 * 3
    torch.testing.assert_close(
        with_sobel.features(image), with_sobel.features(recoloured), atol=1e-4, rtol=1e-4
    )
    assert not torch.allclose(without.features(image), without.features(recoloured), atol=1e-4)


def test_the_paper_network_has_the_parameters_its_parts_have():
    built = network(trunk="resnet34", sobel=True, n_clusters=10, n_over_clusters=70)
    trunk = sum(parameter.numel() for parameter in built.trunk.parameters())
    assert built.n_parameters == trunk + (512 + 1) * 10 + (512 + 1) * 70


def test_the_softmax_is_taken_in_float32_whatever_the_head_gives():
    built = network()
    built.heads[CLUSTER_HEAD].register_forward_hook(lambda *call: call[2].bfloat16())
    assert built(torch.rand(4, 3, 16, 16)).assign[CLUSTER_HEAD].dtype == torch.float32
    doubled = network().double()
    assert doubled(torch.rand(4, 3, 16, 16)).assign[CLUSTER_HEAD].dtype == torch.float64


def test_a_head_starts_undecided():
    assign = network()(torch.rand(8, 3, 16, 16)).assign[CLUSTER_HEAD]
    assert assign.max() < 0.6


def test_a_projection_is_there_only_where_asked_for():
    plain, projecting = network(), network(n_projected=7)
    assert projecting.project(torch.rand(5, 3, 16, 16)).shape == (5, 7)
    assert projecting.state_dict().keys() - plain.state_dict().keys() == {
        f"projection.{layer}.{part}" for layer in (0, 2) for part in ("weight", "bias")
    }
    assert projecting.n_parameters - plain.n_parameters == 256 * 256 + 256 + 256 * 7 + 7
    with pytest.raises(AssertionError, match="without a projection"):
        plain.project(torch.rand(5, 3, 16, 16))


def test_a_projection_changes_no_other_weight_and_sees_the_features():
    built = []
    for n_projected in (0, 7):
        torch.manual_seed(0)
        built.append(network(n_projected=n_projected).eval())
    plain, projecting = built
    for name, weight in plain.state_dict().items():
        assert torch.equal(weight, projecting.state_dict()[name]), name
    images = torch.rand(5, 3, 16, 16)
    torch.testing.assert_close(
        projecting.project(images), projecting.projection(projecting.features(images))
    )


def test_sub_heads_answer_together_or_one_by_one():
    built = network(n_sub_heads=3).eval()
    names = tuple(f"{CLUSTER_HEAD}_{number}" for number in (1, 2, 3))
    assert built.sub_heads(CLUSTER_HEAD) == names
    images = torch.rand(5, 3, 16, 16)
    together = built(images).assign
    assert tuple(together) == names
    alone = built(images, (names[1],)).assign
    assert list(alone) == [names[1]]
    assert torch.equal(alone[names[1]], together[names[1]])
    assert not torch.allclose(together[names[0]], together[names[1]])
    assert built(images, (OVER_CLUSTERING_HEAD,)).assign.keys() == {
        f"{OVER_CLUSTERING_HEAD}_{number}" for number in (1, 2, 3)
    }


def test_which_sub_head_answers_is_saved_with_the_weights():
    built, other = network(n_sub_heads=3), network(n_sub_heads=3)
    assert built.answering_head == f"{CLUSTER_HEAD}_1"
    built.answer_by(f"{CLUSTER_HEAD}_3")
    other.load_state_dict(built.state_dict())
    assert other.answering_head == f"{CLUSTER_HEAD}_3"
    with pytest.raises(ValueError, match="tuple"):
        built.answer_by(OVER_CLUSTERING_HEAD)


def test_one_head_alone_is_its_role_and_adds_nothing_to_the_weights():
    built = network()
    built.answer_by(CLUSTER_HEAD)
    assert built.answering_head == CLUSTER_HEAD
    assert "answering" not in built.state_dict()
    assert list(built.heads) == [CLUSTER_HEAD, OVER_CLUSTERING_HEAD]


def test_one_channel_too_is_laid_out_last_for_the_trunk():
    built = network(in_channels=1, mean=(0.5,), std=(0.2,))
    built.lay_out(torch.channels_last)
    seen = []
    built.trunk.register_forward_hook(lambda *call: seen.append(call[1][0]))
    images = torch.rand(4, 1, 8, 8)
    built.features(images)
    assert seen[0].stride() == (64, 1, 8, 1)  # and not 64, 64, 8, 1, which is laid out last as well
    torch.testing.assert_close(seen[0], (images - 0.5) / 0.2)


def test_a_predictor_and_a_slow_copy_are_there_only_where_asked_for():
    images = torch.rand(5, 3, 16, 16)
    built = network(n_projected=7, predicts=True)
    assert built.predict(images).shape == built.project(images).shape == (5, 7)
    with pytest.raises(AssertionError, match="no slow copy"):
        built.project_slowly(images)
    without, n_parameters = built.state_dict().keys(), built.n_parameters
    built.keep_slow_copy()
    assert built.n_parameters == n_parameters
    kept = {name.partition(".")[0] for name in built.state_dict().keys() - without}
    assert kept == {"slow_copy"}
    assert torch.equal(built.project_slowly(images), built.project(images))
    built.drop_slow_copy()
    assert built.state_dict().keys() == without
    with pytest.raises(AssertionError, match="without a predictor"):
        network(n_projected=7).predict(images)
