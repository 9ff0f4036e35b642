"""Nested cross-validation, selection bias and leaking protocols; knows nothing of pytest or torch."""

from .compare import Bias, Comparison, compare_protocols
from .duplicates import check_data
from .kernel_ridge import KernelRidgeClassifier
from .leak import Leak, LeakVerdict
from .loo import loo_residuals, press
from .nested import NestedResult, nested_cv
from .press_search import KernelRidgePress
from .probe import probe_leaks

__all__ = [
    "Bias",
    "Comparison",
    "KernelRidgeClassifier",
    "KernelRidgePress",
    "Leak",
    "LeakVerdict",
    "NestedResult",
    "check_data",
    "compare_protocols",
    "loo_residuals",
    "nested_cv",
    "press",
    "probe_leaks",
]
