import pytest
import torch
from torch import nn

from dcdc.errors import InputError
from dcdc.networks import CLUSTER_HEAD, OVER_CLUSTERING_HEAD, ClusteringNetwork, build_backbone
from dcdc.phases.byol import Byol
from dcdc.phases.contrast import Contrast


def network(backbone="small", **changes) -> ClusteringNetwork:
    given = {
        "in_channels": 3,
        "n_clusters": 4,
        "n_over_clusters": 9,
        "mean": (0.5, 0.4, 0.3),
        "std": (0.2, 0.3, 0.4),
    }
    given |= changes
    n_seen = 2 if given.get("sobel") else given["in_channels"]
    return ClusteringNetwork(build_backbone(backbone, n_seen), **given)


def with_part(phase, **changes) -> ClusteringNetwork:
    """As it is while a phase trains."""
    built = network(**changes)
    built.parts[phase.kind] = phase.part(built)
    return built


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
    built = network("resnet34", sobel=True, n_clusters=10, n_over_clusters=70)
    backbone = sum(parameter.numel() for parameter in built.backbone.parameters())
    assert built.n_parameters == backbone + (512 + 1) * 10 + (512 + 1) * 70


def test_the_softmax_is_taken_in_float32_whatever_the_head_gives():
    built = network()
    built.heads[CLUSTER_HEAD].register_forward_hook(lambda *call: call[2].bfloat16())
    assert built(torch.rand(4, 3, 16, 16)).assign[CLUSTER_HEAD].dtype == torch.float32
    doubled = network().double()
    assert doubled(torch.rand(4, 3, 16, 16)).assign[CLUSTER_HEAD].dtype == torch.float64


def test_a_head_starts_undecided():
    assign = network()(torch.rand(8, 3, 16, 16)).assign[CLUSTER_HEAD]
    assert assign.max() < 0.6


def test_what_a_phase_adds_is_there_while_it_trains_and_changes_no_other_weight():
    torch.manual_seed(0)
    plain = network()
    torch.manual_seed(0)
    projecting = with_part(Contrast(projection=7))
    for name, weight in plain.state_dict().items():
        assert torch.equal(weight, projecting.state_dict()[name]), name
    assert projecting.state_dict().keys() - plain.state_dict().keys() == {
        f"parts.contrast.{layer}.{part}" for layer in (0, 2) for part in ("weight", "bias")
    }
    assert projecting.n_parameters - plain.n_parameters == 256 * 256 + 256 + 256 * 7 + 7
    features = projecting.features(torch.rand(5, 3, 16, 16))
    assert projecting.parts["contrast"](features).shape == (5, 7)
    projecting.drop_parts()
    assert projecting.state_dict().keys() == plain.state_dict().keys()


def test_finished_weights_leave_the_parts_as_they_were_drawn():
    finished, built = network(), with_part(Contrast(projection=7))
    drawn = {name: weight.clone() for name, weight in built.parts.state_dict().items()}
    built.load_finished(finished.state_dict())
    for name, weight in finished.state_dict().items():
        assert torch.equal(weight, built.state_dict()[name]), name
    for name, weight in built.parts.state_dict().items():
        assert torch.equal(weight, drawn[name]), name


def test_an_ema_target_begins_as_its_network_and_is_nothing_that_is_trained():
    built = with_part(Byol(projection=7))
    part, images = built.parts["byol"], torch.rand(5, 3, 16, 16)
    projected = part.projection(built.features(images))
    assert projected.shape == part.predictor(projected).shape == (5, 7)
    assert torch.equal(part.target(built.preprocess(images)), projected)
    followed = {name for name, _ in built.named_parameters() if ".target." in name}
    assert not followed
    kept = {name for name in built.state_dict() if name.startswith("parts.byol.target.")}
    n_backbone, n_projection = len(built.backbone.state_dict()), len(part.projection.state_dict())
    assert len(kept) == n_backbone + n_projection


def test_sub_heads_answer_together_or_one_by_one():
    built = network(n_sub_heads=3).eval()
    names = tuple(f"{CLUSTER_HEAD}_{number}" for number in (1, 2, 3))
    assert built.sub_heads(CLUSTER_HEAD) == names
    images = torch.rand(5, 3, 16, 16)
    together = built(images).assign
    assert tuple(together) == names
    alone = built(images, (names[1],)).assign
    assert list(alone) == [names[1]]
    # one product for all of them adds up in another order
    torch.testing.assert_close(alone[names[1]], together[names[1]])
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


def test_one_channel_too_is_laid_out_last_for_the_backbone():
    built = network(in_channels=1, mean=(0.5,), std=(0.2,))
    built.lay_out(torch.channels_last)
    seen = []
    built.backbone.register_forward_hook(lambda *call: seen.append(call[1][0]))
    images = torch.rand(4, 1, 8, 8)
    built.features(images)
    assert seen[0].stride() == (64, 1, 8, 1)  # and not 64, 64, 8, 1, which is laid out last as well
    torch.testing.assert_close(seen[0], (images - 0.5) / 0.2)


def test_roles_are_those_of_its_heads():
    assert network().roles == (CLUSTER_HEAD, OVER_CLUSTERING_HEAD)
    assert network(n_over_clusters=0, n_sub_heads=3).roles == (CLUSTER_HEAD,)


def test_a_backbone_that_would_mix_copies_is_refused():
    class Own(nn.Sequential):
        n_features = 4

    backbone = Own(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), nn.Flatten())
    with pytest.raises(InputError) as caught:
        ClusteringNetwork(backbone, in_channels=3, n_clusters=2, mean=(0,) * 3, std=(1,) * 3)
    said = str(caught.value)
    assert said.startswith("the backbone's 0.1 (BatchNorm2d) would mix the statistics of")
    assert "convert_copy_group_norm(backbone)" in said
    assert "\n" not in said
