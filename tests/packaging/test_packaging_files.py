"""What containers and workflows name is there; neither docker nor a workflow runs here."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _instructions(text: str) -> list[list[str]]:
    joined = re.sub(r"\\\n\s*", "", text)
    return [line.split() for line in joined.splitlines() if line and not line.startswith("#")]


def _stages() -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    for words in _instructions(DOCKERFILE):
        if words[0] == "FROM":
            found[words[3]] = [*found.get(words[1], [])]
        elif found:
            [*found.values()][-1].append(words)
    return found


def test_a_container_is_built_of_files_that_are_there_and_let_in():
    ignored = (ROOT / ".dockerignore").read_text().split()
    let_in = [line[1:] for line in ignored if line.startswith("!")]
    copied = [
        name
        for words in _instructions(DOCKERFILE)
        if words[0] == "COPY" and not words[1].startswith("--from")
        for name in words[1:-1]
    ]
    assert ignored[0] == "*"
    assert sorted(copied) == sorted(let_in)
    assert all((ROOT / name).exists() for name in copied)
    for needed in ("pyproject.toml", PROJECT["readme"], *PROJECT["license-files"]):
        assert needed in copied


def test_every_variant_runs_dcdc_as_a_plain_user():
    for variant in ("cpu", "cuda"):
        words = _stages()[variant]
        assert [each[1:] for each in words if each[0] == "USER"] == [["1000"]]
        assert [each[1:] for each in words if each[0] == "ENTRYPOINT"] == [['["dcdc"]']]
        (source,) = (each[1] for each in words if each[0] == "COPY")
        installed = _stages()[source.removeprefix("--from=")]
        installs = [" ".join(each) for each in installed if "install" in each]
        assert installs[-1].endswith('-c constraints.txt ".[$EXTRAS]"')


def test_versions_and_extras_are_those_of_the_project():
    arguments = dict(re.findall(r"^ARG (\w+)=(\S+)$", DOCKERFILE, re.MULTILINE))
    named = arguments["EXTRAS"].split(",")
    pythons = [arguments["PYTHON"]]
    for workflow in WORKFLOWS:
        text = workflow.read_text()
        pythons += re.findall(r'python-version: "([\d.]+)"', text)
        for given in re.findall(r"\.\[([\w,]+)\]", text):
            named += given.split(",")
    assert set(named) <= set(PROJECT["optional-dependencies"])
    least = tuple(map(int, PROJECT["requires-python"].removeprefix(">=").split(".")))
    assert len(pythons) > 2
    assert all(tuple(map(int, python.split("."))) >= least for python in pythons)


def test_the_workflows_run_what_is_here():
    yaml = pytest.importorskip("yaml")
    jobs = {
        name: job
        for workflow in WORKFLOWS
        for name, job in yaml.safe_load(workflow.read_text())["jobs"].items()
    }
    lines = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert ".ci/run" in lines
    assert os.access(ROOT / ".ci/run", os.X_OK)
    verbs = set(re.findall(r"\bdcdc (\w+)", "\n".join(lines)))
    assert verbs <= {"fit", "predict"}
    assert {"macos-latest", "windows-latest"} == set(jobs["others"]["strategy"]["matrix"]["os"])
    for target in re.findall(r"--target (\w+)", "\n".join(lines)):
        assert target in _stages()


def test_the_notes_of_a_release_are_its_section_of_the_changelog(tmp_path):
    yaml = pytest.importorskip("yaml")
    (release,) = (path for path in WORKFLOWS if path.stem == "release")
    steps = yaml.safe_load(release.read_text())["jobs"]["release"]["steps"]
    (notes,) = (step["run"] for step in steps if step.get("name") == "notes")
    (tmp_path / "CHANGELOG.md").write_text((ROOT / "CHANGELOG.md").read_text())
    version = PROJECT["version"].partition(".dev")[0]
    environment = os.environ | {"GITHUB_REF_NAME": f"v{version}"}
    subprocess.run(["bash", "-ec", notes], cwd=tmp_path, env=environment, check=True)
    written = (tmp_path / "notes.md").read_text()
    assert "### Added" in written
    assert not re.search("^## ", written, re.MULTILINE)
    environment["GITHUB_REF_NAME"] = "v99.0"
    done = subprocess.run(["bash", "-ec", notes], cwd=tmp_path, env=environment, check=False)
    assert done.returncode


def test_no_server_is_named():
    files = [ROOT / "Dockerfile", *(ROOT / ".github").rglob("*.yml"), *(ROOT / ".ci").iterdir()]
    assert len(files) > 5
    for file in files:
        assert "://" not in file.read_text(), file


def test_what_windows_leaves_out_is_there():
    text = (ROOT / "tests/conftest.py").read_text()
    left_out = re.search(r"_NOT_ON_WINDOWS = \((.*?)\n\)", text, re.DOTALL)[1]
    names = re.findall(r'"([^"]+)"', left_out)
    assert len(names) > 5
    missing = [name for name in names if not (ROOT / "tests" / name).exists()]
    assert not missing
