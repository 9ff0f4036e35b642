"""A password is printed nowhere."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

import pytest

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.holdout.ledger import open_ledger, redact
from pytest_dscore.holdout.ledger.urls import Location
from tests.holdout.ledger.examples import holdout, use

SECRET = "hunter2!x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"postgresql+psycopg://anna:{SECRET}@db/ledger", "postgresql+psycopg://anna:***@db/ledger"),
        (f"cannot open postgresql://anna:{SECRET}@db: no", "cannot open postgresql://anna:***@db: no"),
        (f"postgresql://anna:{SECRET}@{SECRET}/{SECRET}@db/x", "postgresql://anna:***@db/x"),
        (f"postgresql://:{SECRET}@db/x", "postgresql://:***@db/x"),
        (f"https://{SECRET}@github.com/a/b.git", "https://***@github.com/a/b.git"),
        (f"https://anna:{SECRET}@github.com/a/b.git", "https://anna:***@github.com/a/b.git"),
        (f"postgresql://db/x?user=anna&password={SECRET}&a=b", "postgresql://db/x?user=anna&password=***&a=b"),
        ("ssh://git@github.com/a/b", "ssh://git@github.com/a/b"),
        ("sqlite:///a.db", "sqlite:///a.db"),
        ("git:refs/dscore/ledger", "git:refs/dscore/ledger"),
        ("C:\\ledger", "C:\\ledger"),
    ],
)
def test_urls_are_shown_without_their_password(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_a_driver_s_own_words_are_redacted_too() -> None:
    location = Location("postgresql://anna:s%40cret@db/x")
    assert location.redact('role "s@cret" or s%40cret or secretary') == 'role "***" or *** or secretary'
    assert "cret" not in repr(location)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql+psycopg://anna:{SECRET}@127.0.0.1:1/ledger",
        f"postgresql://127.0.0.1:1/ledger?user=anna&password={SECRET}",
        f"mysql://anna:{SECRET}@db/ledger",
        f"nonsense+driver://anna:{SECRET}@db/ledger",
        f"postgresql://anna:{SECRET}@db:port/ledger",
        f"git:refs/x?remote=https://anna:{SECRET}@github.com/a/b",
    ],
)
def test_no_error_shows_the_password(tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    data = holdout()
    with pytest.raises(DScoreError) as caught:
        open_ledger(url, root=tmp_path, timeout=1).record(use(0, data), data)
    # With the values of local variables, as pytest --showlocals prints them; the first frame is this test's own.
    error = caught.value
    frames = traceback.TracebackException(type(error), error, error.__traceback__, capture_locals=True, compact=True)
    frames.stack = traceback.StackSummary.from_list(list(frames.stack)[1:])
    assert SECRET not in "".join(frames.format())
    assert SECRET not in str(error)
    assert SECRET not in caplog.text


@pytest.mark.parametrize("password", ["with a blank", "a/b", "a@b", "a\nb", "postgres", "x"])
def test_odd_passwords_are_hidden_whole(password: str) -> None:
    location = Location(f"postgresql://postgres:{password}@db/ledger")
    assert str(location) == "postgresql://postgres:***@db/ledger"
    assert location.redact(f"no user <{password}>") == "no user <***>"


def test_a_repr_does_not_show_the_password(tmp_path: Path) -> None:
    ledger = open_ledger(f"postgresql+psycopg://anna:{SECRET}@127.0.0.1:1/ledger", root=tmp_path)
    assert repr(ledger) == "Ledger('postgresql+psycopg://anna:***@127.0.0.1:1/ledger')"
    assert SECRET not in str(vars(ledger))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "the ledger's URL is empty"),
        ("mysql://db/x", "a ledger cannot be kept in mysql"),
        ("sqlite://", "keeps the ledger in memory, where it would be lost"),
        ("sqlite:///:memory:", "keeps the ledger in memory"),
        ("postgresql://db:port/x", "is not a database URL"),
        ("git:ledger", 'is no git ledger: write "git:refs/dscore/ledger"'),
        ("git:", 'is no git ledger: write "git:refs/dscore/ledger"'),
    ],
)
def test_urls_that_cannot_be_used(tmp_path: Path, url: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        open_ledger(url, root=tmp_path)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql+psycopg://bob:p@s3cr3tpw@127.0.0.1:1/db", "an @ within the password must be written as %40"),
        ("postgresql+psycopg:/bob:s3cr3tpw@127.0.0.1/db", "two slashes are needed"),
        ("sqlite://bob:s3cr3tpw@h/x.db", "SQLite has neither user nor password"),
        ("ledger\0", "holds a NUL character"),
    ],
)
def test_a_url_that_would_be_misread_is_refused_unseen(tmp_path: Path, url: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says) as refused:
        open_ledger(url, root=tmp_path)
    assert "s3cr3tpw" not in str(refused.value)
    assert not list(tmp_path.iterdir())
