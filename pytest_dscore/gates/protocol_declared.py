"""The gates of a declared protocol: each computes what it needs once, and judges it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_dscore.errors import DScoreError
from pytest_dscore.gates.protocol_judge import bias_verdict, error_verdict, leak_verdict, manifest_verdict
from pytest_dscore.protocol import Comparison
from pytest_dscore.protocol.manifest import Manifest, load_manifest
from pytest_dscore.settings import ProtocolSettings
from pytest_dscore.verdict import Verdict

if TYPE_CHECKING:
    from pytest_dscore.gates.protocols import ProtocolGates


def verdict_on(gates: ProtocolGates, name: str, gate: str) -> Verdict:
    """Judge one gate.

    Raises
    ------
    DScoreError
        Something that the protocol refers to cannot be used.
    """
    if gate == "manifest":
        return _on_manifest(gates, name)
    settings, loaded = gates.settings.protocols[name], gates.loaded(name)
    jobs, tolerated = gates.jobs(settings.n_jobs), settings.inconclusive == "pass"
    if gate == "leaks":
        with gates.bar("leaks of")(name) as progress:
            return leak_verdict(name, gates.once(name, gate, lambda: loaded.probe(progress)))
    if gate == "max_bias":
        assert settings.max_bias is not None
        return bias_verdict(name, _compared(gates, name), settings.max_bias, tolerated=tolerated)
    with gates.bar("error of")(name) as progress:
        result = gates.once(name, gate, lambda: loaded.estimate(jobs, progress))
    return error_verdict(name, result, settings.interval, settings.max_error, tolerated=tolerated)


def _compared(gates: ProtocolGates, name: str) -> Comparison:
    loaded, jobs = gates.loaded(name), gates.jobs(gates.settings.protocols[name].n_jobs)
    with gates.bar("bias of")(name) as progress:
        return gates.once(name, "compared", lambda: loaded.compare(jobs, progress))


def _on_manifest(gates: ProtocolGates, name: str) -> Verdict:
    settings = gates.settings.protocols[name]
    assert settings.manifest is not None
    path = gates.settings.root / settings.manifest
    if not path.exists():
        raise DScoreError(
            f"its manifest {settings.manifest} does not exist: write it with `dscore protocol manifest {name}`, and "
            "commit it"
        )
    declared = load_manifest(path)
    loaded = gates.loaded(name)
    found = loaded.experiment
    data = gates.once(name, "moved", lambda: declared.check(found.X, found.y, loaded.folds(), found.groups))
    moved = (*_settings_moved(declared, name, settings), *data)
    shortcut = declared.selection in ("external", "median") and not moved
    leaks = declared.leaks(_compared(gates, name) if shortcut and loaded.selects else None)
    return manifest_verdict(name, settings.manifest, moved, leaks)


def _settings_moved(declared: Manifest, name: str, settings: ProtocolSettings) -> list[str]:
    """Settings that are not those of the manifest."""
    now = declared_fields(name, settings)
    return [
        f"the {key} ({getattr(declared, key)} in the manifest, {value} now)"
        for key, value in now.items()
        if getattr(declared, key) != value
    ]


def declared_fields(name: str, settings: ProtocolSettings) -> dict[str, str | int]:
    """What a manifest says of the settings of a protocol."""
    return {
        "name": name,
        "experiment": settings.experiment or settings.estimator or "",
        "data": settings.data,
        "seed": settings.seed,
        "scoring": settings.scoring,
    }
