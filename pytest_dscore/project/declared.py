"""Where everything that [tool.dscore] declares stands: models, hold-outs and protocols."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.names import OPERATOR_NAMES
from pytest_dscore.project.checks import Check
from pytest_dscore.project.pyproject import document, table
from pytest_dscore.project.users_code import resolves
from pytest_dscore.settings import HoldoutSettings, ModelSettings, ProtocolSettings, Settings, load_settings

if TYPE_CHECKING:
    from pytest_dscore.holdout.commands.status import Found
    from pytest_dscore.holdout.ledger import Ledger

SETTINGS = "settings"
#: What a model's line always names, besides its thresholds and whatever else is not at its default.
_ALWAYS = ("n", "operator", "device")
_UNUSED = "begun, no model is on record yet"
_SAME_DATA = "whether the data are the same is for the gate to say"


def settings_of(root: Path) -> tuple[Settings | None, list[Check]]:
    """Read [tool.dscore]; also return what to say of it."""
    try:
        own = table(document(root), "tool", "dscore")
        if not own:
            fix = "`dscore init` writes one to begin with"
            return None, [Check(SETTINGS, "missing", f"{root / 'pyproject.toml'} has no [tool.dscore]", fix)]
        others = sorted(set(_operators(own)) - set(OPERATOR_NAMES))
        found = load_settings(root, (*OPERATOR_NAMES, *others))
    except SettingsError as error:
        return None, [Check(SETTINGS, "wrong", str(error))]
    counts = [
        f"{len(names)} {kind}{'' if len(names) == 1 else 's'}"
        for kind, names in (("model", found.models), ("hold-out", found.holdouts), ("protocol", found.protocols))
    ]
    checks = [Check(SETTINGS, "ok", f"[tool.dscore] declares {', '.join(counts)}")]
    if not (found.models or found.holdouts or found.protocols):
        checks = [Check(SETTINGS, "missing", "[tool.dscore] declares nothing", "add [tool.dscore.models.NAME]")]
    checks += [
        Check(SETTINGS, "ok", f"operator '{name}' is not built in: a pytest_dscore_operators hook must add it")
        for name in others
    ]
    return found, checks


def _operators(own: dict[str, Any]) -> Iterator[str]:
    models = own.get("models")
    for one in (own, *(models.values() if isinstance(models, dict) else ())):
        name = one.get("operator") if isinstance(one, dict) else None
        if isinstance(name, str):
            yield name


# Models


def model(name: str, settings: ModelSettings, root: Path) -> Iterator[Check]:
    """Check one model: its settings, references, weights, device and baseline."""
    area = f"model {name}"
    yield Check(area, "ok", _effective(settings, ("factory", "weights", "data"), _ALWAYS))
    yield resolves(area, "factory", settings.factory, root)
    yield resolves(area, "data", settings.data, root)
    yield from _weights(area, settings, root)
    yield from _device(area, settings)
    if settings.max_drop is not None:
        yield _baseline(area, name, settings, root)


def _effective(settings: Any, without: tuple[str, ...], always: tuple[str, ...] = ()) -> str:
    """Return the settings that hold: those that are not at their defaults, and some that are always of interest."""
    fields = type(settings).model_fields
    shown = {
        key: getattr(settings, key)
        for key, field in fields.items()
        if key not in without and (key in always or getattr(settings, key) != field.default)
    }
    return ", ".join(f"{key} = {value}" for key, value in shown.items()) or "all settings at their defaults"


def _weights(area: str, settings: ModelSettings, root: Path) -> Iterator[Check]:
    if settings.weights is None:
        yield Check(area, "ok", "no weights are named; the factory must load them")
    elif not (root / settings.weights).is_file():
        fix = "check the path, which is relative to pyproject.toml; git-lfs files must be fetched"
        yield Check(area, "missing", f"weights {settings.weights}", fix)
    elif _is_lfs_pointer(root / settings.weights):
        yield Check(area, "missing", f"weights {settings.weights} are a git-lfs pointer, not the file", "git lfs pull")
    else:
        size = (root / settings.weights).stat().st_size
        yield Check(area, "ok", f"weights {settings.weights}, {size:,} bytes; whether they fit is for the gate to say")


def _is_lfs_pointer(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(40).startswith(b"version https://git-lfs.github.com/")
    except OSError:
        return False


def _device(area: str, settings: ModelSettings) -> Iterator[Check]:
    if settings.device == "auto":
        return
    from torch import nn

    from pytest_dscore.score.guard import choose_device

    try:
        choose_device(settings.device, nn.Module())
    except DScoreError as error:
        yield Check(area, "wrong", str(error))


def _baseline(area: str, name: str, settings: ModelSettings, root: Path) -> Check:
    from pytest_dscore.gates.baseline import Baselines
    from pytest_dscore.gates.scoring import versions

    baselines = Baselines(root)
    try:
        found = baselines.standing(name, settings, versions())
    except DScoreError as error:
        return Check(area, "missing" if str(error).startswith("there is no baseline") else "wrong", str(error))
    commit = f", commit {found.commit[:12]}" if found.commit else ""
    return Check(area, "ok", f"baseline of {found.recorded}{commit}; {_SAME_DATA}")


# Hold-outs


def holdout(name: str, settings: HoldoutSettings, root: Path) -> Iterator[Check]:
    """Check one hold-out: its settings, data, ledger and budget."""
    from pytest_dscore.holdout.ledger.urls import Location

    area, place = f"hold-out {name}", Location(settings.ledger)
    told = _effective(settings, ("data", "ledger"), ("delta", "bound", "mode"))
    yield Check(area, "ok", f"{told}, ledger = {place}")
    yield resolves(area, "data", settings.data, root)
    try:
        yield from _ledger(area, name, settings, root)
    except DScoreError as error:
        yield Check(area, "wrong", place.redact(str(error)))


def _ledger(area: str, name: str, settings: HoldoutSettings, root: Path) -> Iterator[Check]:
    from pytest_dscore.holdout.ledger import open_ledger
    from pytest_dscore.holdout.provenance import in_a_directory, in_ci

    url = settings.ledger
    if url.startswith("git:") and shutil.which("git") is None:
        yield Check(area, "missing", "git, in which the ledger is kept", "install git")
        return
    if in_ci() and in_a_directory(url):
        fix = 'ledger = "git:refs/dscore/ledger" or a database, unless the job commits the directory'
        yield Check(area, "wrong", "in CI a ledger in a directory is lost with the runner", fix)
    ledger = open_ledger(url, root=root, timeout=10)
    if not ledger.begun:
        fix = f"where it was begun before, restore it; else `dscore holdout begin {name}`"
        yield Check(area, "missing", f"{ledger.where} holds no record", fix)
        return
    found = ledger.verify()
    for finding in found.findings[:5]:
        yield Check(area, "wrong", str(finding), "`dscore holdout verify` lists all")
    if found.ok:
        yield Check(area, "ok", f"{found.where}: {found.records:,} on record, nothing is missing or changed")
        yield from _budget(area, name, settings, root, ledger)


def _budget(area: str, name: str, settings: HoldoutSettings, root: Path, ledger: Ledger) -> Iterator[Check]:
    from pytest_dscore.holdout.commands import status
    from pytest_dscore.holdout.commands._ledgers import Project
    from pytest_dscore.holdout.planning import CouplingWarning
    from pytest_dscore.holdout.terms import Terms

    # This one alone: the ledger of another may be out of reach.
    project = Project(root, {name: Terms.of(name, settings)}, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CouplingWarning)  # `dscore holdout status` explains it
        found = [status.quick(project, one) for one in status.find(project, [name])]
        if not any(one.name == name for one in ledger.holdouts()):
            fix = f"`dscore holdout begin {name}`, unless its data are on record under another name"
            yield Check(area, "missing", "it is not on record in its ledger", fix)
        elif not found:
            yield Check(area, "ok", _UNUSED)
        for one in found:
            # The data are not loaded here, so of several under one name nobody knows which they are.
            which = f" (as {one.identity.digest[:12]})" if len(found) > 1 else ""
            yield _on_record(area + which, name, one)


def _on_record(area: str, name: str, found: Found) -> Check:
    from pytest_dscore.holdout.wording import sentence

    if found.retired is not None:
        return Check(area, "wrong", f"it was retired: {found.retired.why}", "collect new examples")
    if not found.budget.uses:
        return Check(area, "ok", _UNUSED)
    said = sentence(found.budget, name)
    if not found.budget.holds:
        return Check(area, "wrong", f"overspent: {said}", "collect new examples, or declare a larger epsilon")
    if found.spent:
        return Check(area, "wrong", f"spent, the next model is refused: {said}", "collect new examples")
    return Check(area, "ok", said)


# Protocols


def protocol(name: str, settings: ProtocolSettings, root: Path) -> Iterator[Check]:
    """Check one protocol: its settings, references and manifest."""
    area = f"protocol {name}"
    yield Check(
        area, "ok", _effective(settings, ("experiment", "estimator", "data", "manifest"), ("interval", "probe"))
    )
    if settings.estimator is not None:
        yield resolves(area, "estimator", settings.estimator, root)
    if settings.experiment is not None:
        yield resolves(area, "experiment", settings.experiment, root, called=False)
    yield resolves(area, "data", settings.data, root)
    for key in ("splits", "param_grid"):
        reference = getattr(settings, key)
        if isinstance(reference, str):
            yield resolves(area, key, reference, root, called=False)
    if settings.manifest is not None:
        yield _manifest(area, name, settings.manifest, root)


def _manifest(area: str, name: str, path: str, root: Path) -> Check:
    from pytest_dscore.protocol.manifest import load_manifest

    if not (root / path).exists():
        return Check(area, "missing", f"manifest {path}", f"`dscore protocol manifest {name}`, and commit it")
    try:
        load_manifest(root / path)
    except DScoreError as error:
        return Check(area, "wrong", str(error))
    return Check(area, "ok", f"manifest {path}; {_SAME_DATA}")
