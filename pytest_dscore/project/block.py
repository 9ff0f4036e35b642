"""The [tool.dscore] that a project begins with: the likeliest candidates active, the others as comments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pytest_dscore.project.candidates import Candidate
from pytest_dscore.project.looking import Findings
from pytest_dscore.project.words import DATA, HOLDOUT, MAKING, MODEL, plain_name

#: By this a block that is all comments is recognised.
MARK = "# Written by `dscore init`"
_MOST_OTHERS = 8
_HEAD = f"""\
{MARK}, which read the sources and ran none of them.
# What it could not know is marked PLACEHOLDER: put your own figures there.
"""
_SCORES = """\
[tool.dscore]
n = 3                # a grid of 3 x 3 regions
min_score = 0.5      # PLACEHOLDER: run `pytest --dscore` once, then set what you need
# min_accuracy = 0.9   # PLACEHOLDER: what the model must reach on its test data
# max_drop = 0.02      # PLACEHOLDER: against .dscore/baseline.json, once it is recorded
# fill = [-2.118, -2.036, -1.804]   # black, where images are normalised as ImageNet's
"""
_HOLDOUT = """\
# How often the test set may still be used; uncomment, then run `dscore holdout begin`.
# [tool.dscore.holdouts.{name}]
# data = {data}
# epsilon = 0.05       # PLACEHOLDER: every accuracy holds within +-5 %
"""
_UNKNOWN = {"factory": "MODULE:FUNCTION", "weights": "FILE.safetensors", "data": "MODULE:FUNCTION"}


def block(found: Findings) -> str:
    """Return the text of the block; it is all comments where no model with data and no estimator with data is there."""
    parts = [_HEAD, _scores(found), _holdout(found)]
    if found.estimators or found.model is None:
        parts.append(_protocol(found))
    return "\n".join(parts)


def active_model(found: Findings) -> str | None:
    """Return the name of the model whose table is active; None where it is all comments."""
    return model_name(found) if found.model is not None and found.holdout is not None else None


def active_protocol(found: Findings) -> str | None:
    """Return the name of the protocol whose table is active."""
    if not found.estimators or found.tabular is None or (found.model and found.tabular == found.holdout):
        return None
    return _protocol_name(found)


def model_name(found: Findings) -> str:
    """Return what the model is called: by its own name, or else by its module's."""
    if found.model is None:
        return "mine"
    module, _, own = found.model.reference.partition(":")
    file = module.rpartition(".")[2]
    return plain_name(own, MAKING | MODEL) or plain_name(file, MODEL) or plain_name(file) or "model"


def holdout_name(found: Findings) -> str:
    """Return what the hold-out is called."""
    return f"{model_name(found)}-test"


def text(value: str) -> str:
    """Return a TOML string."""
    # JSON's escapes are TOML's, but for DEL, which JSON leaves alone.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _scores(found: Findings) -> str:
    lines = [*_SCORES.splitlines(), "", f"[tool.dscore.models.{model_name(found)}]"]
    lines += _key("factory", [one.reference for one in found.models], found.models)
    lines += _weights(found)
    ordered = sorted(found.data, key=lambda one: one is not found.holdout)
    lines += _key("data", [one.reference for one in ordered], ordered, usable=found.holdout is not None)
    return _commented(lines) if active_model(found) is None else "\n".join(lines) + "\n"


def _key(key: str, values: Sequence[str], found: Sequence[Candidate], usable: bool = True) -> Iterator[str]:
    """Yield a key with the first value, and the others as comments."""
    if not values or not usable:
        yield f'{key} = "{_UNKNOWN[key]}"   # PLACEHOLDER'
    for number, (value, one) in enumerate(zip(values, found, strict=True)):
        if number > _MOST_OTHERS:
            yield f"# ... and {len(values) - number} more"
            break
        mark = "# " if number or not usable else ""
        yield f"{mark}{key} = {text(value)}   # {_said(one.place)}: {one.what}"


def _weights(found: Findings) -> Iterator[str]:
    if not found.fitting:
        yield f'# weights = "{_UNKNOWN["weights"]}"   # where the factory does not load them itself'
    for number, one in enumerate(found.weights[:_MOST_OTHERS]):
        yield f"{'# ' if number or not found.fitting else ''}weights = {text(one.path)}"


def _holdout(found: Findings) -> str:
    data = found.holdout.reference if found.holdout is not None else _UNKNOWN["data"]
    return _HOLDOUT.format(name=holdout_name(found), data=text(data))


def _protocol_name(found: Findings) -> str:
    if not found.estimators:
        return "my-protocol"
    module, _, own = found.estimators[0].reference.partition(":")
    said = plain_name(own, MAKING | MODEL | DATA | HOLDOUT)
    name = said or plain_name(module.rpartition(".")[2], MODEL) or "estimate"
    return f"{name}-cv"


def _protocol(found: Findings) -> str:
    estimators, tabular = found.estimators, found.tabular
    data = text(tabular.reference if tabular is not None else _UNKNOWN["data"])
    lines = [
        "# The error of a scikit-learn estimator by nested cross-validation, probed for leaks.",
        f"[tool.dscore.protocols.{_protocol_name(found)}]",
        *(
            f"{'# ' if number else ''}estimator = {text(one.reference)}   # {_said(one.place)}"
            for number, one in enumerate(estimators[:_MOST_OTHERS])
        ),
        *([] if estimators else ['estimator = "MODULE:FUNCTION"   # PLACEHOLDER']),
        f"data = {data}",
        "max_error = 0.5      # PLACEHOLDER: the share of errors that is still good",
    ]
    return _commented(lines) if active_protocol(found) is None else "\n".join(lines) + "\n"


def _said(place: str) -> str:
    """A path in a comment: a control character in it would end the comment, or the file's being TOML."""
    return "".join(c if c.isprintable() else "?" for c in place)


def _commented(lines: Sequence[str]) -> str:
    """Put a mark before each line, also before those that have one: taking one off each gives the block."""
    return "\n".join(f"# {line}" if line else "" for line in lines) + "\n"
