"""The run lists: every row of the paper is there, and rows that mean the same run share it."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dcdc.cli.words import REPRODUCE
from dcdc.config import RunConfig, flat
from dcdc.errors import InputError
from dcdc.experiments import paper
from dcdc.experiments.paper import TABLES, rows_of, table
from dcdc.experiments.recipe_runs import Options, check_settings, file_stem, plan, settings_text
from dcdc.prepare.presets import PRESETS, preset

SIX = ["cifar10", "cifar100-20", "stl10", "imagenet-10", "imagenet-dogs", "tiny-imagenet"]


def runs(name: str, **options) -> list:
    return plan(table(name).rows, Options(**options))


@pytest.fixture
def own_preset(monkeypatch):
    monkeypatch.setitem(PRESETS, "cifar10", RunConfig(n_clusters=10))


@pytest.mark.parametrize(
    ("name", "number", "datasets", "n_rows"),
    [
        ("losses", 4, ["cifar10", "cifar100-20", "tiny-imagenet"], 9),
        ("over-clustering", 5, ["stl10", "cifar100-20", "tiny-imagenet"], 6),
        ("repeat", 6, ["cifar100-20", "tiny-imagenet"], 4),
        ("batch-size", 7, ["cifar100-20"], 6),
    ],
)
def test_every_row_of_the_paper_is_there(name, number, datasets, n_rows):
    found = table(name)
    assert found.number == number
    assert list(found.datasets) == datasets
    assert len(found.rows) == n_rows
    assert all(row.preset in PRESETS for row in found.rows)


def test_the_main_table_has_six_sets_and_our_own_recipe_where_there_is_one(monkeypatch):
    for dataset in SIX:
        monkeypatch.delitem(PRESETS, dataset, raising=False)
    assert [row.preset for row in table("main").rows] == [f"{name}-paper" for name in SIX]
    monkeypatch.setitem(PRESETS, "stl10", RunConfig(n_clusters=10))
    rows = table("main").rows
    assert [row.preset for row in rows if row.dataset == "stl10"] == ["stl10-paper", "stl10"]
    own = next(row for row in rows if row.preset == "stl10")
    assert plan([own], Options())[0].folder == Path("runs/reproduce/stl10/own-seed-0")


def test_each_ablation_changes_what_its_name_says():
    def changed(name: str) -> list[dict]:
        return [
            {
                key: value
                for key, value in row.values.items()
                if flat(preset(row.preset))[key] != value
            }
            for row in table(name).rows
            if row.dataset == "cifar100-20"
        ]

    assert changed("losses") == [{"heads.class_weight": 0}, {"heads.sample_weight": 0}, {}]
    assert changed("over-clustering") == [{"network.over_clusters": 0}, {}]
    assert changed("repeat") == [{"heads.n_repeats": 1}, {}]
    sizes = [{"heads.batch_size": size} for size in (100, 300, 400, 500, 1000)]
    assert changed("batch-size") == [sizes[0], {}, *sizes[1:]]


def test_rows_of_several_tables_that_mean_the_same_run_share_a_folder():
    shared = Path("runs/reproduce/cifar100-20/paper-seed-0")
    for name in TABLES:
        assert shared in {run.folder for run in runs(name)}, name
    everything = [run for name in TABLES for run in runs(name)]
    by_folder: dict = {}
    for run in everything:
        assert by_folder.setdefault(run.folder, run.config) == run.config
    assert len(by_folder) < len(everything)


def test_folders_say_what_differs_from_the_preset():
    names = [run.folder.name for run in runs("losses")[:3]]
    assert names == [
        "paper-sample-view-alone-seed-0",
        "paper-class-view-alone-seed-0",
        "paper-seed-0",
    ]
    (first, *_) = runs("batch-size", seeds=(4,), epochs=60, out=Path("x"))
    assert first.folder == Path("x/cifar100-20/paper-batch-size-100-epochs-60-seed-4")
    (first, *_) = runs("repeat", settings=("network.backbone=small",))
    assert first.folder.name == "paper-no-repeat-backbone-small-seed-0"
    (first, *_) = runs("repeat", settings=("phases=heads,self_label", "self_label.epochs=2"))
    assert first.folder.name == (
        "paper-no-repeat-phases-heads-self-label-self-label-epochs-2-seed-0"
    )
    many = tuple(
        f"augment.{key}=0.125"
        for key in ("brightness", "contrast", "saturation", "hue", "grey", "flip", "noise")
    )
    (first, *_) = runs("repeat", settings=many)
    (other, *_) = runs("repeat", settings=(*many[:-1], "augment.noise=0.126"))
    assert re.fullmatch(r"paper-no-repeat-changed-[0-9a-f]{12}-seed-0", first.folder.name)
    assert other.folder != first.folder


def test_what_cannot_change_the_answer_is_not_in_a_name():
    usual = runs("repeat")
    settings = ("train.capture=false", "train.checkpoint_every=3", "data.target=coarse_label")
    same = runs("repeat", device="cpu", settings=settings, epochs=200)
    assert [run.folder for run in usual] == [run.folder for run in same]
    assert file_stem(table("repeat"), Options(settings=settings, epochs=200)) == "repeat"


def test_files_of_shorter_or_changed_tables_have_names_of_their_own():
    options = Options(epochs=60, settings=("network.backbone=resnet18",))
    assert file_stem(table("main"), options) == "main-epochs-60-backbone-resnet18"
    assert settings_text(table("main"), options) == "network.backbone=resnet18"


@pytest.mark.usefixtures("own_preset")
@pytest.mark.parametrize("name", TABLES)
def test_a_command_typed_alone_gives_the_same_config(name, monkeypatch):
    from dcdc.cli import app

    started = []

    def note(source, path, overrides, *_, **_flags):
        started.append((source, path, overrides.alone()))

    monkeypatch.setattr(sys.modules["dcdc.cli.fit"], "start_run", note)
    options = {
        "epochs": 30,
        "device": "cpu",
        "settings": (
            *("augment.crop_scale=0.3,1", "network.mean=none", "train.compile=off"),
            *("phases=contrast,heads,self_label", "contrast.epochs=4", "contrast.batch_size=20"),
        ),
        "sources": {"cifar10": "some folder"},
    }
    for run in runs(name, **options):
        words = shlex.split(run.command())
        result = CliRunner().invoke(app, words[1:], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        source, path, config = started.pop()
        assert source == ("some folder" if run.row.dataset == "cifar10" else run.row.dataset)
        assert path == run.folder
        assert config == run.named()


def test_published_figures_agree_where_two_tables_print_the_same():
    assert paper.BATCH_SIZES[200] == paper.DCDC["cifar100-20"]
    assert list(paper.DCDC) == list(paper.TITLES) == SIX
    # Table 1's last row, NMI, ACC and ARI as they stand in the text.
    line = (
        "0.585 0.699 0.506 0.310 0.349 0.179 0.621 0.734 0.547 "
        "0.817 0.879 0.787 0.360 0.365 0.207 0.323 0.164 0.073"
    )
    ours = [value for each in paper.DCDC.values() for value in (each.nmi, each.acc, each.ari)]
    assert ours == [float(word) for word in line.split()]


def test_the_whole_of_table_1_is_there():
    table_1 = paper.COMPARISON
    assert len(table_1) == 17 + 1
    assert all(set(row) <= set(SIX) for row in table_1.values())
    acc_alone = {name for name, row in table_1.items() if row["cifar10"].nmi is None}
    assert acc_alone == {"adc", "iic"}
    # A line from the middle, as it stands in the text, and the gaps of another.
    line = (
        "0.245 0.291 0.167 0.108 0.152 0.040 0.200 0.282 0.146 "
        "0.193 0.334 0.168 0.107 0.179 0.079 0.113 0.036 0.006"
    )
    vae = [
        value
        for name in SIX
        for each in [table_1["vae"][name]]
        for value in (each.nmi, each.acc, each.ari)
    ]
    assert vae == [float(word) for word in line.split()]
    assert list(table_1["ddc"]) == ["cifar10", "stl10", "imagenet-10"]


@pytest.mark.parametrize(
    ("name", "datasets", "message"),
    [
        ("looses", [], "unknown table 'looses'; did you mean 'losses'?"),
        ("main", ["cifr10"], "unknown data set 'cifr10'; did you mean 'cifar10'?"),
        ("repeat", ["stl10"], "table repeat has no stl10: give dataset = 'cifar100-20 or"),
    ],
)
def test_unknown_names_are_refused_with_a_hint(name, datasets, message):
    with pytest.raises(InputError, match=re.escape(message)):
        rows_of(table(name), datasets)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.seed=3", "use --seeds and --first-seed"),
        ("heads.epochs=3", "use --epochs"),
        ("data.source=x", "use --data NAME=SOURCE"),
        ("heads.batch_size=10", "what they differ in: leave it out"),
    ],
)
def test_settings_that_a_table_has_its_own_way_for(setting, message):
    with pytest.raises(InputError) as refused:
        check_settings(table("batch-size"), [setting])
    assert message in refused.value.told(REPRODUCE)
    if message.startswith("what"):
        check_settings(table("repeat"), [setting])
