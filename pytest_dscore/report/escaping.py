"""Text of strangers made harmless for Markdown on GitHub, and for GitHub's workflow commands."""

from __future__ import annotations

import re
import unicodedata

#: What ends the effect of a character that starts a mention, an issue link, a link or an emoji, and is not seen.
_GAP = "&#8203;"
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"}
_BACKSLASHED = frozenset("\\`*_{}[]|~")
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def one_line(text: str, most: int = 0) -> str:
    """Return text on one line without control and formatting characters, such as those that turn its direction.

    Parameters
    ----------
    text
        Anything.
    most
        Characters to keep at most; 0 for all.
    """
    flat = "".join(_shown(c) for c in " ".join(text.split()))
    return flat if not most or len(flat) <= most else f"{flat[: most - 3]}..."


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape").decode("ascii")


def markdown(text: str, most: int = 0) -> str:
    """Return text that Markdown shows as it is, in tables too: no markup, HTML, mention, link, formula or emoji."""
    escaped = "".join(_ENTITIES.get(c, f"\\{c}" if c in _BACKSLASHED else c) for c in one_line(text, most))
    escaped = re.sub(r"(?<!&)([@#])", rf"\1{_GAP}", escaped)
    escaped = re.sub(r"\bGH-(?=\d)", f"GH{_GAP}-", escaped, flags=re.IGNORECASE)
    escaped = re.sub(r"(?i)\b(https?|ftp|mailto|xmpp):", rf"\1:{_GAP}", escaped)
    escaped = re.sub(r"(?i)\bwww\.", f"www{_GAP}.", escaped)
    return re.sub(r":(?=[\w+\\-]+:)", f":{_GAP}", escaped)


def command_data(text: str) -> str:
    """Return the message of a workflow command, in which a line break would end the command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def command_property(text: str) -> str:
    """Return the value of a workflow command's property."""
    return command_data(text).replace(":", "%3A").replace(",", "%2C")
