"""Runs, rows and tables: `dcdc compare` and `dcdc reproduce`.

Both plan runs with folders of their own (`names`), carry out what is missing (`sequence`), read
the state of each run and count seeds together (`rows`), and write tables (`sheet`).

`dcdc compare`: methods on one set of images. `method_runs` plans, `method_process` runs each in a
process of its own (`method_child`), `compare_tables` writes.

`dcdc reproduce`: the tables of the paper. `paper` has its figures and rows, `recipe_runs` plans and
reads (`chosen_epoch`), `recipe_training` trains, `reproduce_tables` writes.
"""

FIT_FLAGS = {
    "n_clusters": "--clusters",
    "heads.epochs": "--epochs",
    "heads.batch_size": "--batch-size",
    "train.seed": "--seed",
    "train.device": "--device",
    "data.size": "--size",
    "data.target": "--target",
    "data.column": "--column",
    "data.on_bad": "--on-bad",
    "network.backbone": "--backbone",
}
"""Settings that `dcdc fit` has an option of their own for."""
