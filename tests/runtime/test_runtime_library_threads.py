import subprocess
import sys

import pytest
import torch
from threadpoolctl import ThreadpoolController, threadpool_info

from dcdc.runtime.device import cpu_threads
from dcdc.runtime.library_threads import library_threads


def threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info()}


def test_libraries_take_as_many_threads_as_torch(monkeypatch):
    with cpu_threads(3), library_threads():
        assert threads() == {3}
        with cpu_threads(2), library_threads():
            assert threads() == {2}
        assert threads() == {3}

        def look(*_):
            pytest.fail("which libraries are loaded was known")

        with monkeypatch.context() as patched:
            patched.setattr(ThreadpoolController, "__init__", look)
            with library_threads():
                pass
        assert threads() == {3}
    assert torch.get_num_threads() != 3


def test_a_library_that_is_loaded_within_a_block_is_limited_too():
    """Its K-Means would have two answers for one seed."""
    code = """
import sys, torch
from threadpoolctl import threadpool_info
from dcdc.runtime.library_threads import library_threads
torch.set_num_threads(3)
with library_threads():
    assert "sklearn" not in sys.modules
    import sklearn.cluster
    with library_threads():
        print({library["num_threads"] for library in threadpool_info()})
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "{3}\n"
