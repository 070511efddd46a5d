import pytest

from devtools import Tab


@pytest.fixture
def open_page(browser):
    """Opens a page from disk; every one must have kept quiet by the end of its test."""
    tabs = []

    def open_it(file, **screen) -> Tab:
        tab = Tab(browser, **screen)
        tabs.append(tab)
        return tab.open(file)

    yield open_it
    quarrels = [tab.complaints for tab in tabs if not getattr(tab, "may_complain", False)]
    requests = [tab.requests for tab in tabs]
    dialogs = [tab.events("Page.javascriptDialogOpening") for tab in tabs]
    for tab in tabs:
        tab.close()
    assert not any(quarrels), quarrels
    assert not any(dialogs), dialogs
    # The page itself, and a file that it handed over to be saved.
    assert all(url.startswith(("file:", "blob:")) for urls in requests for url in urls), requests
    assert all(sum(url.startswith("file:") for url in urls) == 1 for urls in requests), requests
