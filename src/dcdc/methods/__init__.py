"""The methods of the paper's table and a control: a file with a function `cluster`, a line here."""

from dataclasses import dataclass
from importlib import import_module
from typing import cast

from dcdc.errors import InputError
from dcdc.methods.method import Clustering, Method
from dcdc.nearest_name import nearest

__all__ = ["METHODS", "Clustering", "Entry", "Method", "find_method"]


@dataclass(frozen=True)
class Entry:
    title: str
    """In a table."""
    module: str
    """Its file in this folder, imported when it is asked for."""

    def load(self) -> Method:
        return cast(Method, import_module(f"dcdc.methods.{self.module}").cluster)


METHODS = {
    "k-means": Entry("K-Means", "k_means"),
    "sc": Entry("SC", "sc"),
    "ac": Entry("AC", "ac"),
    "nmf": Entry("NMF", "nmf"),
    "untrained": Entry("Untrained", "untrained"),
    "ae": Entry("AE", "ae"),
    "dae": Entry("DAE", "dae"),
    "dcgan": Entry("DCGAN", "dcgan"),
    "decnn": Entry("DeCNN", "decnn"),
    "vae": Entry("VAE", "vae"),
    "dec": Entry("DEC", "dec"),
    "iic": Entry("IIC", "iic"),
    "pica": Entry("PICA", "pica"),
    "dcdc": Entry("DCDC", "dcdc"),
}


def find_method(name: str) -> Entry:
    if name not in METHODS:
        raise InputError(f"unknown method {name!r}{nearest(name, METHODS)}")
    return METHODS[name]
