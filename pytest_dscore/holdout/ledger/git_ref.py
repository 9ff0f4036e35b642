"""A ledger in a git ref of its own, shared through a remote: no database, no working tree, no index.

Every record is a commit on the ref that adds one file. It counts when the remote has taken it; the remote takes it only
if nobody else was faster, in which case the ledger looks again and retries. What this clone has seen stays in the
local ref of the same name, so that a remote that lost records is noticed.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from pytest_dscore.errors import SettingsError
from pytest_dscore.holdout.ledger.backend import Backend, Entry, Listing
from pytest_dscore.holdout.ledger.faults import (
    LedgerBusy,
    LedgerDamaged,
    LedgerError,
    LedgerUnreachable,
    LostRace,
)
from pytest_dscore.holdout.ledger.files import content_of, line_in, listing_of, path_of, record_name
from pytest_dscore.holdout.ledger.git_command import Git, Said, one_line, split_records
from pytest_dscore.holdout.ledger.report import Finding
from pytest_dscore.holdout.ledger.urls import Location

_URL = re.compile(r"git:(?P<ref>refs/[^?\s]+)(?:\?remote=(?P<remote>[\w.-]+))?")
_COMMITTER = "pytest-dscore <pytest-dscore@localhost>"
_LONGEST_PAUSE = 2.0


class GitBackend(Backend):
    """Records as files in the tree of a ref.

    Parameters
    ----------
    location
        ``git:REF`` or ``git:REF?remote=NAME``; the remote ``none`` means that nobody else writes.
    root
        A directory in the repository.
    timeout
        Seconds to wait for the remote, for other processes of this clone, and for a gap between other writers.
    """

    def __init__(self, location: Location, root: Path, timeout: float) -> None:
        match = _URL.fullmatch(location.reveal())
        if match is None:
            raise SettingsError(
                f'{location} is no git ledger: write "git:refs/dscore/ledger" or "git:REF?remote=NAME", '
                "the name as `git remote` lists it"
            )
        self.where = str(location)
        self._ref = match["ref"]
        self._remote = match["remote"] or "origin"
        self._shared = self._remote != "none"
        self._timeout = timeout
        self._git = Git(root, timeout)
        self._check(root)
        tail = self._ref.removeprefix("refs/")
        self._incoming, self._outgoing = f"refs/dscore-incoming/{tail}", f"refs/dscore-outgoing/{tail}"
        folder = Path(self._git.tell("rev-parse", "--path-format=absolute", "--git-common-dir").text)
        self._lock = FileLock(folder / f"dscore-{tail.replace('/', '-')}.lock", timeout=timeout)
        self._head: str | None = None
        self._blobs: dict[str, str] = {}
        self._pending: str | None = None

    def _check(self, root: Path) -> None:
        if not root.is_dir() or (said := self._git.ask("rev-parse", "--git-dir")).code:
            reason = one_line(said.error) if root.is_dir() else "there is no such directory"
            raise SettingsError(f"{self.where} needs a git repository at {root}: {reason}")
        if self._git.ask("check-ref-format", self._ref).code:
            raise SettingsError(f"{self.where}: {self._ref} is not a name that git allows for a ref")
        if self._shared and self._git.ask("remote", "get-url", self._remote).code:
            raise SettingsError(
                f"{self.where} is shared through the git remote {self._remote!r}, which this clone does not have: add "
                "it, name another with ?remote=NAME, or write ?remote=none if nobody else writes to the ledger"
            )

    def listing(self) -> Listing:
        """Fetch and list what the remote has; what this clone has seen and the remote has lost is a finding."""
        with self._locked():
            known = self._resolve(self._ref)
            self._head = self._fetched() if self._shared else known
            files = self._files(self._head)
            listing = listing_of(files, self.where)
            self._blobs |= {name: blob for path, blob in files.items() if (name := record_name(path))}
            lost = () if known in (None, self._head) else self._lost(listing, known or "")
            if self._shared and not lost and self._head not in (None, known):
                orders = f"update {self._ref} {self._head}\ndelete {self._incoming}\n"
                self._own("update-ref", "--stdin", data=orders.encode())
        return Listing(listing.names, (*lost, *listing.findings))

    def _lost(self, listing: Listing, commit: str) -> tuple[Finding, ...]:
        names = {name for path in self._files(commit) if (name := record_name(path))}
        return tuple(
            Finding(
                "rolled back",
                name,
                self.where,
                f"record {name} is gone from {self._ref} of {self._remote}, where this clone has seen it: the ref was "
                f"forced back, edited or deleted; put it back with `git push --force {self._remote} {commit[:12]}:"
                f"{self._ref}` and bring over with `dscore holdout import` what was recorded since",
            )
            for name in sorted(names - listing.names.keys())
        )

    def read(self, names: Mapping[str, str]) -> Iterator[tuple[str, bytes | LedgerDamaged]]:
        """Read blobs, all with one command."""
        if not names:
            return
        wanted = "".join(f"{self._blobs[name]}\n" for name in names).encode()
        out = self._git.tell("cat-file", "--batch", data=wanted).out
        at = 0
        for name, path in names.items():
            end = out.index(b"\n", at)
            header = out[at:end].split()
            if len(header) != 3:
                yield name, LedgerDamaged(f"{path} has lost its content in this clone: fetch the ledger again")
                at = end + 1
                continue
            at = end + 1 + int(header[2])
            yield name, line_in(out[end + 1 : at], path)
            at += 1

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep out the processes of this clone by a lock, and all others by the remote's check of the ref."""
        with self._locked():
            self._pending = None
            yield
            if self._pending is not None:
                self._publish(self._pending)

    def append(self, entries: Sequence[Entry]) -> None:
        """Make the commit that adds the records; `exclusive` publishes it."""
        title = f"Record {len(entries)} in the hold-out ledger"
        parts = [
            f"commit {self._outgoing}\nmark :1\ncommitter {_COMMITTER} {int(time.time())} +0000\n".encode(),
            b"data %d\n%s\n" % (len(title), title.encode()),
            f"from {self._head}\n".encode() if self._head else b"",
        ]
        for entry in entries:
            content = content_of(entry)
            parts.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path_of(entry).encode(), len(content), content))
        # The ref that fast-import demands may be left from a process that was killed: it starts afresh.
        self._own("update-ref", "-d", self._outgoing)
        stream = b"".join([*parts, b"get-mark :1\n"])
        self._pending = self._own("fast-import", "--quiet", "--force", data=stream).text

    def attempts(self) -> Iterator[None]:
        """Try until the time is up, with pauses of random length, so that the others do not retry in step."""
        deadline = time.monotonic() + self._timeout
        pause = 0.05
        while True:
            yield
            if time.monotonic() > deadline:
                return
            time.sleep(random.uniform(0, pause))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def known(self, revision: str) -> frozenset[str]:
        """Names of the records at a commit of the ledger's ref."""
        commit = self._resolve(revision)
        names = frozenset(name for path in self._files(commit) if (name := record_name(path)))
        if not names:
            raise SettingsError(
                f"base = {revision!r} has no record of {self.where}: give a commit of {self._ref}, as `git log "
                f"{self._ref}` lists them"
            )
        return names

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self._lock.acquire()
        except Timeout:
            raise LedgerBusy(
                f"{self.where} was locked by another process of this clone for {self._timeout:g} s, so nothing was "
                "recorded: try again, and if nothing else is running look for a hanging run"
            ) from None
        except OSError as error:
            raise LedgerError(f"{self.where} cannot be locked: {error.strerror}: {error.filename}") from error
        try:
            yield
        finally:
            self._lock.release()

    def _resolve(self, revision: str) -> str | None:
        said = self._git.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return said.text if said.code == 0 else None

    def _files(self, commit: str | None) -> dict[str, str]:
        """Path -> blob."""
        if commit is None:
            return {}
        lines = split_records(self._git.tell("ls-tree", "-r", "-z", "--full-tree", commit).out)
        return {path: entry.split()[2] for entry, _, path in (line.partition("\t") for line in lines)}

    def _remote_head(self) -> str | None:
        said = self._git.ask("ls-remote", self._remote, self._ref)
        self._reached(said)
        lines = (line.split("\t") for line in said.text.splitlines())
        # Git also lists refs that merely end in the same way.
        return next((head for head, *ref in lines if ref == [self._ref]), None)

    def _fetched(self) -> str | None:
        head = self._remote_head()
        if head is None or self._git.ask("cat-file", "-e", f"{head}^{{tree}}").code == 0:
            return head
        self._reached(
            self._git.ask(
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                "--no-recurse-submodules",
                self._remote,
                f"+{self._ref}:{self._incoming}",
            )
        )
        return self._git.tell("rev-parse", "--verify", self._incoming).text

    def _reached(self, said: Said) -> None:
        if said.code:
            raise LedgerUnreachable(
                f"the git remote {self._remote!r} of {self.where} cannot be reached, so nothing was admitted: "
                f"{one_line(said.error)}"
            )

    def _own(self, *arguments: str, data: bytes | None = None) -> Said:
        """Change this clone's own refs; git locks each while it is written."""
        deadline = time.monotonic() + _LONGEST_PAUSE
        while (said := self._git.ask(*arguments, data=data)).code:
            # The lock may be of a git that outlives a killed run by a moment, or of one that died and left it.
            if ".lock" not in said.error or time.monotonic() > deadline:
                raise LedgerError(f"{self.where}: git {arguments[0]} failed: {one_line(said.error)}")
            time.sleep(0.05)
        return said

    def _publish(self, commit: str) -> None:
        expected = self._head or ""
        if self._shared:
            self._push(commit, expected)
            # On record from here on. To note it in this clone can wait for the next listing.
            orders = f"update {self._ref} {commit}\ndelete {self._outgoing}\n"
            self._git.ask("update-ref", "--stdin", data=orders.encode())
        else:
            # An empty old value would stand for any; zeros mean that there is none yet.
            orders = f"update {self._ref} {commit} {expected or '0' * len(commit)}\ndelete {self._outgoing}\n"
            self._own("update-ref", "--stdin", data=orders.encode())

    def _push(self, commit: str, expected: str) -> None:
        said = self._git.ask(
            "push",
            "--quiet",
            "--porcelain",
            "--no-verify",  # a pre-push hook that runs the tests would come back here
            "--no-recurse-submodules",
            f"--force-with-lease={self._ref}:{expected}",
            self._remote,
            f"{commit}:{self._ref}",
        )
        if said.code == 0:
            return
        now = self._remote_head()
        if now == commit:
            return  # it was taken, only the answer got lost
        words = one_line(f"{said.text}\n{said.error}")
        if now != (expected or None) or re.search(r"\block\b|incorrect old value|already exists", words):
            raise LostRace
        raise LedgerError(
            f"the git remote {self._remote!r} rejected the ledger {self._ref}, nothing was recorded: {words}"
        )
