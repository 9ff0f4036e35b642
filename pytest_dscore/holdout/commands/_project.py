"""Where the project lies, and what it says about its hold-outs."""

from __future__ import annotations

from pathlib import Path

from pytest_dscore.errors import SettingsError
from pytest_dscore.holdout.terms import Terms
from pytest_dscore.settings.holdouts import holdout_settings
from pytest_dscore.settings.reading import read_table


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


def load_holdouts(root: Path) -> dict[str, Terms]:
    """Return the terms of the hold-outs that ``root / "pyproject.toml"`` declares; none without such a file or table.

    Raises
    ------
    SettingsError
        The file cannot be read, or a value cannot be used.
    """
    declared = holdout_settings(read_table(root, required=False).get("holdouts"))
    return {name: Terms.of(name, one) for name, one in declared.items()}
