"""`dcdc view RUN`: look at every image of a run, in the browser of this machine."""

from typing import Annotated

import typer

from dcdc.cli.arguments import EditsFile, Run, take_edits
from dcdc.cli.console import note, say

_FIRST_PAGE_SECONDS = 2


def view(
    run: Run,
    edits: EditsFile = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0: one that is free.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open it, or print the address alone.")
    ] = True,
) -> None:
    """Look at every image of a finished run on a local page, and correct its clusters."""
    from dcdc.data.decode import quiet_pillow
    from dcdc.run_folder import RunFolder
    from dcdc.viewer import Answers, Refining, ViewServer, open_run

    folder = RunFolder.open(run)
    if edits is not None:
        take_edits(folder, edits)
    viewed = open_run(folder)
    for each in viewed.notes:
        note(f"note: {each}")
    answers = Refining(run, Answers(viewed))
    with quiet_pillow(), ViewServer(answers, port) as server:
        try:
            viewed.survey.start(after=_FIRST_PAGE_SECONDS)
            say(f"view: {server.address}")
            note("only this machine can open it; Ctrl-C ends it")
            if browser:
                import webbrowser

                webbrowser.open(server.address)
            server.serve_forever()
        except KeyboardInterrupt:  # how it is meant to end
            pass
        finally:
            viewed.survey.stop()
            answers.stop()
