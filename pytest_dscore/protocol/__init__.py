"""Nested cross-validation, selection bias and leaking protocols; knows nothing of pytest.

What needs torch or YAML is loaded on first use, so that scikit-learn users import neither.
"""

from typing import TYPE_CHECKING, Any

from .compare import Bias, Comparison, compare_protocols
from .duplicates import check_data
from .kernel_ridge import KernelRidgeClassifier
from .leak import Leak, LeakVerdict
from .loo import loo_residuals, press
from .nested import NestedResult, nested_cv
from .press_search import KernelRidgePress
from .probe import probe_leaks

if TYPE_CHECKING:
    from .manifest import Manifest, load_manifest, make_manifest, write_manifest
    from .torch_guard import DatasetGuard, GuardError

_HOMES = {
    "DatasetGuard": "torch_guard",
    "GuardError": "torch_guard",
    "Manifest": "manifest",
    "load_manifest": "manifest",
    "make_manifest": "manifest",
    "write_manifest": "manifest",
}

__all__ = [
    "Bias",
    "Comparison",
    "DatasetGuard",
    "GuardError",
    "KernelRidgeClassifier",
    "KernelRidgePress",
    "Leak",
    "LeakVerdict",
    "Manifest",
    "NestedResult",
    "check_data",
    "compare_protocols",
    "load_manifest",
    "loo_residuals",
    "make_manifest",
    "nested_cv",
    "press",
    "probe_leaks",
    "write_manifest",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
