"""Methods side by side on one set: what is missing is run, each in a process of its own.

`settings` reads what a method takes, `runs` makes a folder for each method and seed, `process` runs
one there by `child`, which tells its parent of it by `relay`; `standing` reads the folders, `rows`
counts seeds together, `tables` and `page` write.
"""
