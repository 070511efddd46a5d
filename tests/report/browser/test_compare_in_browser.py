"""The page of a comparison in a real browser: two methods that a person picks."""

import json

import numpy as np
import pytest

from dcdc.report.compare import Overview, write_runs
from dcdc.report.compared_runs import ComparedRun
from dcdc.report.disagreement import ShownImages, shown_images
from dcdc.report.method_figures import MethodScores

HOSTILE = (
    "</script><script>window.ran=1</script><img src=x onerror=window.ran=1>\"'`&amp;"
    "<!--\u2028\u202e${window.ran=1}"
)
N = 60
TRUTH = np.arange(N) % 3
GOOD = TRUTH.copy()
GOOD[:6] = (TRUTH[:6] + 1) % 3
POOR = (TRUTH + 1) % 3  # the same classes by other numbers ...
POOR[20:40] = 0  # ... and twenty images of one cluster
CLASSES = np.array(["ape", "cow", "yak"])


@pytest.fixture(scope="module")
def write_page(make_facts, flat_images, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")

    def write(stem, names=("Good", "Poor", "Same"), targets=CLASSES[TRUTH], images=True):
        facts = [
            make_facts(
                answers.tolist(),
                n_clusters=3,
                targets=None if targets is None else list(targets),
            )
            for answers in (GOOD, POOR, POOR)
        ]
        runs = [ComparedRun(name, each, None) for name, each in zip(names, facts, strict=True)]
        shown = shown_images(flat_images(facts[0]))
        overview = Overview(
            *("Methods", ["method"], [[(name, False)] for name in names], []),
            [MethodScores(name, {"acc": [0.5], "nmi": [0.5]}, {}, 3.0) for name in names],
            runs="One run of each",
            images=shown if images else ShownImages(shown.rows, None, why_none="No pictures."),
        )
        return write_runs(runs, folder / f"{stem}.html", overview)

    return write


@pytest.fixture(scope="module")
def usual(write_page):
    return write_page("usual")


def pick(tab, first, second) -> None:
    for name, value in (("first", first), ("second", second)):
        tab.run(
            f"""(() => {{
              const node = document.getElementById({json.dumps(name)});
              node.value = {value};
              node.dispatchEvent(new Event("change", {{ bubbles: true }}));
            }})()"""
        )


def texts(tab, selector) -> list[str]:
    return tab.run(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((it) => it.textContent)"
    )


def test_images_are_grouped_by_who_has_them_right(open_page, usual):
    tab = open_page(usual)
    assert tab.run("[first.value, second.value]") == ["0", "1"]  # most right first
    wrong = {at for at in range(N) if POOR[at] != (TRUTH[at] + 1) % 3}
    only_good = len([at for at in wrong if at >= 6])
    heads = texts(tab, "#differ h3")
    assert heads == [
        f"Good is right, Poor is not: {only_good} images",
        "Poor is right, Good is not: 6 images",
    ]
    assert tab.run("document.querySelectorAll('#differ canvas').length") == only_good + 6
    n_same = N - only_good - 6
    assert texts(tab, "#said") == [
        f"They answer alike for {n_same} of 60 images, {100 * n_same / N:.1f} %."
    ]
    captions = texts(tab, "#differ > div:nth-child(2) figcaption")
    assert captions[0] == "is apeGood: cowPoor: ape"


def test_both_tables_of_classes_and_clusters_stand_beside_each_other(open_page, usual):
    tab = open_page(usual)
    assert texts(tab, "#tables h3") == [
        "Good: clusters against classes",
        "Poor: clusters against classes",
    ]
    cells = [int(text or 0) for text in texts(tab, "#tables > div:first-child td")]
    assert sum(cells) == N
    assert cells[0] == 18  # of twenty apes two are called otherwise
    lefts = tab.run(
        "[...document.querySelectorAll('#tables > div')]"
        ".map((it) => it.getBoundingClientRect().left)"
    )
    assert lefts[1] > lefts[0]


def test_any_two_can_be_picked_and_swapped(open_page, usual):
    tab = open_page(usual)
    pick(tab, 1, 2)
    assert texts(tab, "#said") == ["They answer alike for 60 of 60 images, 100.0 %."]
    assert texts(tab, "#differ") == [""]
    pick(tab, 2, 2)
    assert texts(tab, "#said") == ["Pick two that differ."]
    pick(tab, 2, 0)
    tab.click_on("#swap")
    assert texts(tab, "#tables h3")[0].startswith("Good")


def test_without_classes_the_largest_differences_are_shown(open_page, write_page):
    tab = open_page(write_page("blind", targets=None))
    heads = texts(tab, "#differ h3")
    assert heads
    assert all(" has them in cluster " in head for head in heads)
    assert texts(tab, "#tables") == [""]


def test_without_images_their_names_are_listed(open_page, write_page):
    tab = open_page(write_page("listed", images=False))
    assert tab.run("document.querySelectorAll('#differ canvas').length") == 0
    assert len(texts(tab, "#differ li")) > 6
    assert "No pictures." in tab.run("document.body.textContent")


def test_hostile_names_are_shown_and_run_nothing(open_page, write_page):
    names = (HOSTILE, f"{HOSTILE} too", "Same")
    classes = np.array([HOSTILE, f"a{HOSTILE}", f"b{HOSTILE}"])
    tab = open_page(write_page("hostile", names, classes[TRUTH]))
    pick(tab, 0, 1)
    assert tab.run("window.ran") is None
    assert HOSTILE in texts(tab, "#differ h3")[0]
    assert tab.run("document.querySelectorAll('img[src=x]').length") == 0


@pytest.mark.parametrize("dark", [False, True])
def test_no_page_is_wider_than_a_phone_and_light_and_dark_differ(open_page, usual, dark):
    tab = open_page(usual, width=360, height=700, dark=dark)
    assert tab.run("document.documentElement.scrollWidth") <= 360
    shown = tab.run("getComputedStyle(document.querySelector('figure .on-dark')).display")
    assert shown == ("block" if dark else "none")
