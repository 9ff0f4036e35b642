"""What Cawley and Talbot (2010) print for kernel ridge regression on the sets at hand."""

from __future__ import annotations

from dataclasses import dataclass

#: Realisations behind Knowls 5 and 7.
PAPER_SPLITS = 100
#: A mean and its standard error.
Pair = tuple[float, float]


@dataclass(frozen=True)
class Printed:
    """The paper's figures for one set.

    Parameters
    ----------
    sizes
        Rows of the training and the test part of a realisation.
    rbf_error, ard_error
        Test error over 100 realisations, in per cent (Knowl 5).
    rbf_press, ard_press
        PRESS as printed: half the sum of squares (Knowl 5).
    median_bias
        Internal minus median protocol, in percentage points (Knowl 7).
    cv_external, cv_internal, external_bias
        Ten-fold cross-validation: both errors in per cent, their difference in points (Knowl 9).
    """

    sizes: tuple[int, int]
    rbf_error: Pair
    rbf_press: Pair
    ard_error: Pair
    ard_press: Pair
    median_bias: Pair
    cv_external: Pair
    cv_internal: Pair
    external_bias: Pair


# Rows: sizes; then mean and standard error of each figure in the order of the fields.
_FIGURES = """
banana 400 4900 10.610 0.051 60.808 0.636 10.638 0.052 60.957 0.624 0.226 0.034 10.355 0.146 10.495 0.158 0.140 0.035
breast_cancer 200 77 26.727 0.466 70.632 0.328 28.766 0.391 66.789 0.385 0.351 0.195 26.280 0.232 27.470 0.250 1.190 0.135
diabetis 468 300 23.293 0.169 146.143 0.452 24.520 0.215 141.465 0.606 0.143 0.074 22.891 0.127 23.056 0.134 0.165 0.050
heart 170 100 16.730 0.359 42.576 0.356 22.810 0.411 37.023 0.494 1.010 0.186 16.335 0.214 16.571 0.220 0.235 0.073
thyroid 140 75 4.747 0.235 9.099 0.152 4.693 0.202 6.816 0.164 0.187 0.100 3.743 0.137 4.279 0.152 0.536 0.073
titanic 150 2051 22.483 0.085 48.332 0.622 22.562 0.109 47.801 0.623 0.076 0.077 22.167 0.434 22.487 0.442 0.320 0.077
twonorm 400 7000 2.846 0.021 32.539 0.279 4.292 0.086 35.620 0.490 -0.022 0.014 2.480 0.067 2.502 0.070 0.022 0.021
"""  # noqa: E501


def _printed(cells: list[str]) -> Printed:
    rows, tests, *rest = cells
    figures = [float(cell) for cell in rest]
    a, b, c, d, e, f, g, h = zip(figures[::2], figures[1::2], strict=True)
    return Printed((int(rows), int(tests)), a, b, c, d, e, f, g, h)


PAPER = {name: _printed(cells) for name, *cells in (line.split() for line in _FIGURES.split("\n") if line)}
