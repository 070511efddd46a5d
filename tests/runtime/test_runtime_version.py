import torch

from dcdc.runtime.version import own_version, version_of


def test_an_installed_package_has_a_version():
    built, _, _ = torch.__version__.partition("+")  # the rest is not in every package's metadata
    assert version_of("torch").partition("+")[0] == built
    assert own_version() == version_of("dcdc") != "unknown"


def test_what_was_never_installed_has_none():
    assert version_of("dcdc-that-nobody-installed") == "unknown"
