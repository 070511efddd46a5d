"""The methods of the paper's table, a control, those for feature vectors, and added ones.

A method is a function `cluster(image_set, n_clusters, seed, context, *, ...settings)`. The type of
`image_set` says what it takes: `ImageSet`, `VectorSet`, or `Data`, which is both. It never looks at
`image_set.targets`. Its settings are keyword-only arguments, each with a type and a
default; `dcdc compare --set NAME.KEY=VALUE` reads them from the signature.
"""

from dcdc.methods.context import Clustering, Context
from dcdc.methods.registry import METHODS, Method, find_method, register_method

__all__ = ["METHODS", "Clustering", "Context", "Method", "find_method", "register_method"]
