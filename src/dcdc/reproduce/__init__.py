"""The paper's tables as lists of runs: what is missing is run, and ours stands beside the paper's.

`paper` has the published figures, `tables` the rows, `runs` turns a row into runs with folders,
`session` trains them, `sequence` one after the other, `outcome` and `chosen_epoch` read them,
`summary` counts seeds together, `markdown` and `record` write.
"""
