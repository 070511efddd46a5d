"""Every file of ours that is read back, and what it may hold.

What a person may edit (`config.json`, `names.json` and, of results, anything that its check sum is
taken out of) is checked by its schema alone. What can be made again is, where it is damaged.
"""

import pyarrow as pa

from dcdc.stored.arrays import Array, StoredArrays, StoredRows
from dcdc.stored.reading import MIB, StoredCsv, StoredFile, StoredJson, StoredLines
from dcdc.stored.schema import (
    Anything,
    ByKind,
    Flag,
    ListOf,
    MapOf,
    Maybe,
    Number,
    OneOf,
    Record,
    Row,
    Text,
    Whole,
)
from dcdc.stored.tables import Column, StoredTable

_RESTORE = "restore it from a copy, or train again"
_MADE_AGAIN = "remove it, and it is made again"

CONFIG = StoredJson(
    "config.json",
    Record(
        {},
        {
            **{"n_clusters": Maybe(Whole()), "sizes": Anything(), "outliers": Flag()},
            **{section: MapOf(Anything()) for section in ("data", "network", "augment", "train")},
            "phases": ListOf(Anything()),
            **{"method": Text(), "seed": Whole(), "settings": MapOf(Anything())},
        },
    ),
    "mend it, or restore it from a copy",
)
"""The settings themselves are checked by dcdc.config, which knows their types and ranges."""

BACKBONE_SETTINGS = StoredJson("backbone/*.json", Record({}), "mend it, or get it again")
"""Of a backbone from elsewhere, in the words of whoever made it."""

_SCORES = Record(dict.fromkeys(("acc", "nmi", "ari"), Number()), others=Number())
_PRETRAINED = Record(
    {"name": Text(), "licence": Text(), "trained_on": Text(), "uses_labels": Maybe(Flag())}
)
METRICS = StoredJson(
    "metrics.json",
    Record(
        {
            **{"n_images": Whole(1), "n_clusters": Whole(1), "scores": Maybe(_SCORES)},
            **{"epochs": Maybe(Whole()), "seed": Whole(), "training_seconds": Number()},
            **{"device": Text(), "dcdc": Text()},
            "health": Record(
                {
                    **{"sizes": ListOf(Whole()), "active_clusters": Whole()},
                    **dict.fromkeys(
                        ("largest_share", "entropy_of_mean", "mean_confidence"), Number()
                    ),
                }
            ),
        },
        {
            **{"n_classes": Maybe(Whole()), "n_features": Whole(1), "method": Text()},
            "image_shape": ListOf(Whole(1), length=3),
            "backbone": Maybe(
                Record({"name": Text()}, {"frozen": Flag(), "pretrained": Maybe(_PRETRAINED)})
            ),
            "baselines": MapOf(MapOf(Number())),
            "phases": ListOf(Record({"name": Text()}, {"label": Text(), "color": Text()})),
            **{"torch": Text(), "scikit-learn": Text(), "commit": Maybe(Text())},
            **dict.fromkeys(("peak_memory_mb", "peak_gpu_memory_mb"), Maybe(Number())),
            "processes": Whole(1),
            **{"features_of": Text(), "n_outliers": Whole()},
            "refined": Record(
                {"source": Text(), "answers": Text(), "edits": MapOf(Whole())},
                dict.fromkeys(("labelled", "learnt", "outside"), Whole()),
            ),
        },
    ),
    f"{_RESTORE}; if you edited it, take its checksum out",
)

HISTORY = StoredLines(
    "history.jsonl",
    Record(
        {"epoch": Whole(1), "seconds": Number()},
        {
            **{"phase": Text(), "sizes": ListOf(Whole()), "warnings": ListOf(Text())},
            "active_clusters": Whole(),
        },
        others=Maybe(Number()),
    ),
    "restore it from a copy, or take out that line and those after it",
)

NAMES = StoredJson(
    "names.json",
    Record({"format": OneOf((1,)), "clusters": MapOf(Text())}),
    'it should read {{"format": 1, "clusters": {{"0": "cats"}}}}, as the report page saves it; if '
    "you edited it, take its checksum out",
)

NUMBER = StoredJson(
    "number.json",
    Record(
        {
            **{"number": Whole(2), "is_settled": Flag()},
            **{"strengths": MapOf(Number()), "runners_up": ListOf(Whole(2))},
        }
    ),
    "remove it: the report then does without",
)
"""How many clusters there are, where the images settled it: prediction strengths by number."""
SEARCH = StoredJson(
    "search.json",
    Record({"n_clusters": Whole(2), "lowest": Whole(2), "highest": Whole(2)}),
    "begin a new run",
)
"""Of a search for the number that is under way: between which numbers, and how many clusters the
run has whose features are looked at."""
HIERARCHY = StoredJson(
    "hierarchy.json",
    Record(
        {
            "n_clusters": Whole(2),
            "joins": ListOf(
                Record(
                    {
                        **{"first": Whole(), "second": Whole()},
                        **{"distance": Number(), "n_images": Whole(2)},
                    }
                )
            ),
        }
    ),
    _MADE_AGAIN,
)
"""Which clusters join first as their number falls: dcdc.metrics.hierarchy."""
_IMAGES = ListOf(Row((Whole(), Text())))
_EDITED = Record({"images": _IMAGES})
EDITS = StoredJson(
    "edits.json",
    Record(
        {
            **{"format": OneOf((1,)), "answers": Text()},
            "edits": ListOf(
                ByKind(
                    {
                        "name": Record({"cluster": Whole(), "name": Text()}, {"before": Text()}),
                        "merge": Record({"clusters": ListOf(Whole()), "into": Whole()}),
                        "move": Record({"images": _IMAGES, "to": Whole()}),
                        "split": Record({"cluster": Whole(), "parts": ListOf(_IMAGES)}),
                        **dict.fromkeys(("outside", "together", "apart"), _EDITED),
                    }
                )
            ),
        }
    ),
    "restore it from a copy, or move it away; if you edited it, take its checksum out",
    most_bytes=256 * MIB,
)

