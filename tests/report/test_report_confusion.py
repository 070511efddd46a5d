from dcdc.metrics import cluster_accuracy
from dcdc.report.confusion_figure import draw_confusion, match
from dcdc.report.figures import drawing_with
from dcdc.report.themes import LIGHT


def test_the_diagonal_is_what_accuracy_counts(make_facts):
    targets = list("aaabbbccc")
    assignments = [2, 2, 0, 0, 0, 0, 1, 1, 2]
    confusion = match(make_facts(assignments, n_clusters=3, targets=targets))
    assert confusion.classes == ["a", "b", "c"]
    assert confusion.clusters == ["2", "0", "1"]
    assert confusion.n_matched == 3
    assert confusion.table.trace() / 9 == cluster_accuracy(targets, assignments)


def test_classes_that_are_numbers_go_by_value(make_facts):
    targets = ["10", "9", "2"]
    confusion = match(make_facts([0, 1, 2], n_clusters=3, targets=targets))
    assert confusion.classes == ["2", "9", "10"]
    assert confusion.clusters == ["2", "1", "0"]


def test_surplus_clusters_come_last_the_largest_first(make_facts):
    targets = ["a"] * 6 + ["b"] * 5
    assignments = [4, 4, 4, 0, 1, 1, 3, 3, 3, 3, 3]
    confusion = match(make_facts(assignments, n_clusters=5, targets=targets))
    assert confusion.clusters == ["4", "3", "1", "0"]
    assert confusion.n_matched == 2
    assert confusion.table.tolist() == [[3, 0, 2, 1], [0, 5, 0, 0]]


def test_classes_without_a_cluster_come_last(make_facts):
    targets = list("aabbbcccc")
    confusion = match(make_facts([0] * 5 + [1] * 4, n_clusters=2, targets=targets))
    assert confusion.classes == ["b", "c", "a"]
    assert confusion.n_matched == 2
    assert confusion.table.tolist() == [[3, 0], [0, 4], [2, 0]]


def test_a_pair_without_a_common_image_is_no_match(make_facts):
    # b lies wholly in the cluster that a takes; what is left for it holds none of it.
    confusion = match(make_facts([0, 0, 0, 0, 1], n_clusters=2, targets=list("aaaba")))
    assert confusion.n_matched == 1
    assert confusion.table.tolist() == [[3, 1], [1, 0]]


def test_many_clusters_are_folded_and_none_of_their_images_lost(make_facts):
    assignments = [*range(200), 0, 1]
    targets = ["a" if number % 2 else "b" for number in assignments]
    confusion = match(make_facts(assignments, n_clusters=200, targets=targets))
    assert confusion.table.shape == (2, 60)
    assert confusion.clusters[-1] == "141 more"
    assert confusion.table.sum() == 202


def test_long_and_strange_class_names_are_drawn_as_they_are(make_facts):
    names = [r"$\nosuch{math$", "a" * 60, "two\nlines", "plain"]
    confusion = match(make_facts([0, 1, 2, 3], n_clusters=4, targets=names))
    with drawing_with(LIGHT):
        figure = draw_confusion(confusion, LIGHT)
        figure.draw_without_rendering()
        shown = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert shown == [r"$\nosuch{math$", "a" * 23 + "…", "plain", "two lines"]
