"""Files that are read back: what each may hold, and one reader for each kind of file."""
