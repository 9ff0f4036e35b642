"""The scores that later runs are compared with: ``.dscore/baseline.json`` and the hits of every example beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import filelock

from pytest_dscore.errors import DScoreError
from pytest_dscore.figure import Figure
from pytest_dscore.gates import store
from pytest_dscore.gates.store import Measured
from pytest_dscore.score.result import DScore
from pytest_dscore.settings import ModelSettings
from pytest_dscore.writing import write_whole

FILE = Path(".dscore/baseline.json")
_FORMAT, _SCHEMA = "dscore-baseline", 1
_RECORD = "record one with `pytest --dscore --dscore-update-baseline` on the code to compare with, and commit .dscore"


@dataclass(frozen=True)
class Baseline:
    """One model's score as recorded.

    Parameters
    ----------
    measured
        Its hits and fingerprints.
    commit
        Git commit it was recorded at, None where there was none.
    recorded
        UTC time, for people.
    figures
        Values at that time.
    """

    measured: Measured
    commit: str | None
    recorded: str
    figures: Mapping[str, float]


class Baselines:
    """Reads and writes the baselines of a project.

    Parameters
    ----------
    root
        Where pyproject.toml lies.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._path = root / FILE

    def find(self, model: str, settings: ModelSettings, measured: Measured, versions: Mapping[str, str]) -> Baseline:
        """The baseline that `measured` may be compared with.

        Raises
        ------
        DScoreError
            There is none, it cannot be read, or it was made of other data or with other settings.
        """
        entries = self._read().get(model, [])
        if not entries:
            raise DScoreError(f"there is no baseline of model '{model}' in {FILE}: {_RECORD}")
        wanted = _conditions(settings, measured, versions)
        differences = [_differences(entry["conditions"], wanted) for entry in entries]
        least = min(range(len(entries)), key=lambda i: len(differences[i]))
        if differences[least]:
            raise DScoreError(_made_otherwise(model, differences[least]))
        return self._load(model, entries[least], measured)

    def standing(self, model: str, settings: ModelSettings, versions: Mapping[str, str]) -> Baseline:
        """The baseline that settings alone lead to, without a score: whether the data are the same is not known.

        Raises
        ------
        DScoreError
            There is none, it cannot be read, or it was made with other settings.
        """
        entries = self._read().get(model, [])
        if not entries:
            raise DScoreError(f"there is no baseline of model '{model}' in {FILE}: {_RECORD}")
        wanted = _known_conditions(settings, versions)
        kept = [{key: entry["conditions"].get(key) for key in wanted} for entry in entries]
        differences = [_differences(then, wanted) for then in kept]
        least = min(range(len(entries)), key=lambda i: len(differences[i]))
        if differences[least]:
            raise DScoreError(_made_otherwise(model, differences[least]))
        return self._load(model, entries[least])

    def _load(self, model: str, entry: Mapping[str, Any], measured: Measured | None = None) -> Baseline:
        path = self._path.parent / entry["hits"]
        kept = store.load(path)
        of_entry = kept is not None and (kept.model_fingerprint, kept.data_fingerprint) == (
            entry["model_fingerprint"],
            entry["conditions"].get("data"),
        )
        alike = kept is not None and (measured is None or kept.hits.hits.shape == measured.hits.hits.shape)
        if kept is None or not of_entry or not alike:
            state = "is damaged, or of another model," if path.exists() else "is missing"
            raise DScoreError(
                f"{path.relative_to(self._root)}, the hits of the baseline of model '{model}', {state}: restore it, or "
                f"{_RECORD}"
            )
        return Baseline(kept, entry["commit"], entry["recorded"], entry["figures"])

    def record(
        self,
        model: str,
        settings: ModelSettings,
        result: DScore,
        measured: Measured,
        versions: Mapping[str, str],
        commit: str | None,
    ) -> None:
        """Put a score in place of the one recorded under the same settings; other entries stay.

        Raises
        ------
        DScoreError
            What is there cannot be read, so that writing would lose it; or nothing can be written.
        """
        conditions = _conditions(settings, measured, versions)
        entry: dict[str, Any] = {
            "conditions": conditions,
            "model_fingerprint": measured.model_fingerprint,
            "commit": commit,
            "recorded": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "versions": dict(versions),
            "figures": {name: getattr(result, name).value for name in ("score", "v_robust", "v_fitness", "accuracy")},
            "hits": f"baseline/{model}-{_key(conditions)}.npz",
        }
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with filelock.FileLock(self._path.with_name(".baseline.lock"), timeout=60):
                models = self._read()
                store.save(self._path.parent / entry["hits"], measured)
                others = [old for old in models.get(model, []) if old["hits"] != entry["hits"]]
                models[model] = sorted([*others, entry], key=lambda one: str(one["hits"]))
                content = {"format": _FORMAT, "schema": _SCHEMA, "models": dict(sorted(models.items()))}
                write_whole(self._path, f"{json.dumps(content, indent=2, sort_keys=True)}\n".encode())
        except (OSError, filelock.Timeout) as error:
            raise DScoreError(f"the baseline cannot be written to {FILE}: {error}") from error

    def _read(self) -> dict[str, list[dict[str, Any]]]:
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise DScoreError(f"{FILE} cannot be read: {error}") from error
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DScoreError(f"{FILE} is cut short or no JSON ({error}): restore it from version control") from None
        if not isinstance(found, dict) or found.get("format") != _FORMAT:
            raise DScoreError(f"{FILE} is no baseline of pytest-dscore: move it away, or restore it")
        if found.get("schema") != _SCHEMA:
            raise DScoreError(
                f"{FILE} has schema {found.get('schema')!r}, this pytest-dscore knows {_SCHEMA}: upgrade it here"
            )
        return _checked(found.get("models"))


