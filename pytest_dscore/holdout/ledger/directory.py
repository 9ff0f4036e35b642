"""A ledger in a directory: one small file per record, written once and never changed.

Two branches that both record add files of different names, so git merges them without a conflict.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from pytest_dscore.errors import SettingsError
from pytest_dscore.holdout.ledger.backend import Backend, Entry, Listing
from pytest_dscore.holdout.ledger.faults import LedgerBusy, LedgerDamaged, LedgerError
from pytest_dscore.holdout.ledger.files import content_of, line_in, listing_of, path_of, record_name

# The lock and half-written files are this machine's own; line ends are part of a record's digest.
_OWN_FILES = {".gitignore": ".lock\n.new-*\n", ".gitattributes": "* -text\n"}
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class DirectoryBackend(Backend):
    """Records as files below a directory.

    Parameters
    ----------
    path
        The directory; made with the first record.
    timeout
        Seconds to wait for another process that is recording.
    """

    def __init__(self, path: Path, timeout: float) -> None:
        if path.exists() and not path.is_dir():
            raise SettingsError(f"the ledger {path} is a file; give a directory")
        self._path = path
        self._timeout = timeout
        self.where = str(path)

    def listing(self) -> Listing:
        """List the files."""
        try:
            return listing_of(_files_below(self._path, ""), self.where)
        except FileNotFoundError:
            return Listing()
        except OSError as error:
            raise LedgerError(
                f"the ledger {self.where} cannot be listed: {error.strerror}: {error.filename}"
            ) from error

    def read(self, names: Mapping[str, str]) -> Iterator[tuple[str, bytes | LedgerDamaged]]:
        """Read files of a listing."""
        for name, path in names.items():
            try:
                with open(path, "rb", buffering=0) as file:
                    content: bytes | LedgerDamaged = line_in(file.read(), path)
            except OSError as error:
                reason = f"{path} cannot be read: {error.strerror}; mend its permissions or restore it"
                content = LedgerDamaged(reason)
            yield name, content

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the ledger's lock; the system frees it when its holder dies."""
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._path / ".lock", timeout=self._timeout)
            lock.acquire()
        except Timeout:
            raise LedgerBusy(
                f"the ledger {self.where} was locked by another process for {self._timeout:g} s, so nothing was "
                "recorded: try again, and if nothing else is running look for a hanging run"
            ) from None
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            yield
        finally:
            lock.release()

    def append(self, entries: Sequence[Entry]) -> None:
        """Write one file each; on return they are on the disk."""
        try:
            self._own_files()
            for entry in entries:
                self._write(self._path / path_of(entry), content_of(entry))
        except OSError as error:
            raise self._unwritable(error) from error

    def known(self, revision: str) -> frozenset[str]:
        """Names of the records in the directory at a git revision."""
        start = next((p for p in (self._path, *self._path.parents) if p.is_dir()), Path("/"))
        purpose = f"base = {revision!r} of {self.where}"
        top = Path(_git(purpose, start, "rev-parse", "--show-toplevel").strip()).resolve()
        commit = _git(purpose, start, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}").strip()
        inside = self._path.resolve().relative_to(top).as_posix()
        tree = _git(purpose, start, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit, "--", inside)
        below = (path.removeprefix(f"{inside}/") for path in tree.split("\0"))
        return frozenset(name for name in map(record_name, below) if name)

    def _own_files(self) -> None:
        for left in self._path.glob(".new-*"):
            # Only the holder of the lock writes, so this is of one that was killed.
            left.unlink()
        for name, content in _OWN_FILES.items():
            path = self._path / name
            if not path.exists():
                self._write(path, content.encode())

    def _write(self, path: Path, content: bytes) -> None:
        """Make a file appear with all its content or not at all, and only if there is none."""
        folder_is_new = not path.parent.exists()
        path.parent.mkdir(exist_ok=True)
        new = self._path / f".new-{os.getpid()}"
        try:
            with open(new, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(new, path)
            except OSError as error:
                if error.errno not in _NO_LINKS or path.exists():
                    raise
                os.rename(new, path)  # no hard links here; the lock keeps others from the same name
        finally:
            with suppress(OSError):
                new.unlink()
        _sync_folder(path.parent)
        if folder_is_new:
            _sync_folder(self._path)

    def _unwritable(self, error: OSError) -> LedgerError:
        reasons = {
            errno.ENOSPC: "the disk is full: make room",
            errno.EDQUOT: "the disk quota is used up: make room",
            errno.EROFS: "the file system is read-only: mount it writable or choose another place",
            errno.EACCES: "permission is denied: make the directory writable",
        }
        reason = reasons.get(error.errno or 0, f"{error.strerror or error}")
        return LedgerError(f"the ledger {self.where} cannot be written, {reason}; nothing was admitted")


def _files_below(folder: Path, prefix: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files_below(Path(entry.path), f"{prefix}{entry.name}/")
            else:
                yield prefix + entry.name


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # directories cannot be opened there; NTFS journals its names
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _git(purpose: str, folder: Path, *command: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *command], capture_output=True, check=True)
    except OSError:
        raise LedgerError(f"{purpose} needs git, which is not installed") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise SettingsError(f"{purpose} cannot be looked up: {said}; give a revision that this clone has") from None
    return done.stdout.decode(errors="surrogateescape")
