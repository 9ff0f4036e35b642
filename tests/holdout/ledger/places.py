"""Where the ledgers of the tests lie: one place for each backend, with what an attacker could do to it."""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from pytest_dscore.holdout.ledger import Ledger, open_ledger


class Place(ABC):
    """A place for one ledger.

    Parameters
    ----------
    path
        An empty directory for whatever the backend needs.
    """

    #: How many uses each process records in the tests with several, and the time until the last is killed.
    uses_each = 6
    kill_after = 2.0

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def address(self, worker: int = 0) -> tuple[str, Path]:
        """The URL and root with which a worker opens the ledger; a clone of its own where the backend has clones."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Take a record away behind the ledger's back."""

    @abstractmethod
    def rewrite(self, name: str, change: Callable[[bytes], bytes]) -> None:
        """Change the stored content of a record behind the ledger's back."""

    @abstractmethod
    def wipe(self) -> None:
        """Take all records away."""

    def open(self, worker: int = 0, *, must_exist: bool = False, clock: Callable[[], str] | None = None) -> Ledger:
        """Open the ledger as a fresh process would."""
        url, root = self.address(worker)
        if clock is None:
            return open_ledger(url, root=root, must_exist=must_exist)
        return open_ledger(url, root=root, must_exist=must_exist, clock=clock)


class DirectoryPlace(Place):
    """A directory."""

    def address(self, worker: int = 0) -> tuple[str, Path]:
        return "ledger", self.path

    def file(self, name: str) -> Path:
        """The file of a record."""
        return next((self.path / "ledger").glob(f"*/*-{name}.json"))

    def remove(self, name: str) -> None:
        self.file(name).unlink()

    def rewrite(self, name: str, change: Callable[[bytes], bytes]) -> None:
        file = self.file(name)
        file.write_bytes(change(file.read_bytes()))

    def wipe(self) -> None:
        for file in (self.path / "ledger").glob("*/*.json"):
            file.unlink()


def git(*arguments: str, at: Path, check: bool = True) -> str:
    """Run git as somebody who has no settings of their own."""
    name = ["-c", "user.name=someone", "-c", "user.email=someone@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *name, *arguments], cwd=at, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise AssertionError(f"git {' '.join(arguments)}: {done.stderr}")
    return done.stdout.strip()


class GitPlace(Place):
    """A bare repository and a clone for each worker."""

    uses_each = 2
    kill_after = 4.5
    ref = "refs/dscore/ledger"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.remote = path / "remote.git"
        git("init", "--template=", "--bare", str(self.remote), at=path)

    def address(self, worker: int = 0) -> tuple[str, Path]:
        return f"git:{self.ref}", self.clone(f"clone-{worker}")

    def clone(self, name: str) -> Path:
        """A clone of the remote, made at first."""
        clone = self.path / name
        if not clone.exists():
            git("init", "--template=", str(clone), at=self.path)
            git("remote", "add", "origin", str(self.remote), at=clone)
        return clone

    def head(self) -> str:
        """The commit of the ledger on the remote."""
        return git("rev-parse", self.ref, at=self.remote)

    def remove(self, name: str) -> None:
        with self._checked_out(name) as file:
            file.unlink()

    def rewrite(self, name: str, change: Callable[[bytes], bytes]) -> None:
        with self._checked_out(name) as file:
            file.write_bytes(change(file.read_bytes()))

    @contextmanager
    def _checked_out(self, name: str) -> Iterator[Path]:
        attacker = self.clone("attacker")
        git("fetch", "origin", self.ref, at=attacker)
        git("checkout", "--detach", "FETCH_HEAD", at=attacker)
        yield next(attacker.glob(f"*/*-{name}.json"))
        git("commit", "--all", "-m", "tidy up", at=attacker)
        git("push", "origin", f"HEAD:{self.ref}", at=attacker)

    def wipe(self) -> None:
        git("update-ref", "-d", self.ref, at=self.remote)


class SqlPlace(Place):
    """A database.

    Parameters
    ----------
    path
        Where an SQLite file goes.
    url
        Another database's URL; SQLite where None.
    """

    uses_each = 6
    kill_after = 1.5

    def __init__(self, path: Path, url: str | None = None) -> None:
        super().__init__(path)
        self.url = url or "sqlite:///ledger.db"
        self.engine = sa.create_engine(url or f"sqlite:///{path}/ledger.db", poolclass=NullPool)

    def address(self, worker: int = 0) -> tuple[str, Path]:
        return self.url, self.path

    def remove(self, name: str) -> None:
        self.execute("DELETE FROM dscore_ledger_records WHERE name = :name", name=name)

    def rewrite(self, name: str, change: Callable[[bytes], bytes]) -> None:
        query = "SELECT line FROM dscore_ledger_records WHERE name = :name"
        (line,) = self.execute(query, name=name)[0]
        new = change(f"{line}\n".encode()).decode("latin-1").replace("\x00", "").removesuffix("\n")
        self.execute("UPDATE dscore_ledger_records SET line = :line WHERE name = :name", line=new, name=name)

    def wipe(self) -> None:
        self.execute("DELETE FROM dscore_ledger_records")

    def execute(self, statement: str, **values: str) -> Sequence[Any]:
        """Run SQL as the database's owner could; returns the rows of a query."""
        with self.engine.begin() as connection:
            result = connection.execute(sa.text(statement), values)
            return result.all() if result.returns_rows else []
