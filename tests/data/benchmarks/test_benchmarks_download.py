"""Downloads from a real server on this machine, which cuts, lies and hangs up as it is told."""

import hashlib
import io
import multiprocessing
import os
import resource
import signal
import socket
import tarfile
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from dcdc.data.benchmarks import archives, download
from dcdc.data.benchmarks.catalogue import BENCHMARKS, RemoteFile, folder_of, is_here
from dcdc.data.benchmarks.download import fetch
from dcdc.errors import InputError

NOISE = np.random.default_rng(0).bytes(600_000)  # does not shrink
NO_WAITS = (0.0, 0.0, 0.0)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        site, headers = self.server.site, self.headers
        site.requests.append({"range": headers["Range"], "if_range": headers["If-Range"]})
        self.close_connection = True
        self.act(site, site.faults.pop(0) if site.faults else site.always)

    def act(self, site, fault):
        contents = site.contents[self.path]
        if fault == "hang up":
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if isinstance(fault, int):
            self.send_response(fault)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start = 0
        if self.headers["Range"] and fault != "ignore range":
            current = site.validators.get("ETag") or site.validators.get("Last-Modified")
            if self.headers["If-Range"] == current or fault == "ignore if-range":
                start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        self.send_response(206 if start else 200)
        if start:
            sent_from = 0 if fault == "wrong range" else start
            self.send_header("Content-Range", f"bytes {sent_from}-{len(contents) - 1}/*")
        for name, value in site.validators.items():
            self.send_header(name, value)
        if fault not in ("endless", "no length"):
            self.send_header("Content-Length", str(len(contents) - start))
        self.end_headers()
        rest = contents[start:]
        if isinstance(fault, tuple):
            self.send(site, rest[: fault[1]])  # then the socket is closed
        elif fault == "no length":
            self.send(site, rest[:200_000])
        elif fault == "endless":
            while self.send(site, bytes(2**16)):
                pass
        else:
            self.send(site, rest)

    def send(self, site, piece):
        try:
            self.wfile.write(piece)
        except OSError:
            return False
        site.bytes_sent += len(piece)
        site.gate.wait(10)
        return True

    def log_message(self, *_):
        pass


class Site:
    """What is served, the faults of the coming requests in order, and what was asked for."""

    def __init__(self, url):
        self.url, self.contents = url, {}
        self.validators = {"ETag": '"one"'}
        self.faults, self.always = [], "serve"
        self.requests, self.bytes_sent = [], 0
        self.gate = threading.Event()
        self.gate.set()

    def offer(self, name, contents, **about):
        self.contents[f"/{name}"] = contents
        md5 = hashlib.md5(contents).hexdigest()
        return RemoteFile(f"{self.url}/{name}", name, md5, len(contents), **about)


