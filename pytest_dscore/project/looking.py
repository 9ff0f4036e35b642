"""What there is in a project that could be gated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_dscore.project import candidates
from pytest_dscore.project.candidates import Candidate
from pytest_dscore.project.kinds import Known
from pytest_dscore.project.sources import read_modules
from pytest_dscore.project.walking import files_below
from pytest_dscore.project.weights import Weights, read_weights


@dataclass(frozen=True)
class Findings:
    """Candidates, the likeliest first.

    Parameters
    ----------
    models, data, estimators
        What settings can refer to.
    weights
        Files, the likeliest for the first model first.
    fitting
        How many of them may belong to it.
    sources
        How many Python files were read.
    src_layout
        Whether modules are imported from ``src``.
    remarks
        Sentences on what was left out.
    """

    models: tuple[Candidate, ...]
    data: tuple[Candidate, ...]
    estimators: tuple[Candidate, ...]
    weights: tuple[Weights, ...]
    fitting: int
    sources: int
    src_layout: bool
    remarks: tuple[str, ...]

    @property
    def model(self) -> Candidate | None:
        """The likeliest model."""
        return self.models[0] if self.models else None

    @property
    def holdout(self) -> Candidate | None:
        """The likeliest data to judge on; never what seems to be training data."""
        return next((one for one in self.data if one.usable), None)

    @property
    def tabular(self) -> Candidate | None:
        """The likeliest data for an estimator: a pair that is not the hold-out."""
        pairs = (one for one in self.data if one.usable and one.what.startswith("returns a pair"))
        return next((one for one in sorted(pairs, key=lambda one: "held out" in one.what)), None)


def look(root: Path) -> Findings:
    """Read a project's sources and the headers of its weights; nothing is imported, run or changed."""
    files = files_below(root)
    src_layout = (root / "src").is_dir() and not (root / "src/__init__.py").exists()
    modules, problems = read_modules(root, files.sources, src_layout)
    known = Known.of(modules)
    models = candidates.models(known)
    weights = read_weights(root, files.weights)
    fitting = 0
    if models:
        weights.sort(key=lambda one: -one.rank(models[0]))
        fitting = sum(one.rank(models[0]) >= 0 for one in weights)
    advice = [
        f"{one.reference} ({one.place}) {one.what}, and a gate takes a Dataset or a pair: write a function that "
        "returns its dataset"
        for one in candidates.loaders(known)
    ]
    return Findings(
        models=tuple(models),
        data=tuple(candidates.data(known)),
        estimators=tuple(candidates.estimators(known)),
        weights=tuple(weights),
        fitting=fitting,
        sources=len(modules),
        src_layout=src_layout and any(module.path.startswith("src/") for module in modules),
        remarks=(*files.remarks, *problems, *advice),
    )
