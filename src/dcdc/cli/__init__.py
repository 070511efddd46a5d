"""The command line: one file per verb, thin. Heavy imports wait until a verb runs."""

import typer

from dcdc.cli.bench import bench
from dcdc.cli.compare import compare
from dcdc.cli.data import data_app
from dcdc.cli.evaluate import evaluate
from dcdc.cli.export import export
from dcdc.cli.faults import exit_codes
from dcdc.cli.fit import fit
from dcdc.cli.predict import predict
from dcdc.cli.presets import presets
from dcdc.cli.report import report
from dcdc.cli.reproduce import reproduce

app = typer.Typer(
    name="dcdc",
    help="Groups images without labels: Doubly Contrastive Deep Clustering.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in (fit, predict, evaluate, report, export, presets, compare, reproduce, bench):
    app.command()(verb)
app.add_typer(data_app, name="data")


def main() -> None:
    with exit_codes():
        app()
