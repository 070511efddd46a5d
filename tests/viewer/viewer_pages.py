"""What tests do on the viewer's page, and read from it."""

import json

TITLES = """[...document.querySelectorAll('.tile:not([hidden])')]
  .sort((a, b) => a.getAttribute('aria-posinset') - b.getAttribute('aria-posinset'))
  .map((tile) => tile.title)"""


def text(tab, selector) -> str:
    return tab.run(f"document.querySelector({json.dumps(selector)})?.textContent")


def tiles(tab) -> list[str]:
    """What is in sight, in its order."""
    return tab.run(TITLES)


def wait_for_tiles(tab) -> None:
    tab.wait(
        """(() => { const all = [...document.querySelectorAll('.tile:not([hidden])')];
             return all.length && all.every((tile) => tile.title && (tile.classList.contains('bad')
               || tile.querySelector('img').naturalWidth)); })()"""
    )


def choose(tab, selector, value) -> None:
    tab.run(
        f"""(() => {{ const node = document.querySelector({json.dumps(selector)});
             node.value = {json.dumps(value)};
             node.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()"""
    )


def pick(tab, button, wanted) -> None:
    """By the list of clusters that a button opens, and by its number or name."""
    tab.click_on(button)
    tab.wait("document.getElementById('picker').open")
    tab.call("Input.insertText", text=wanted)
    tab.wait("document.querySelectorAll('.option').length === 1")
    tab.press("Enter")
    tab.wait("!document.getElementById('picker').open")


def edited(run) -> list[dict]:
    return json.loads(run.edits_file.read_text())["edits"] if run.edits_file.exists() else []
