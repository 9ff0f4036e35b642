"""Where a ledger lies, said without passwords."""

from __future__ import annotations

import re
from urllib.parse import unquote

HIDDEN = "***"

# Greedy up to the last @: an unescaped @ or / in a password must not show its tail. Rather hide too much.
_USERINFO = re.compile(r"(?P<head>[A-Za-z][\w+.-]*://[^\s:/@]*:)\S*@")
# The same in a text that is a URL and nothing else, whose password may then have blanks.
_WHOLE = re.compile(r"(?P<head>[A-Za-z][\w+.-]*://[^:/@]*:)(?P<password>.*)@", re.DOTALL)
# git hosts take a token in place of the user.
_TOKEN = re.compile(r"(?P<head>https?://)[^\s:/@]+@", re.IGNORECASE)
_PARAMETER = re.compile(r"(?P<key>\b(?:password|passwd|pwd|passfile|sslpassword|token|secret)\s*=\s*)[^\s&;'\"]+", re.I)


def redact(text: str, *secrets: str) -> str:
    """Return `text` with the password of every URL in it replaced by ``***``.

    Parameters
    ----------
    text
        A URL, or any message that may quote one.
    *secrets
        Words to hide wherever they stand, such as the password of a URL whose driver might quote it alone.
    """
    for secret in sorted((s for s in secrets if s), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, text)
    for pattern in (_TOKEN, _USERINFO):
        text = pattern.sub(lambda m: f"{m['head']}{HIDDEN}@", text)
    return _PARAMETER.sub(lambda m: m["key"] + HIDDEN, text)


class Location:
    """A URL that shows its password neither in its text nor in its repr.

    Parameters
    ----------
    url
        As the user wrote it.
    """

    __slots__ = ("_url",)

    def __init__(self, url: str) -> None:
        self._url = url

    def reveal(self) -> str:
        """Return the URL with its password, for a driver."""
        return self._url

    def secrets(self) -> tuple[str, ...]:
        """Return the words that must never be printed."""
        found = _WHOLE.match(self._url)
        words = [found["password"]] if found else []
        words += [m[0].removeprefix(m["key"]) for m in _PARAMETER.finditer(self._url)]
        return tuple({form for word in words for form in (word, unquote(word)) if form})

    def redact(self, text: str) -> str:
        """Hide this URL's secrets, and those of any other URL, in a message."""
        return redact(text, *self.secrets())

    def __str__(self) -> str:
        return redact(_WHOLE.sub(lambda m: f"{m['head']}{HIDDEN}@", self._url))

    def __repr__(self) -> str:
        return f"Location({str(self)!r})"
