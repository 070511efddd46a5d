import pytest

from dcdc.report.clusters import describe_clusters


def test_largest_first_and_within_it_the_surest_image(make_facts):
    facts = make_facts(
        [2, 0, 2, 2, 0], n_clusters=3, confidence=[0.5, 0.6, 0.9, 0.7, 0.8], targets=list("abaab")
    )
    clusters = describe_clusters(facts)
    assert [cluster.number for cluster in clusters] == [2, 0, 1]
    assert [cluster.size for cluster in clusters] == [3, 2, 0]
    assert clusters[0].members.tolist() == [2, 3, 0]
    assert clusters[0].mean_confidence == pytest.approx(0.7)
    assert clusters[1].members.tolist() == [4, 1]


def test_purity_names_the_class_that_makes_it(make_facts):
    facts = make_facts([0, 0, 0, 1], n_clusters=2, targets=["cat", "dog", "dog", "cat"])
    first, second = describe_clusters(facts)
    assert first.purity == pytest.approx(2 / 3)
    assert first.main_class == "dog"
    assert first.n_of_main_class == 2
    assert (second.purity, second.main_class) == (1.0, "cat")


def test_an_empty_cluster_has_neither_confidence_nor_purity(make_facts):
    facts = make_facts([2, 2], n_clusters=4, targets=["a", "a"])
    empty = [cluster for cluster in describe_clusters(facts) if cluster.number != 2]
    assert [cluster.number for cluster in empty] == [0, 1, 3]
    assert all(cluster.size == 0 for cluster in empty)
    assert all(cluster.mean_confidence == 0 for cluster in empty)
    assert all(cluster.purity is None for cluster in empty)


def test_without_targets_there_is_no_purity(make_facts):
    clusters = describe_clusters(make_facts([0, 1, 1], n_clusters=2))
    assert [cluster.purity for cluster in clusters] == [None, None]