@pytest.fixture
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.site = Site(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.site
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DCDC_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "cache"


def an_archive(seed=0):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name in ("set/a.bin", "set/deep/b.bin"):
            header = tarfile.TarInfo(name)
            header.size, header.mtime = len(NOISE), seed
            tar.addfile(header, io.BytesIO(NOISE))
    return buffer.getvalue()


ARCHIVE = an_archive()
SIZE = len(ARCHIVE)


@pytest.fixture
def archived(site):
    """A benchmark of one archive with one folder."""
    file = site.offer("set.tar.gz", ARCHIVE, unpacks_to="set", unpacked_bytes=2 * len(NOISE))
    return replace(BENCHMARKS["cifar10"], name="tiny", folder="tiny", files=(file,))


@pytest.fixture
def plain(site):
    """A benchmark of two files that are read as they are."""
    files = (site.offer("images.gz", NOISE), site.offer("labels.gz", NOISE[:500]))
    return replace(BENCHMARKS["mnist"], name="plain", folder="plain", files=files)


def left(benchmark):
    folder = folder_of(benchmark)
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def refused(benchmark, **options):
    with pytest.raises(InputError) as caught:
        fetch(benchmark, **{"waits": NO_WAITS} | options)
    assert "\n" not in str(caught.value)
    assert not is_here(benchmark)
    assert not any(name.startswith(".") for name in left(benchmark))
    return str(caught.value)


def assert_arrives(benchmark, **options):
    """All of it, and nothing else in its folder."""
    assert not is_here(benchmark)
    folder = fetch(benchmark, **{"waits": NO_WAITS} | options)
    assert folder == folder_of(benchmark)
    assert is_here(benchmark)
    if benchmark.folder == "tiny":
        assert left(benchmark) == {"set"}
        assert (folder / "set" / "a.bin").read_bytes() == NOISE
        assert (folder / "set" / "deep" / "b.bin").read_bytes() == NOISE
    else:
        assert left(benchmark) == {"images.gz", "labels.gz"}
        assert (folder / "images.gz").read_bytes() == NOISE


def ranges(site):
    return [request["range"] for request in site.requests]


def test_an_archive_is_downloaded_and_unpacked_without_a_word(archived, site, capfd, caplog):
    steps = []
    assert_arrives(archived, progress=lambda *step: steps.append(step))
    assert steps[-1] == ("unpacking set.tar.gz", 0, 0)
    assert {what for what, _, _ in steps[:-1]} == {"set.tar.gz"}
    counts = [done for _, done, _ in steps[:-1]]
    assert counts == sorted(counts)
    assert counts[-1] == SIZE == steps[0][2]
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")
    fetch(archived)
    assert len(site.requests) == 1


def test_plain_files_stay_as_they_are(plain, site):
    assert_arrives(plain)
    fetch(plain)
    assert len(site.requests) == 2


def test_a_cut_connection_is_resumed(archived, site):
    site.faults = [("cut", 500_000)]
    assert_arrives(archived)
    assert site.requests[1] == {"range": "bytes=500000-", "if_range": '"one"'}
    assert site.bytes_sent == SIZE


def test_many_cuts_are_borne_as_long_as_each_try_brings_something(archived, site):
    site.faults = [("cut", 150_000)] * 6
    assert_arrives(archived, waits=(0.0,))
    assert len(site.requests) == 7
    assert site.bytes_sent == SIZE


def test_what_has_arrived_is_kept_for_the_next_call(archived, site):
    site.faults = [("cut", 500_000)]
    assert "IncompleteRead" in refused(archived, waits=())
    assert left(archived) == {"set.tar.gz.part", "set.tar.gz.part.validator"}
    assert_arrives(archived)
    assert ranges(site) == [None, "bytes=500000-"]
    assert site.bytes_sent == SIZE


def test_an_early_end_shows_even_when_no_length_was_given(archived, site):
    site.faults = ["no length"]
    assert_arrives(archived)
    assert ranges(site) == [None, "bytes=200000-"]


@pytest.mark.parametrize(
    ("validators", "if_range"),
    [
        ({"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}, "Mon, 01 Jan 2024 00:00:00 GMT"),
        ({"ETag": 'W/"weak"'}, None),
        ({}, None),
    ],
)
def test_other_validators(archived, site, validators, if_range):
    """Without one that tells bytes apart, the file is got from its start."""
    site.validators = validators
    site.faults = [("cut", 500_000)]
    assert_arrives(archived)
    assert site.requests[1]["if_range"] == if_range
    assert (site.requests[1]["range"] is None) == (if_range is None)


@pytest.mark.parametrize("fault", ["ignore range", "wrong range", 416])
def test_a_server_that_does_not_go_on_is_asked_from_the_start(archived, site, fault):
    site.faults = [("cut", 500_000), fault]
    assert_arrives(archived)
    assert ranges(site)[1] == "bytes=500000-"
    assert ranges(site)[2:] == ([] if fault == "ignore range" else [None])


@pytest.mark.parametrize("second", ["serve", "ignore if-range"])
def test_a_file_that_changes_between_two_tries(archived, site, second):
    """The old start never gets the new end, also when the server does not look at If-Range."""
    newer = an_archive(seed=1)
    file = replace(archived.files[0], md5=hashlib.md5(newer).hexdigest(), n_bytes=len(newer))
    archived = replace(archived, files=(file,))
    site.faults = [("cut", 500_000)]
    refused(archived, waits=())
    site.contents["/set.tar.gz"], site.validators = newer, {"ETag": '"two"'}
    site.faults = [second]
    assert_arrives(archived)
    assert site.requests[1]["if_range"] == '"one"'


@pytest.mark.parametrize(
    "wrong", [bytes(SIZE), ARCHIVE[:-1], ARCHIVE + b"1", b"<html>Moved</html>", b""]
)
def test_wrong_bytes_are_removed(archived, site, wrong):
    site.contents["/set.tar.gz"] = wrong
    message = refused(archived)
    file = archived.files[0]
    for wanted in (file.url, file.md5, "try again", str(folder_of(archived))):
        assert wanted in message
    if len(wrong) <= SIZE:
        assert hashlib.md5(wrong).hexdigest() in message
    assert left(archived) == set()
    site.contents["/set.tar.gz"] = ARCHIVE
    assert_arrives(archived)


def test_a_server_that_never_stops_sending(archived, site):
    site.faults = ["endless"]
    assert "md5" in refused(archived)
    assert site.bytes_sent < 20 * SIZE
    assert_arrives(archived)


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_refusal_is_final_and_says_what_to_do(archived, site, status):
    site.faults = [status]
    message = refused(archived)
    wanted = (str(status), archived.files[0].url, str(folder_of(archived)), "tiny:FOLDER")
    for words in wanted:
        assert words in message
    assert len(site.requests) == 1
    assert_arrives(archived)


@pytest.mark.parametrize("fault", [500, 503, "hang up"])
def test_a_passing_fault_is_tried_again_a_few_times(archived, site, fault):
    site.faults = [fault] * 2
    assert_arrives(archived)
    assert len(site.requests) == 3


@pytest.mark.parametrize(("fault", "words"), [(503, "503"), ("hang up", "closed connection")])
def test_a_lasting_fault_is_given_up(archived, site, fault, words):
    site.always = fault
    message = refused(archived)
    assert words in message
    assert archived.files[0].url in message
    assert len(site.requests) == 1 + len(NO_WAITS)
    site.always = "serve"
    assert_arrives(archived)


def test_the_waits_grow(archived, site, monkeypatch):
    slept = []
    monkeypatch.setattr(download.time, "sleep", slept.append)
    site.always = "hang up"
    refused(archived, waits=download.WAITS)
    assert slept == sorted(download.WAITS)


def test_no_connection(archived):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/set.tar.gz"
        file = replace(archived.files[0], url=url)
        message = refused(replace(archived, files=(file,)), waits=download.WAITS)
    assert url in message
    assert "no connection (Failed to establish a new connection: " in message
    assert "refused" in message


def test_without_a_network_it_is_said_at_once(archived, site, monkeypatch):
    def waited(seconds):
        raise AssertionError(f"{seconds} s were waited for nothing")

    monkeypatch.setattr(download.time, "sleep", waited)
    host = replace(archived.files[0], url="http://no-such-host.invalid/set.tar.gz")
    assert "no connection (" in refused(replace(archived, files=(host,)), waits=download.WAITS)
    assert not site.requests


def test_a_server_that_goes_away_meanwhile_is_waited_for(archived, site, monkeypatch):
    site.faults = [("cut", 500_000)]
    tries = iter([None, download._NotReachedError("no connection")])
    whole = download._try_once

    def sometimes(*arguments):
        fault = next(tries, None)
        if fault is not None:
            raise fault
        return whole(*arguments)

    monkeypatch.setattr(download, "_try_once", sometimes)
    assert_arrives(archived)
    assert len(site.requests) == 2
    assert next(tries, None) is None


def test_bytes_are_taken_as_sent(plain, site):
    """Some servers call a .gz an encoding of what is in it."""
    site.validators["Content-Encoding"] = "gzip"
    assert_arrives(plain)


def interrupting(what, at=0):
    def progress(step, done, _):
        if step == what and done >= at:
            raise KeyboardInterrupt

    return progress


def test_ctrl_c_in_a_download_keeps_what_has_arrived(archived, site):
    with pytest.raises(KeyboardInterrupt):
        fetch(archived, interrupting("set.tar.gz", at=300_000))
    assert left(archived) == {"set.tar.gz.part", "set.tar.gz.part.validator"}
    assert_arrives(archived)
    assert int(ranges(site)[1].removeprefix("bytes=").removesuffix("-")) >= 300_000


def test_ctrl_c_in_the_check_keeps_what_has_arrived(archived, site, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(hashlib, "file_digest", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fetch(archived)
    assert "set.tar.gz.part" in left(archived)
    assert_arrives(archived)
    assert len(site.requests) == 1


def test_ctrl_c_before_unpacking_keeps_the_archive(archived, site):
    with pytest.raises(KeyboardInterrupt):
        fetch(archived, interrupting("unpacking set.tar.gz"))
    assert left(archived) == {"set.tar.gz"}
    assert_arrives(archived)
    assert len(site.requests) == 1


def test_a_kill_while_unpacking_leaves_nothing_that_passes_for_the_set(archived, site, monkeypatch):
    make_folder = archives._make_folder

    def die_at_the_second(archive, name, place):
        if name == "set/deep/b.bin":
            os.kill(os.getpid(), signal.SIGKILL)
        make_folder(archive, name, place)

    process = multiprocessing.get_context("fork").Process(target=fetch, args=(archived,))
    with monkeypatch.context() as patch:
        patch.setattr(archives, "_make_folder", die_at_the_second)
        process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert list(folder_of(archived).glob(".*.partial/*/set/a.bin"))  # it was in the middle
    assert_arrives(archived)
    assert len(site.requests) == 1


def test_an_archive_that_cannot_be_unpacked(site, archived):
    file = site.offer("bad.tar.gz", ARCHIVE[:-10], unpacks_to="set")
    assert "damaged or cut short" in refused(replace(archived, files=(file,)))


def test_too_little_room_is_said_before_anything_is_asked_for(archived, site, monkeypatch):
    usage = download.shutil.disk_usage("/")
    needed = SIZE + 2 * len(NOISE)
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: usage._replace(free=needed - 1))
    message = refused(archived)
    assert "GB free" in message
    assert "DCDC_DATA" in message
    assert site.requests == []
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: usage._replace(free=needed))
    assert_arrives(archived)


def test_room_is_needed_for_what_is_missing_alone(archived, site, monkeypatch):
    site.faults = [("cut", 500_000)]
    refused(archived, waits=())
    usage = download.shutil.disk_usage("/")
    needed = SIZE - 500_000 + 2 * len(NOISE)
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: usage._replace(free=needed))
    assert_arrives(archived)


def test_a_write_that_fails_keeps_what_was_written(archived, site):
    """As a full disk would: the system takes no more than 300,000 bytes in a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    try:
        message = refused(archived)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "File too large" in message
    assert "DCDC_DATA" in message
    assert_arrives(archived)
    assert ranges(site)[1] is not None


def test_a_cache_folder_that_cannot_be_made(archived, cache):
    cache.write_text("a file")
    assert "cannot keep downloads" in refused(archived)


def test_an_archive_placed_by_hand_is_checked_and_used(archived, site):
    folder = folder_of(archived)
    folder.mkdir(parents=True)
    (folder / "set.tar.gz").write_bytes(ARCHIVE[:-1])
    message = refused(archived)
    assert str(folder / "set.tar.gz") in message
    assert archived.files[0].md5 in message
    assert hashlib.md5(ARCHIVE[:-1]).hexdigest() in message
    assert (folder / "set.tar.gz").exists()
    (folder / "set.tar.gz").write_bytes(ARCHIVE)
    assert_arrives(archived)
    assert site.requests == []


def test_plain_files_placed_by_hand_are_checked_and_used(plain, site):
    folder = folder_of(plain)
    folder.mkdir(parents=True)
    (folder / "images.gz").write_bytes(NOISE[:-1])
    assert "images.gz has the md5" in refused(plain)
    (folder / "images.gz").write_bytes(NOISE)
    assert_arrives(plain)
    assert len(site.requests) == 1
    (folder / "labels.gz").write_bytes(NOISE[1:501])
    with pytest.raises(InputError, match=r"labels\.gz has the md5"):
        fetch(plain)


def test_a_whole_part_needs_no_server(archived, site):
    folder_of(archived).mkdir(parents=True)
    part = folder_of(archived) / "set.tar.gz.part"
    part.write_bytes(bytes(SIZE))
    assert "md5" in refused(archived)
    assert not part.exists()
    part.write_bytes(ARCHIVE)
    assert_arrives(archived)
    assert site.requests == []


def test_of_two_at_once_one_waits_for_the_other(archived, site):
    site.gate.clear()  # the first one's download stops in the middle
    waiting = threading.Event()
    results = []

    def progress(what, *_):
        if what.startswith("waiting"):
            waiting.set()

    threads = [
        threading.Thread(target=lambda: results.append(fetch(archived, progress))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    assert waiting.wait(10)
    site.gate.set()
    for thread in threads:
        thread.join(20)
    assert results == [folder_of(archived)] * 2
    assert left(archived) == {"set"}
    assert len(site.requests) == 1


def test_what_must_be_placed_by_hand():
    imagenet = BENCHMARKS["imagenet-10"]
    message = refused(imagenet)
    assert str(folder_of(imagenet)) in message
    assert "n02056570/*.JPEG" in message
    assert "imagenet-10:/path" in message
    for name in imagenet.by_hand_folders:
        (folder_of(imagenet) / name).mkdir(parents=True)
    assert fetch(imagenet) == folder_of(imagenet)
