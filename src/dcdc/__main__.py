"""`python -m dcdc` is the command line."""

from dcdc.cli import main

main()
