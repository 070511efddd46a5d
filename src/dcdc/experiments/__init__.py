"""Runs, rows and tables: `dcdc compare` and `dcdc reproduce`.

Both plan runs with folders of their own, carry out what is missing (`sequence`), read where each
run stands (`standing`), count seeds together (`rows`) and write tables (`sheet`).

`dcdc compare`: methods on one set of images. `method_settings` reads what a method takes,
`method_runs` plans, `method_process` runs each in a process of its own (`method_child`, heard by
`relay`), `compare_tables` and `compare_page` write.

`dcdc reproduce`: the tables of the paper. `paper` has the published figures, `paper_tables` the
rows, `recipe_plan` plans, `recipe_training` trains, `recipe_run` and `chosen_epoch` read,
`reproduce_tables` writes.
"""
