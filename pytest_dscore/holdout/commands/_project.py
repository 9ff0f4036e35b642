"""What the project says about its hold-outs: ``[tool.dscore.holdouts.NAME]`` of pyproject.toml."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pytest_dscore.errors import SettingsError
from pytest_dscore.holdout.checks import FEEDBACKS, MODES, Feedback, Mode, choice, count, open_unit

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LEDGER = ".dscore/ledger"
#: The bounds that a ledger of outcomes can be judged by.
BOUNDS = ("best", "union", "similarity", "naive-bayes", "theorem-2", "empirical", "bootstrap")


@dataclass(frozen=True)
class Declared:
    """One hold-out as the project declares it; all but the name as in `analyse`.

    Parameters
    ----------
    epsilon
        None where the project does not say, as for a hold-out that is on record only.
    known
        Whether the project declares it.
    ledger
        URL; it may hold a password, so it is never in a repr.
    """

    name: str
    epsilon: float | None = None
    delta: float = 0.05
    bound: str = "best"
    mode: Mode = "non-adaptive"
    feedback: Feedback = "exact"
    data: str | None = None
    max_uses: int | None = None
    warn_at: float | None = None
    known: bool = False
    ledger: str = field(default=LEDGER, repr=False)

    @property
    def scores_shown(self) -> bool:
        """Whether every exact score was shown when it was recorded, so that showing it again tells nothing new."""
        return self.known and (self.mode == "non-adaptive" or self.feedback == "exact")


def find_root(given: str | None) -> Path:
    """Return the project's root: as given, or the nearest directory above with a pyproject.toml, or the present one.

    Raises
    ------
    SettingsError
        The directory given does not exist.
    """
    if given is not None:
        if not Path(given).is_dir():
            raise SettingsError(f"--root {given} is not a directory")
        return Path(given)
    above = (place for place in Path.cwd().parents if (place / "pyproject.toml").is_file())
    here = Path()  # relative, so that a ledger's place is shown as the project writes it
    return here if (here / "pyproject.toml").is_file() else next(above, here)


def load_holdouts(root: Path) -> dict[str, Declared]:
    """Read the hold-outs that ``root / "pyproject.toml"`` declares; none where there is no such file or table.

    Raises
    ------
    SettingsError
        The file cannot be read, or a value cannot be used.
    """
    path = root / "pyproject.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
    table: Any = document
    for key in ("tool", "dscore", "holdouts"):
        table = table.get(key, {}) if isinstance(table, Mapping) else {}
    if not isinstance(table, Mapping):
        raise SettingsError(f"{path}: [tool.dscore.holdouts] must hold a table for each hold-out")
    return {name: _declared(name, own) for name, own in table.items()}


def _declared(name: str, own: Any) -> Declared:
    where = f"[tool.dscore.holdouts.{name}]"
    if not isinstance(own, Mapping):
        raise SettingsError(f"{where} must be a table with epsilon, data and ledger")
    for key in ("ledger", "data"):
        if key in own and not isinstance(own[key], str):
            raise SettingsError(f"{where} {key} must be text in quotes")
    try:
        return Declared(
            name=name,
            epsilon=float(open_unit(own["epsilon"], "epsilon")) if "epsilon" in own else None,
            delta=float(open_unit(own.get("delta", 0.05), "delta")),
            bound=choice(own.get("bound", "best"), "bound", BOUNDS),
            mode=cast("Mode", choice(own.get("mode", "non-adaptive"), "mode", MODES)),
            feedback=cast("Feedback", choice(own.get("feedback", "exact"), "feedback", FEEDBACKS)),
            data=own.get("data"),
            max_uses=count(own["max_uses"], "max_uses") if "max_uses" in own else None,
            warn_at=float(open_unit(own["warn_at"], "warn_at")) if "warn_at" in own else None,
            known=True,
            ledger=own.get("ledger", LEDGER),
        )
    except SettingsError as error:
        raise SettingsError(f"{where} {error}") from None
