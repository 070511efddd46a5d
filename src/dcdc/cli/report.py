"""`dcdc report RUN`: draw a run's report again."""

from dcdc.cli.arguments import Quiet, Run
from dcdc.errors import InputError


def report(run: Run, quiet: Quiet = False) -> None:
    """Rebuild the report and figures of a finished run."""
    from dcdc.cli.console import note, say
    from dcdc.cli.reading import read_configured
    from dcdc.report import write_report
    from dcdc.run import read_config
    from dcdc.run_folder import RunFolder

    folder = RunFolder.open(run)
    folder.read_assignments()  # refuses a run that has not finished
    data = read_config(folder).data
    try:
        image_set = read_configured(data, quiet=quiet)
    except InputError as error:
        note(f"warning: the images are not at hand, so the page has no galleries ({error})")
        image_set = None
    say(f"report: {write_report(folder, image_set)}")
