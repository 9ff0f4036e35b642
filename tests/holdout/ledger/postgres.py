"""A PostgreSQL server of one's own, from Debian's packages, for as long as the tests run."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

PASSWORD = "s3cret-of-the-tests"


def binaries() -> Path | None:
    """The newest server's programs; None where none is installed."""
    found = sorted(
        (path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")),
        key=lambda path: float(path.parent.name) if path.parent.name.replace(".", "").isdigit() else 0.0,
    )
    if found:
        return found[-1]
    initdb = shutil.which("initdb")
    return Path(initdb).resolve().parent if initdb else None


class Server:
    """A cluster in a directory of its own, on a free port of this machine.

    Parameters
    ----------
    programs
        Where initdb and pg_ctl are.
    """

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._home = Path(tempfile.mkdtemp(prefix="dscore-postgres-"))
        if os.geteuid() == 0:  # the server refuses to run as root
            user = pwd.getpwnam("postgres")
            os.chown(self._home, user.pw_uid, user.pw_gid)
        (password := self._home / "password").write_text(PASSWORD)
        password.chmod(0o644)
        self._run("initdb", "-A", "scram-sha-256", "-U", "tester", "-E", "UTF8", "--no-sync", f"--pwfile={password}")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.start()

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self._home / "data"), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        with (self._home / "output").open("ab") as output:  # a pipe would stay open as long as the server runs
            done = subprocess.run(command, stdout=output, stderr=output, cwd=self._home, check=False)
        if done.returncode:
            raise RuntimeError(f"{program} failed: {(self._home / 'output').read_text(errors='replace')}")

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = (
            f"-p {self.port} -h 127.0.0.1 -k {self._home} -c max_connections=40 -c shared_buffers=16MB -c fsync=off"
        )
        self._run("pg_ctl", "start", "-w", "-l", str(self._home / "log"), "-o", options)

    def stop(self, mode: str = "fast") -> None:
        """Stop it in the middle of whatever it does."""
        self._run("pg_ctl", "stop", "-w", "-m", mode)

    def remove(self) -> None:
        """Stop it for good."""
        self.stop("immediate")
        shutil.rmtree(self._home)

    def url(self, database: str = "postgres", password: str = PASSWORD) -> str:
        """SQLAlchemy URL of a database."""
        return f"postgresql+psycopg://tester:{password}@127.0.0.1:{self.port}/{database}"
