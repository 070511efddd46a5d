"""The site builds without a warning, fetches nothing from elsewhere, and is searched from disk.

`make check` runs this; what builds the site comes with the extra `docs`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material", reason="pip install 'dcdc[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    return folder


FETCHED = r'<(?!a\b)\w+[^>]*(?:src|href)="(?:https?:)?//[^"]*"'


def test_no_page_fetches_anything_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        assert not re.findall(FETCHED, page.read_text()), page


def test_the_commands_and_the_api_are_there(site):
    commands, api = ((site / f"{name}.html").read_text() for name in ("commands", "api"))
    assert 'id="dcdc-fit"' in commands
    assert "--copy-to" in commands
    assert 'id="dcdc.DCDC.fit"' in api
    assert "how many to find" in api


def test_flowcharts_are_boxes_in_rows(site):
    page = (site / "architecture.html").read_text()
    boxes = [re.findall("<b>(.*?)</b>", chart) for chart in page.split('class="flowchart"')[1:]]
    assert boxes[0][0] == "cli/fit.py: fit"
    assert boxes[1][:2] == ["cli | estimator", "experiments | viewer"]
    assert "mermaid" not in page


def test_search_works_from_disk(site, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests/report/browser")
    from devtools import Browser, Tab, find_chromium

    if (program := find_chromium()) is None:
        pytest.skip("no Chromium found: install it, or name one by DCDC_CHROMIUM")
    browser = Browser(program, tmp_path)
    try:
        tab = Tab(browser).open(site / "index.html")
        tab.run("document.querySelector('.md-search__input').focus()")
        tab.wait("document.querySelector('.md-search-result__meta').innerText.startsWith('Type')")
        tab.call("Input.insertText", text="out-of-distribution")
        tab.press("End")  # search listens to keys
        tab.wait("document.querySelector('.md-search-result__item a[href*=predict]') !== null")
        assert not tab.complaints
        assert all(url.startswith("file:") for url in tab.requests)
    finally:
        browser.close()