TAUGHT = StoredArrays(
    "taught.npz",
    {
        **{"clusters": Array("i", ("N",)), "placed": Array("i", ("N",))},
        **{"together": Array("i", ("t", 2)), "apart": Array("i", ("a", 2))},
        **{"names": Array("U", ("K",)), "source": Array("U"), "answers": Array("U")},
        **{"kinds": Array("U", ("e",)), "counts": Array("i", ("e",)), "doubt": Array("f")},
    },
    _RESTORE,
)
"""What people taught a run that was refined: dcdc.engine.taught."""

CHECKPOINT_STATE = StoredJson(
    "state.json",
    Record(
        {
            **{"format": OneOf((1, 2)), "epoch": Whole(), "step": Whole(), "sha256": Text()},
            "extra": Record(
                {"term_counts": MapOf(Whole())},
                {
                    **{"n_images": Whole(), "n_extra": Whole()},
                    "made_with": Record(
                        {}, {"settings": MapOf(Anything()), "images": MapOf(Text())}
                    ),
                },
            ),
        }
    ),
    "remove its folder, and an older checkpoint is taken",
)

ASSIGNMENTS = StoredTable(
    "assignments.parquet",
    {
        **{"name": Column(pa.string()), "cluster": Column(pa.int32())},
        "confidence": Column(pa.float32()),
        "target": Column(pa.string(), is_needed=False),
        "runner_up": Column(pa.int32(), is_needed=False),
        "runner_up_confidence": Column(pa.float32(), is_needed=False),
    },
    _RESTORE,
)

SKIPPED = StoredCsv("skipped.csv", ("name", "reason"), "remove it, or train again")

SAMPLE = StoredArrays(
    "sample.npz",
    {
        **{"rows": Array("i", ("n",)), "features": Array("f", ("n", "D"))},
        **{"assign": Array("f", ("n", "K")), "view_rows": Array("i", ("v",))},
        "view_assign": Array("f", ("v", "K")),
        "view_assign_perturbed": Array("f", ("v", "K")),
        "vouch": Array("i", ("n",), is_needed=False),
    },
    "remove it, or make it again by dcdc report",
)

FEATURES = StoredRows(
    "features.npz",
    {"features": Array("f", ("N", "D"))},
    "remove it, and the features of the sample are taken",
)
"""Of every image, where the sample has some of them alone."""

REFERENCE = StoredArrays(
    "reference.npz",
    {"features": Array("f", ("n", "D"))},
    "remove it, and out-of-distribution images are no longer told",
)

MAP = StoredArrays(
    "map.npz",
    {
        **{"digest": Array("U"), "rows": Array("i", ("n",)), "PCA": Array("f", ("n", 2))},
        "t-SNE": Array("f", ("n", 2), is_needed=False),
    },
    _MADE_AGAIN,
)

CACHE_NOTE = StoredJson(
    "KEY.note",
    Record({"shape": Row((Whole(1, 2**16), Whole(1, 2**16), OneOf((1, 3))))}),
    _MADE_AGAIN,
    needs_checksum=True,
)

CACHE_DONE = StoredJson(
    "done",
    Record({"bytes": Whole(), "changed": Whole(), "journal": Whole()}),
    _MADE_AGAIN,
)

JOURNAL_HEADER = StoredJson(
    "journal, its first line",
    Record({"format": Whole(1)}),
    _MADE_AGAIN,
    without_checksum=("format", "meaning", "parts", "n_rows", "shape"),
)
JOURNAL = StoredLines(
    "journal",
    Record(
        {
            **{"n_read": Whole(), "n_kept": Whole()},
            "skipped": ListOf(Row((Whole(), Text()))),
            "pieces": MapOf(Row((Whole(), Whole(0, 2**32 - 1)))),
        },
        others=Whole(),
    ),
    _MADE_AGAIN,
)

WHOLE_PREDICTION = StoredJson("whole", Record({"n_blocks": Whole()}), _MADE_AGAIN)

STORED_FILES: dict[str, StoredFile] = {
    file.name: file
    for file in (
        *(CONFIG, METRICS, HISTORY, NAMES, EDITS, CHECKPOINT_STATE, ASSIGNMENTS, SAMPLE),
        *(NUMBER, SEARCH, HIERARCHY, FEATURES, REFERENCE, MAP, SKIPPED, TAUGHT),
        BACKBONE_SETTINGS,
        *(CACHE_NOTE, CACHE_DONE, JOURNAL_HEADER, JOURNAL, WHOLE_PREDICTION),
    )
}
"""By name. `model.safetensors` and `tensors.safetensors` have no schema but the network's own, and
are read by dcdc.runtime.tensor_files."""
