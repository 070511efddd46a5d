"""Where the kernels' tests run: in Triton's interpreter, and on the device where there is one."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
import torch
from norm_examples import interpret_kernels


@pytest.fixture(scope="session")
def interpreter():
    """A process of its own: Triton settles on its import whether it interprets kernels.

    It alone is told, or this one's kernels would not be compiled for a device's tests.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        with ProcessPoolExecutor(
            1, mp_context=get_context("spawn"), initializer=interpret_kernels
        ) as pool:
            yield lambda function, *arguments: pool.submit(function, *arguments).result()


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return request.param


@pytest.fixture
def call(device, request):
    """Calls a function with arguments where it can run kernels on the device's tensors."""
    if device == "cuda":
        return lambda function, *arguments: function(*arguments)
    return request.getfixturevalue("interpreter")
