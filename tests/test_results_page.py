"""Every figure of docs/results.md agrees with its record in docs/runs, or says that it has none.

`test_docs.py` holds the bold rows against each run's metrics.json; here stands the rest.
"""

import csv
import json
import re
import statistics
from pathlib import Path

import pytest

from dcdc.experiments.chosen_epoch import best_by_labels
from dcdc.experiments.rows import Figure, dotted

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
METRICS = ("acc", "nmi", "ari")


def sections(page: Path) -> dict[str, str]:
    """By title."""
    parts = re.split(r"^## (.*)\n", page.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


SECTIONS = sections(DOCS / "results.md")
README = sections(ROOT / "README.md")
RUNS = sorted(path.parent for path in (DOCS / "runs").glob("*/*/metrics.json"))
KEPT = [*RUNS, *sorted(path for path in (DOCS / "runs/digits").iterdir() if path.is_file())]
DIGITS = DOCS / "runs/digits/seeds-300-to-306.json"
COMPARED = {
    DOCS / "runs/digits/compare-seeds-500-to-502.csv": (21, "Methods side by side"),
    DOCS / "runs/features/compare-stl10-test-seeds-40-to-42.csv": (
        7,
        "Photos with a pretrained backbone",
    ),
}
"""Records of comparisons: how many methods each has, and which section shows them."""


def record_lines(text: str) -> list[str]:
    """From `Record:` to the end of the paragraph."""
    return re.findall(r"^Record: (.*?)(?=\n\n|\n?\Z)", text, flags=re.MULTILINE | re.DOTALL)


def linked(record: str) -> list[Path]:
    return [DOCS / target for target in re.findall(r"\]\(([^)#]+)\)", record)]


def read(run: Path) -> dict:
    return json.loads((run / "metrics.json").read_text())


def history_of(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]


def scores(of: dict, separator: str = " | ") -> str:
    return separator.join(dotted(of[name]) for name in METRICS)


def name_of(run: Path) -> str:
    return "-".join(run.parts[-2:])


@pytest.mark.parametrize("title", SECTIONS)
def test_a_section_names_its_records_or_says_that_none_was_kept(title):
    records = record_lines(SECTIONS[title])
    assert records
    for record in records:
        files = linked(record)
        assert files or record.startswith(("not kept", "none"))
        for file in files:
            assert file.exists(), file


@pytest.mark.parametrize("kept", KEPT, ids=name_of)
def test_what_is_kept_is_named_by_a_section(kept):
    named = [
        file
        for text in SECTIONS.values()
        for record in record_lines(text)
        for file in linked(record)
    ]
    assert any(file == kept or kept in file.parents for file in named)


def section_of(run: Path) -> str:
    """The one that has the run's metrics for its record."""
    for text in SECTIONS.values():
        if any(run / "metrics.json" in linked(record) for record in record_lines(text)):
            return text
    raise AssertionError(f"no section has {run}")


@pytest.mark.parametrize("run", RUNS, ids=name_of)
def test_a_section_names_the_commit_that_the_record_has(run):
    assert read(run)["commit"] in section_of(run)


@pytest.mark.parametrize(
    "run", [run for run in RUNS if run.name.startswith("paper-seed")], ids=name_of
)
def test_the_epoch_chosen_by_labels_is_that_of_the_history(run):
    best = best_by_labels(history_of(run))
    assert best is not None
    row = rf"epoch {best['epoch']}, chosen by labels \| {re.escape(scores(best))} \|"
    assert re.search(row, section_of(run))


@pytest.mark.parametrize("run", [run for run in RUNS if "epochs-30" in run.name], ids=name_of)
def test_short_runs_are_quoted_with_their_best_epoch(run):
    best = best_by_labels(history_of(run))
    assert best is not None
    last = f"**{scores(read(run)['scores'], '** | **')}**"
    assert f"| {dotted(best['acc'])} | {last} |" in section_of(run)


@pytest.mark.parametrize("run", [run for run in RUNS if run.name.startswith("own")], ids=name_of)
def test_our_recipe_before_self_labels_is_that_of_the_history(run):
    history = [line for line in history_of(run) if line["phase"] != "self_label"]
    seconds = sum(line["seconds"] for line in history)
    before = {"heads": "both heads", "frozen_heads": "heads on frozen features"}
    place = before[history[-1]["phase"]]
    row = f"after {place} | {scores(history[-1])} | {seconds:,.0f} s |"
    assert row in section_of(run)


@pytest.mark.parametrize("run", RUNS, ids=name_of)
def test_the_readme_quotes_what_the_records_say(run):
    told = read(run)
    table = README["Results"]
    kind, _, seed = run.name.rpartition("-seed-")
    if kind in ("own", "paper") and seed == "0":
        seeds = [read(each)["scores"] for each in run.parent.glob(f"{kind}-seed-*")]
        means = {name: statistics.fmean(each[name] for each in seeds) for name in METRICS}
        mark = "**" if kind == "own" else ""
        assert f"{mark}{scores(means, ' / ')}{mark}" in table
    if run.name.startswith(("own", "paper-seed")):
        assert f"{told['training_seconds'] / 60:.1f}" in table


def test_the_digits_of_page_and_readme_are_those_of_their_record():
    seeds = json.loads(DIGITS.read_text())["seeds"]
    keys = [key for key in seeds[0] if key != "seed"]
    medians = {key: statistics.median(seed[key] for seed in seeds) for key in keys}
    text = SECTIONS["Digits on a CPU"]
    for title, values in [*((seed["seed"], seed) for seed in seeds), ("median", medians)]:
        figures = [f"{values[key]:.3f}" for key in keys[:-2]]
        figures += [f"{values['seconds']:.1f}", f"{values['peak MB']:.0f}"]
        assert f"| {title} | {' | '.join(figures)} |" in text
    readme = (ROOT / "README.md").read_text()
    found = " | ".join(f"**{dotted(medians[name])}**" for name in METRICS)
    pixels = " | ".join(dotted(medians[f"k-means {name}"]) for name in METRICS)
    assert f"core** | {found}" in readme
    assert f"| K-Means on the pixels | {pixels} |" in readme
    accuracies = [seed["acc"] for seed in seeds]
    assert f"(ACC {dotted(min(accuracies))} to {dotted(max(accuracies))})" in readme


@pytest.mark.parametrize("record", COMPARED)
def test_the_methods_side_by_side_are_those_of_their_record(record):
    n_methods, section = COMPARED[record]
    with record.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == n_methods
    for row in rows:
        figures = [
            str(Figure(float(row[name]), float(row[f"{name}_spread"])))
            for name in ("nmi", "acc", "ari")
        ]
        figures += [f"{float(row['seconds']):,.1f} s", f"{float(row['peak_memory_mb']):,.0f} MB"]
        seeds = row["seeds"].replace(" ", ", ")
        line = f"| {row['title']} | {seeds} | {' | '.join(figures)} |"
        assert line in SECTIONS[section]


@pytest.mark.parametrize(
    "record",
    sorted((DOCS / "runs").glob("[cs]*/compare-*.csv")),
    ids=lambda record: "-".join(record.parts[-2:]),
)
def test_a_method_on_a_benchmark_is_that_of_its_record(record):
    with record.open() as file:
        rows = list(csv.DictReader(file))
    plain = SECTIONS["Methods side by side"].replace("**", "")
    for row in rows:
        figures = " | ".join(dotted(float(row[name])) for name in ("nmi", "acc", "ari"))
        cells = rf"{re.escape(row['title'])}[^|]*\| {row['seeds']} \| {re.escape(figures)} \|"
        seconds, memory = float(row["seconds"]), float(row["peak_memory_mb"])
        assert re.search(rf"\| {cells}.* {seconds:,.1f} s \| {memory:,.0f} MB \|", plain), row


def headings(page: Path) -> set[str]:
    """As GitHub names them in links."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda page: page.name
)
def test_links_to_headings_lead_to_one(page):
    for target, anchor in re.findall(r"\]\(([^):]*)#([^)]+)\)", page.read_text()):
        other = page.parent / target if target else page
        assert anchor in headings(other), f"{target}#{anchor}"


SPEED = DOCS / "runs/speed"
STEPS = {  # row of the page: file and number of its row before, and after
    "`cifar10-paper`, B=50, over-clustering head": (("d228c61-cifar10-paper-50", 0), "0.2", 0),
    "`cifar10-paper`, B=50, cluster head": (("d228c61-cifar10-paper-50", 1), "0.2", 1),
    "`cifar10-paper`, B=200, over-clustering head": (("d228c61-cifar10-paper-200", 0), None, 0),
    "`cifar10`, contrast, B=512": (("d228c61-cifar10-phases", 0), "0.2", 0),
    "`cifar10`, both heads, B=512": (("d228c61-cifar10-phases", 1), "0.2", 1),
    "`cifar10`, self-labels, B=512": (("d228c61-cifar10-phases", 2), "0.2", 2),
}


def timed(name: str, number: int) -> str:
    row = json.loads((SPEED / f"{name}.json").read_text())["rows"][number]
    return f"{row['ms']:.3f} | {row['n_blocks']} x {row['calls_per_block']}"


@pytest.mark.parametrize("title", STEPS)
def test_steps_before_and_after_are_as_recorded(title):
    (before, number), version, after = STEPS[title]
    found = "not measured |"
    if version is not None:
        found = timed(before.replace("d228c61", version), after)
    assert f"| {title} | {timed(before, number)} | {found}" in SECTIONS["The engine on a GPU"]


OWN_STEPS = {  # row of the page: preset, number of its row, phase
    "`cifar10`, discrimination | 256": ("cifar10", 0, "discriminate step, discriminate"),
    "`cifar10`, 8 heads on frozen features | 512": (
        "cifar10",
        1,
        "frozen heads step, cluster head",
    ),
    "`cifar10`, self-labels on strong copies | 512": (
        "cifar10",
        2,
        "self label step, cluster head",
    ),
    "`stl10`, instance contrast at 96 pixels | 256": ("stl10", 0, "contrast step, contrast"),
    "`stl10`, 32 heads on frozen features | 512": ("stl10", 1, "frozen heads step, cluster head"),
    "`stl10`, self-labels on strong copies | 512": ("stl10", 2, "self label step, cluster head"),
}


@pytest.mark.parametrize("title", OWN_STEPS)
def test_steps_of_our_own_presets_and_their_floors_are_as_recorded(title):
    preset, number, phase = OWN_STEPS[title]
    name = f"34a8d8d-{preset}-steps-and-floors"
    ms = {
        row["name"]: row["ms"] for row in json.loads((SPEED / f"{name}.json").read_text())["rows"]
    }
    alone = ms.get(f"{phase}: convolutions alone")
    floors = "none" if alone is None else f"{alone:.3f}"
    floors += f" | {ms[f'{phase}: arithmetic at the matrix rate']:.3f}"
    before = timed(f"c9e7381-{preset}-phases", number).split(" | ")[0]
    (row,) = re.findall(rf"\| {re.escape(title)} \| .*", SECTIONS["The engine on a GPU"])
    assert row.startswith(f"| {title} | {timed(name, number)} | {floors} |")
    assert row.endswith(f" | {before} |")


def test_seconds_of_many_images_are_as_recorded():
    runs = json.loads((SPEED / "34a8d8d-many-images.json").read_text())
    section = SECTIONS["The engine on a GPU"]
    for row in ("neighbours", "report", "evaluation", "K-Means", "run folder"):
        seconds = " | ".join(f"{run['seconds'][row]:.1f}" for run in runs)
        assert f"| {row} | {seconds} |" in section
    beside = " | ".join(f"**{run['beside_steps']:.1f}**" for run in runs)
    assert f"| **beside the steps** | {beside} |" in section
    (streamed,) = json.loads((SPEED / "00f59b4-many-images-streamed.json").read_text())
    assert f"a million {streamed['beside_steps']:.1f} s" in section


def test_seconds_until_the_first_step_are_as_recorded():
    first, second = (
        json.loads((SPEED / f"34a8d8d-{name}-run.json").read_text()) for name in ("first", "second")
    )
    section = SECTIONS["The engine on a GPU"]
    for row in ("imports", "network and images onto the device"):
        assert f"| {row} | {first['seconds'][row]:.1f} | {second['seconds'][row]:.1f} |" in section
    steps = f"**{first['first_step']:.1f}** | **{second['first_step']:.1f}**"
    assert f"| **from the command to the first training step** | {steps} |" in section


@pytest.mark.parametrize(("title", "number"), [("over-clustering head", 0), ("cluster head", 1)])
def test_the_papers_step_before_and_now_in_one_run_is_as_recorded(title, number):
    before = timed("d228c61-cifar10-paper-50-beside-ae7794e", number)
    now = timed("ae7794e-cifar10-paper-50", number)
    assert f"\n| {title} | {before} | {now} |" in SECTIONS["The engine on a GPU"]


FEATURES = {
    "STL-10's test part, 8,000, lossy copies": "stl10",
    "CIFAR-10's test part, 10,000": "cifar10",
}


@pytest.mark.parametrize(("row", "name"), FEATURES.items())
def test_figures_with_a_pretrained_backbone_are_those_of_their_records(row, name):
    """Every seed, the medians, and the fine-tuned run beside the frozen one."""
    section = SECTIONS["Photos with a pretrained backbone"]
    frozen, tuned = re.findall(rf"^\| {re.escape(row)} \| (.*) \|$", section, flags=re.MULTILINE)
    record = json.loads((DOCS / f"runs/features/efficientnet-lite0-{name}-test.json").read_text())
    each, medians = {}, {}
    for method in ("k_means", "dcdc"):
        found = [seed[method] for seed in record["seeds"]]
        each[method] = " ".join(dotted(scores["acc"]) for scores in found)
        medians[method] = " / ".join(
            dotted(statistics.median(scores[metric] for scores in found)) for metric in METRICS
        )
    cells = [cell.strip(" *") for cell in frozen.split("|")]
    assert cells[:4] == [each["k_means"], each["dcdc"], medians["k_means"], medians["dcdc"]]
    path = DOCS / f"runs/features/efficientnet-lite0-h200-{name}-test.json"
    runs = {run["name"]: run["scores"] for run in json.loads(path.read_text())}
    cells = [cell.strip(" *") for cell in tuned.split("|")]
    for cell, kept in ((cells[0], "frozen"), (cells[2], "fine-tuned")):
        assert cell == " / ".join(dotted(runs[kept][metric]) for metric in METRICS)


NUMBERS = DOCS / "runs/numbers"
FOUND = {path.stem: path for path in sorted(NUMBERS.glob("auto-*.json"))}


@pytest.mark.parametrize("record", FOUND.values(), ids=FOUND)
def test_numbers_that_were_found_are_those_of_their_record(record):
    rows = json.loads(record.read_text())["rows"]
    found = [row["found"] for row in rows]
    n_classes = rows[0].get("n_classes", 10)
    near = sum(abs(number - n_classes) <= 1 for number in found)
    cells = (
        f"{n_classes} | {rows[0]['seed']} to {rows[-1]['seed']} | {' '.join(map(str, found))} | "
        f"{found.count(n_classes)} of {len(found)} | {near} of {len(found)} |"
    )
    section = SECTIONS["How many clusters there are"]
    assert f"| {cells}" in section
    assert f"runs/numbers/{record.name}" in section


LONG_TAILS = {path.stem: path for path in sorted(NUMBERS.glob("long-tail-*.json"))}
SIZES = LONG_TAILS | {path.stem: path for path in NUMBERS.glob("even-*.json")}


@pytest.mark.parametrize("record", SIZES.values(), ids=SIZES)
def test_images_of_unequal_and_equal_sizes_are_those_of_their_record(record):
    kept = json.loads(record.read_text())
    section = SECTIONS["Clusters of unequal size"]
    for sizes, medians in kept["median"].items():
        rows = [row for row in kept["rows"] if row["sizes"] == sizes]
        seeds = f"{rows[0]['seed']} to {rows[-1]['seed']}"
        each = " ".join(dotted(row["acc"]) for row in rows)
        cut = " ".join(str(row["n_cut"]) for row in rows)
        assert medians["acc"] == statistics.median(row["acc"] for row in rows)
        assert f"| `{sizes}` | {seeds} | {each} | {scores(medians, ' / ')} | {cut} |" in section
    assert f"runs/numbers/{record.name}" in section


def test_medians_over_all_long_tails_are_those_of_the_records():
    digits = [path for name, path in LONG_TAILS.items() if "digits" in name]
    kept = [row for path in digits for row in json.loads(path.read_text())["rows"]]
    equal, free = (
        dotted(statistics.median(row["acc"] for row in kept if row["sizes"] == sizes))
        for sizes in ("equal", "free")
    )
    assert f"{equal} with equal sizes and **{free} with free ones**" in " ".join(
        SECTIONS["Clusters of unequal size"].split()
    )


def test_the_time_of_a_search_is_that_of_its_record():
    (path,) = NUMBERS.glob("time-*.json")
    times = [row["times"] for row in json.loads(path.read_text())["rows"]]
    section = " ".join(SECTIONS["How many clusters there are"].split())
    assert f"take {', '.join(map(str, times))} times a run whose number is given" in section
    assert path.name in section


CORRECTIONS = SECTIONS["Learning from corrections"]


def corrections(name: str) -> dict:
    return json.loads((DOCS / f"runs/corrections/{name}.json").read_text())


@pytest.mark.parametrize("name", ["digits", "cifar10-test"])
def test_tables_of_corrections_are_those_of_the_records(name):
    orders = [corrections(f"{name}-{order}") for order in ("random", "least-sure")]
    for both in zip(*(record["medians"] for record in orders), strict=True):
        number = both[0]["corrections"]
        cells = [
            f"{each['looked_at']:.0f} | {dotted(each['acc'])} | {dotted(each['acc_others'])}"
            if number
            else f"0 | {dotted(each['acc'])} | "
            for each in both
        ]
        assert f"| {number} | {' | '.join(cells)} |".replace("  ", " ") in CORRECTIONS
    for record in orders:
        runs = {row["run"] for row in record["rows"]}
        assert len(runs) == 5
        for median in record["medians"]:
            same = [r["acc"] for r in record["rows"] if r["corrections"] == median["corrections"]]
            assert median["acc"] == statistics.median(same)


def test_the_gains_by_corrections_are_those_of_the_records():
    digits = [r["acc"] for r in corrections("digits-random")["rows"] if r["corrections"] == 10]
    assert f"the lowest seed {dotted(min(digits))}" in CORRECTIONS
    whole = corrections("digits-whole-network")
    assert f"at random end at {dotted(whole['medians'][1]['acc'])}:" in CORRECTIONS
    seconds = [row["seconds"] for row in whole["rows"] if row["corrections"]]
    assert f"It took {min(seconds):.0f} to {max(seconds):.0f} s" in CORRECTIONS
    for order, told in (("random", "a gain of {}"), ("least-sure", "Least sure first: {}")):
        rows = corrections(f"cifar10-test-{order}")["rows"]
        acc = {(row["run"], row["corrections"]): row["acc"] for row in rows}
        gains = [acc[run, 50] - acc[run, 0] for run in {row["run"] for row in rows}]
        assert told.format(f"+{dotted(statistics.median(gains))}") in CORRECTIONS
        if order == "random":
            span = f"+{dotted(min(gains))} to +{dotted(max(gains))}"
            assert span in CORRECTIONS


OUTLIER_RECORDS = {
    "digits-seeds-870-to-874": ("noise", "letters", "clothes"),
    "digits-seeds-860-to-864": ("noise", "letters", "clothes"),
}


def test_outliers_among_photos_are_those_of_their_record():
    section = SECTIONS["Images that belong to no cluster"]
    pairs = []
    for first in (2000, 6000):
        record = json.loads((NUMBERS / f"outliers-among-photos-{first}.json").read_text())
        assert record["commit"] in section
        pairs.append(list(zip(record["rows"][::2], record["rows"][1::2], strict=True)))
    for of_kind in zip(*pairs, strict=True):
        cells = (
            of_kind[0][0]["kind"].replace("_", " "),
            *(f"{told['found']:.1%}" for told, _ in of_kind),
            *(f"{told['lost']:.1%}" for told, _ in of_kind),
            *(
                f"{dotted(told['acc_of_photos'])}, {dotted(plain['acc_of_photos'])}"
                for told, plain in of_kind
            ),
        )
        assert f"| {' | '.join(cells)} |" in section
    draws = [draw for of_first in pairs for draw in of_first]
    found = sum(told["found"] >= 0.8 for told, _ in draws)
    better = sum(told["acc_of_photos"] > plain["acc_of_photos"] for told, plain in draws)
    assert f"On {found} of {len(draws)} draws" in section
    assert f"on {better} of {len(draws)} draws" in section


@pytest.mark.parametrize("name", OUTLIER_RECORDS)
def test_outliers_among_digits_are_those_of_their_record(name):
    record = json.loads((NUMBERS / f"outliers-{name}.json").read_text())
    section = SECTIONS["Images that belong to no cluster"]
    assert record["commit"] in section
    for kind in OUTLIER_RECORDS[name]:
        rows = [row for row in record["rows"] if row["kind"] == kind]
        cells = (
            f"{rows[0]['seed']} to {rows[-1]['seed']}",
            " ".join(f"{row['found']:.1%}" for row in rows),
            " ".join(f"{row['lost']:.1%}" for row in rows),
            " ".join(dotted(row["acc_of_digits"]) for row in rows),
        )
        assert f" | {' | '.join(cells)} |" in section
