"""JUnit files made by hand: small ones whose every number a reader can check, and nasty ones."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from PIL import Image

THRESHOLD_LINE = "pyproject.toml:4"


@dataclass
class Case:
    """A test case to write.

    Parameters
    ----------
    name, classname
        Of the test.
    properties
        Without the leading ``dscore.``.
    failure
        Text of the failure; its first line is the message.
    kind
        ``failure``, ``error`` or ``skipped``.
    attributes
        Further attributes of the element, such as xunit1's ``file`` and ``line``.
    """

    name: str = "dscore[digits-min_score]"
    classname: str = "pyproject.toml"
    properties: Mapping[str, Any] = field(default_factory=dict)
    failure: str = ""
    kind: str = "failure"
    attributes: Mapping[str, str] = field(default_factory=dict)

    def xml(self) -> str:
        """The element."""
        entries = "".join(
            f"<property name={quoteattr('dscore.' + name)} value={quoteattr(_text(value))}/>"
            for name, value in self.properties.items()
        )
        more = "".join(f" {name}={quoteattr(value)}" for name, value in self.attributes.items())
        message = quoteattr(self.failure.partition("\n")[0])
        result = f"<{self.kind} message={message}>{escape(self.failure)}</{self.kind}>" if self.failure else ""
        head = f"<testcase classname={quoteattr(self.classname)} name={quoteattr(self.name)}{more}>"
        return f"{head}<properties>{entries}</properties>{result}</testcase>"


def document(
    cases: Iterable[Case], suite: str = "pytest", hostname: str = "vm", timestamp: str = "2026-11-30T10:00:00"
) -> str:
    """A JUnit file with one suite."""
    head = f"<testsuite name={quoteattr(suite)} hostname={quoteattr(hostname)} timestamp={quoteattr(timestamp)}>"
    body = "".join(case.xml() for case in cases)
    return f'<?xml version="1.0" encoding="utf-8"?><testsuites>{head}{body}</testsuite></testsuites>'


def write(path: Path, cases: Iterable[Case], **suite: str) -> Path:
    """Write a JUnit file with one suite."""
    path.write_text(document(cases, **suite), encoding="utf-8")
    return path


def model(name: str = "digits", score: float = 0.8, n: int = 2, **changes: Any) -> dict[str, Any]:
    """The properties of a scored model with a grid of 2 x 2, weakest lower right; None leaves one out."""
    a = [[0.75] * n for _ in range(n)]
    a[-1][-1] = 0.25
    shares = [[round(1 / n**2, 6)] * n for _ in range(n)]
    found = {
        **{"model": name, "threshold.min_score": 0.5, "verdict.min_score": "pass"},
        **figure("score", score),
        **figure("v_robust", 0.5),
        **figure("v_fitness", 0.875),
        **figure("accuracy", 0.9),
        **figure("v_robust_relative", 0.5625),
        **{"n": n, "operator": "delete", "form": "mean", "pad": [14, 14], "fill": [0.0], "bf16": "false"},
        **{"examples": 1200, "classes": 10, "bootstrap": 1000, "confidence": 0.95, "seed": 0, "g": 3.532},
        **{"helpful_regions": [], "remarks": [], "holdout_charges": [], "versions": {"torch": "2.14.1"}},
        **{"model_fingerprint": "a1" * 32, "data_fingerprint": "b2" * 32},
        **{
            "f": a,
            "f_lower": a,
            "f_upper": a,
            "f_tilde": shares,
            "a": a,
            "a_lower": a,
            "a_upper": a,
            "a_tilde": shares,
        },
        **changes,
    }
    return {key: value for key, value in found.items() if value is not None}


def figure(name: str, value: float, half: float = 0.0625) -> dict[str, float]:
    """A figure with an interval of so much on each side."""
    return {name: value, f"{name}.lower": value - half, f"{name}.upper": value + half}


def failing(**changes: Any) -> Case:
    """A gate that failed."""
    reason = "D-Score 0.400 [0.338, 0.463] < 0.500 for model 'digits' (n=2): accuracy falls most lower right"
    text = f"{reason}\nfigures with 95 % intervals:\n  D-Score 0.400\n{THRESHOLD_LINE}"
    properties = model(score=0.4) | {"verdict.min_score": "fail"} | changes
    return Case(properties=properties, failure=text)


def holdout(name: str = "digits-test", used: int = 3, share: float = 0.25, **changes: Any) -> dict[str, Any]:
    """The properties of a hold-out with a part of its budget used."""
    return {
        **{"holdout": name, "holdout.threshold.budget": 0.05, "holdout.verdict.budget": "pass"},
        "holdout.sentence": f"hold-out '{name}': {used} models used",
        **{"holdout.examples": 600, "holdout.models_used": used, "holdout.models_remaining": 9},
        **{"holdout.share_used": share, "holdout.epsilon": 0.05, "holdout.delta": 0.05, "holdout.remarks": []},
        "holdout.assumption": "Non-adaptive: this holds if all the models were fixed before.",
        **{f"holdout.{key}": value for key, value in changes.items()},
    }


def protocol(name: str = "ridge", **changes: Any) -> dict[str, Any]:
    """The properties of a protocol whose error was judged."""
    return {
        **{"protocol": name, "protocol.threshold.max_error": 0.2, "protocol.verdict.max_error": "pass"},
        **{f"protocol.{key}": value for key, value in (figure("error", 0.125) | figure("error_naive", 0.125)).items()},
        "protocol.interval_assumes": "exchangeable rows",
        **{"protocol.confidence": 0.95, "protocol.selected": [{"alpha": 1.0}, {"alpha": 1.0}, {"alpha": 0.1}]},
        **{f"protocol.{key}": value for key, value in changes.items()},
    }


def exhibit(samples: int = 2, **changes: Any) -> dict[str, Any]:
    """What ``dscore.exhibit`` holds."""
    shown = [{"row": 7 * i, "label": 3, "prediction": 8, "image": png(8, 8)} for i in range(samples)]
    return {"region": [1, 1], "failing": 60, "mean": png(12, 12), "examples": shown, **changes}


def png(width: int, height: int) -> str:
    """A grey picture in base64."""
    file = io.BytesIO()
    Image.new("L", (width, height), 128).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode("ascii")


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, (list, dict)) else str(value)
