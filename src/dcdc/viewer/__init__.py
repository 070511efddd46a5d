"""A run on a page of this machine alone: every image, its original, and what is known of it."""

from dcdc.viewer.answers import Answers
from dcdc.viewer.opening import open_run
from dcdc.viewer.refinement import Refining
from dcdc.viewer.server import ViewServer
from dcdc.viewer.viewed_run import ViewedRun

__all__ = ["Answers", "Refining", "ViewServer", "ViewedRun", "open_run"]
