"""Exporters remark on packages that nobody needs and on torch's own code: that is left out."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_TALKERS = ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")


@contextmanager
def quiet_libraries() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in _TALKERS]
    before = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
