"""Evaluation by index: episodes played once each, and what may be said of them."""

from corral.evaluation.comparison import Comparison, compare
from corral.evaluation.evaluate import evaluate
from corral.evaluation.result import Evaluation
from corral.evaluation.statistics import Interval

__all__ = ["Comparison", "Evaluation", "Interval", "compare", "evaluate"]
