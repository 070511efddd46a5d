"""`dcdc report RUN`: draw a run's report again."""

from typing import TYPE_CHECKING

from dcdc.cli.arguments import Quiet, Run
from dcdc.errors import InputError

if TYPE_CHECKING:
    from dcdc.data import ImageSet
    from dcdc.run_folder import RunFolder


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
    if image_set is not None and not folder.sample_file.exists():
        _add_sample(folder, image_set, quiet)
    say(f"report: {write_report(folder, image_set)}")


def _add_sample(folder: "RunFolder", image_set: "ImageSet", quiet: bool) -> None:
    """For a run that left none, as those of earlier versions."""
    from dcdc.cli.console import note
    from dcdc.report.facts import read_facts
    from dcdc.run import add_sample

    if read_facts(folder).why_not_these_images(image_set):
        return  # the page says so
    if not quiet:
        note("the run has no sample of its features: the model makes one, once")
    try:
        add_sample(folder, image_set)
    except InputError as error:
        note(f"warning: the page has no map and no affinities ({error})")
