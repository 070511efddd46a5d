import torch

from dcdc.runtime.version import own_version, version_of


def test_an_installed_package_has_a_version():
    assert version_of("torch") == torch.__version__
    assert own_version() == version_of("dcdc") != "unknown"


def test_what_was_never_installed_has_none():
    assert version_of("dcdc-that-nobody-installed") == "unknown"
