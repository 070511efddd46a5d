import threading

import numpy as np
import pytest
from PIL import Image
from viewer_runs import HOSTILE, Client, photo, write_run

from dcdc.run_folder import RunFolder
from dcdc.viewer import Answers, Refining, ViewServer, open_run
from devtools import Tab


@pytest.fixture
def photos(tmp_path):
    """Twelve images, one of each kind that wants care; the order is that of their names."""
    folder = tmp_path / "photos"
    (folder / "trip").mkdir(parents=True)
    for number in range(6):
        photo(100 + 20 * number).save(folder / f"trip/{number}.jpg", quality=90)
    (folder / "trip/copy of 2.jpg").write_bytes((folder / "trip/2.jpg").read_bytes())
    turned = Image.Exif()
    turned[0x0112] = 6
    turned[0x0132] = "2021:05:01 10:20:30"
    photo(200).save(folder / "turned.jpg", exif=turned)
    photo(90).save(folder / "scan.tiff")
    photo(180).save(folder / "clear.png")
    hostile = Image.Exif()
    for tag in (0x010E, 0x0132, 0x013B):  # description, date, artist
        hostile[tag] = "<img src=x onerror=window.ran=1><script>window.ran=1</script>"
    photo(60).save(folder / HOSTILE, exif=hostile)
    script = '<svg xmlns="http://www.w3.org/2000/svg" onload="window.ran=1"/>'
    (folder / "vector.png").write_text(script)
    return folder


@pytest.fixture
def names(photos):
    from dcdc.data.folder import list_folder

    return list(list_folder(photos).names)


@pytest.fixture
def run(photos, names, tmp_path):
    return write_run(
        tmp_path / "run",
        names,
        [row % 3 for row in range(len(names))],
        source=photos,
        features=np.random.default_rng(0).normal(size=(len(names), 4)),
    )


@pytest.fixture
def serve():
    """Serves a run folder, after its survey; the client."""
    started = []

    def start(folder: RunFolder) -> Client:
        viewed = open_run(folder)
        answers = Refining(folder.path, Answers(viewed))
        server = ViewServer(answers)
        viewed.survey.start()
        assert viewed.survey.done.wait(60)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        started.append((server, thread, answers))
        return Client(server)

    yield start
    for server, thread, answers in started:
        answers.stop()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def client(serve, run):
    return serve(run)


@pytest.fixture
def open_view(browser):
    """Visits a server; every page must have kept quiet, and asked nobody else, by the end."""
    tabs = []

    def visit(client, part="", **screen) -> Tab:
        tab = Tab(browser, **screen)
        tabs.append((tab, client))
        return tab.visit(client.server.address + part)

    yield visit
    own = [(tab, client) for tab, client in tabs if not getattr(tab, "is_strange", False)]
    # A picture that is refused is told on the console, too.
    complaints = [
        each for tab, _ in own for each in tab.complaints if "status of 422" not in str(each)
    ]
    dialogs = [tab.events("Page.javascriptDialogOpening") for tab, _ in tabs]
    asked = [(url, client.server.hosts[0]) for tab, client in own for url in tab.requests]
    for tab, _ in tabs:
        tab.close()
    assert not complaints
    assert not any(dialogs), dialogs
    assert all(url.startswith(f"http://{host}/") for url, host in asked), asked