def _checked(models: Any) -> dict[str, list[dict[str, Any]]]:
    keys: dict[str, Any] = {
        "conditions": dict,
        "commit": (str, type(None)),
        "recorded": str,
        "model_fingerprint": str,
        "figures": dict,
        "hits": str,
    }
    whole = isinstance(models, dict) and all(
        isinstance(entries, list)
        and all(isinstance(e, dict) and all(isinstance(e.get(k), kind) for k, kind in keys.items()) for e in entries)
        for entries in models.values()
    )
    names = [Path(entry["hits"]) for entries in models.values() for entry in entries] if whole else []
    if not whole or any(".." in name.parts or name.is_absolute() for name in names):
        raise DScoreError(f"{FILE} was edited, its entries are not as they were written: restore it")
    return dict(models)


def _conditions(settings: ModelSettings, measured: Measured, versions: Mapping[str, str]) -> dict[str, Any]:
    """What must be the same for two scores to be compared example by example."""
    return {
        "data": measured.data_fingerprint,
        "examples": int(measured.hits.hits.shape[1]),
        "classes": measured.hits.classes,
        "n": settings.n,
        "operator": settings.operator,
        "form": settings.form,
        "pad": list(measured.padding),
        "fill": list(measured.fill),
        "bf16": settings.bf16,
        "seed": settings.seed,
        "interpolation": versions["interpolation"],
    }


def _known_conditions(settings: ModelSettings, versions: Mapping[str, str]) -> dict[str, Any]:
    """Those of `_conditions` that are known without the data."""
    known = {key: getattr(settings, key) for key in ("n", "operator", "form", "bf16", "seed")}
    if settings.pad is not None:
        known["pad"] = settings.pad if isinstance(settings.pad, list) else [settings.pad] * 2
    return known | {"interpolation": versions["interpolation"]}


def _made_otherwise(model: str, differences: list[str]) -> str:
    return (
        f"the baseline of model '{model}' was made otherwise, so no drop can be judged: {'; '.join(differences)}; "
        f"put them back, or {_RECORD}"
    )


def _differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    lines = []
    for name in {**then, **now}:
        old, new = then.get(name), now.get(name)
        if old != new:
            said = "the data are others" if name == "data" else f"{name} was {old} and is {new}"
            lines.append(said)
    return lines


def _key(conditions: Mapping[str, Any]) -> str:
    """Settings that a project may use side by side get files of their own; new data replace the old."""
    side_by_side = {name: conditions[name] for name in ("n", "operator", "form", "pad", "fill", "bf16", "seed")}
    return hashlib.sha256(json.dumps(side_by_side, sort_keys=True).encode()).hexdigest()[:12]


def drop_of(change: Figure) -> Figure:
    """A change as a drop: what got worse, whichever way the figure points."""
    if not change.larger_is_better:
        return change
    # Subtracted from 0, as a drop of nothing must not be shown as -0.000.
    value, lower, upper = (0.0 - end for end in (change.value, change.upper, change.lower))
    return Figure(value, lower, upper, False, change.confidence)
