"""A trained model as one file that runs without dcdc: uint8 images in, clusters out."""

FORMATS = {"onnx": ".onnx", "torch": ".pt2"}
"""By the name on a command line: how the file's name ends."""
