"""The command line: one file per verb, thin. Heavy imports wait until a verb runs."""

import sys

import typer

from dcdc.cli.before_verbs import before_any_verb
from dcdc.cli.bench import bench
from dcdc.cli.compare import compare
from dcdc.cli.data import data_app
from dcdc.cli.evaluate import evaluate
from dcdc.cli.export import export
from dcdc.cli.faults import exit_codes, first_speaks, in_one_line
from dcdc.cli.fit import fit
from dcdc.cli.predict import predict
from dcdc.cli.presets import presets
from dcdc.cli.refine import refine
from dcdc.cli.report import report
from dcdc.cli.reproduce import reproduce
from dcdc.cli.view import view
from dcdc.errors import InputError
from dcdc.runtime.environment import bound_spinning
from dcdc.runtime.launch import read_launch

app = typer.Typer(
    name="dcdc",
    help="Groups images without labels: Doubly Contrastive Deep Clustering.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback()(before_any_verb)
_VERBS = (
    *(fit, predict, evaluate, report, view, refine, export, presets, compare, reproduce),
    bench,
)
for verb in _VERBS:
    app.command()(verb)
app.add_typer(data_app, name="data")


_BY_SEVERAL_PROCESSES = ("fit", "predict", "evaluate")


def main() -> None:
    bound_spinning()
    with exit_codes(), first_speaks():
        _check_launch()
        in_one_line(app)


def _check_launch() -> None:
    verb = sys.argv[1] if len(sys.argv) > 1 else ""
    if read_launch().size > 1 and not verb.startswith("-") and verb not in _BY_SEVERAL_PROCESSES:
        raise InputError(f"dcdc {verb} is work for one process: start it without torchrun")
