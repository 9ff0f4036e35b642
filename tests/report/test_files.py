"""JUnit files of every kind: from several jobs, of other tools, damaged, and made to harm."""

from __future__ import annotations

import base64
import gzip
import struct
import tracemalloc
from pathlib import Path

import pytest

from pytest_dscore.report import junit_files
from pytest_dscore.report.gathering import gather
from tests.report import junit
from tests.report.conftest import Command
from tests.report.junit import Case

LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
BOMB = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]><testsuites>&l9;</testsuites>'
FILE = '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><testsuites>&f;</testsuites>'
OUTSIDE = '<!DOCTYPE testsuites SYSTEM "http://127.0.0.1:9/x.dtd"><testsuites/>'
DEEP = "<testsuite>" * 60 + "</testsuite>" * 60
GOOD = junit.document([Case(properties=junit.model())])

BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\t", "is empty"),
    "cut": (GOOD[: len(GOOD) // 2].encode(), "is cut short"),
    "cut between elements": (GOOD.removesuffix("</testsuites>").encode(), "is cut short"),
    "cut in a tag": (GOOD.removesuffix("ites>").encode(), "is cut short"),
    "text": (b"3 passed in 1.2s", "is not XML"),
    "json": (b'{"tests": []}', "is not XML"),
    "gzip": (gzip.compress(GOOD.encode(), mtime=0), "is not XML"),
    "two roots": (b"<testsuites/><testsuites/>", "is not XML"),
    "bad utf-8": (b"<testsuites>\xff</testsuites>", "is not XML"),
    "unknown encoding": (b'<?xml version="1.0" encoding="klingon"?><testsuites/>', "is not XML"),
    "html": (b"<html><body/></html>", "it begins with <html>"),
    "coverage": (b'<coverage line-rate="1"/>', "it begins with <coverage>"),
    "namespace": (b'<testsuites xmlns="urn:x"/>', "holds no gate of pytest-dscore"),
    "bomb": (BOMB.encode(), "declares a document type"),
    "bomb in utf-16": (BOMB.replace("?>", ' encoding="utf-16"?>', 1).encode("utf-16"), "declares a document type"),
    "file entity": (FILE.encode(), "declares a document type"),
    "external dtd": (OUTSIDE.encode(), "declares a document type"),
    "deep": (DEEP.encode(), "more than 50 elements inside each other"),
    "no tests": (b"<testsuites/>", "holds no gate of pytest-dscore"),
    "no gates": (b'<testsuites><testsuite><testcase name="t"/></testsuite></testsuites>', "holds no gate"),
}


@pytest.mark.parametrize(("content", "said"), BAD.values(), ids=BAD)
def test_what_is_no_report_is_one_sentence(content: bytes, said: str, command: Command) -> None:
    Path("report.xml").write_bytes(content)
    Path("out.md").write_text("old")
    result = command("report.xml", "--output", "out.md")
    assert result.sentence.startswith("dscore: error: report.xml ")
    assert said in result.sentence
    assert Path("out.md").read_text() == "old"


def test_entities_are_refused_before_anything_is_built(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.setattr(junit_files._Reader, "_data", lambda self, text: pytest.fail("an entity was expanded"))
    Path("report.xml").write_text(BOMB)
    assert "declares a document type" in command("report.xml").sentence


def test_of_many_other_tests_nothing_is_kept(tmp_path: Path) -> None:
    """Forty megabytes of what other tests printed are read in a few: all of it is let go at once."""
    printed = f"<failure>{'x' * 4000}</failure><system-out>{'y' * 4000}</system-out>"
    other = f'<testcase name="t">{printed}</testcase>'
    text = GOOD.replace("<testcase", f"{other * 3000}<system-out>{'z' * 20_000_000}</system-out><testcase", 1)
    (tmp_path / "report.xml").write_text(text)
    tracemalloc.start()
    try:
        report = gather([tmp_path / "report.xml"])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert report.verdict == "the only gate passed"
    assert peak < 15_000_000 < len(text)


@pytest.mark.parametrize(
    ("name", "said"), [("none.xml", "No such file"), (".", "Is a directory")], ids=["missing", "directory"]
)
def test_what_cannot_be_read_is_one_sentence(name: str, said: str, command: Command) -> None:
    assert said in command(name).sentence


def test_a_huge_file_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.setattr(junit_files, "LARGEST", 3_000_000)
    Path("report.xml").write_text(GOOD + " " * 4_200_000)
    said = command("report.xml").sentence
    assert "report.xml has 4 MB, and 3 MB are read at most" in said
    assert "--junitxml=gates.xml" in said


VALUES: dict[str, tuple[dict[str, object], str]] = {
    "a word for a number": ({"score": "good"}, "dscore.score = 'good' is no number"),
    "a word for a limit": ({"threshold.min_score": "high"}, "dscore.threshold.min_score = 'high' is no number"),
    "another verdict": ({"verdict.min_score": "perhaps"}, "dscore.verdict.min_score = 'perhaps' is none of pass"),
    "grid of another size": ({"a": [[0.5]]}, "dscore.a is no grid of n x n = 2 x 2 numbers"),
    "ragged grid": ({"f_tilde": [[0.5, 0.5], [0.5]]}, "dscore.f_tilde is no grid"),
    "no grid": ({"a": "[[1, 2"}, "dscore.a is not what pytest-dscore writes there"),
    "deep json": ({"a": "[" * 100_000}, "dscore.a is not what pytest-dscore writes there"),
    "n": ({"n": -1}, "dscore.n is not what pytest-dscore writes there"),
    "huge number": ({"n": "9" * 5000}, "dscore.n is not what pytest-dscore writes there"),
    "exhibit": ({"exhibit": {"mean": ""}}, "dscore.exhibit holds no pictures"),
    "exhibit with a page": (
        {"exhibit": junit.exhibit(mean="PHNjcmlwdD4=")},
        "dscore.exhibit holds no pictures",
    ),
    "exhibit with a page as long as a picture": (
        {"exhibit": junit.exhibit(mean=base64.b64encode(b"<script>alert(1)" + struct.pack(">II", 8, 8)).decode())},
        "dscore.exhibit holds no pictures",
    ),
    "exhibit of a poster": ({"exhibit": junit.exhibit(mean=junit.png(600, 10))}, "dscore.exhibit holds no pictures"),
    "baseline": ({"baseline": {"figures": {"score": "x"}}}, "dscore.baseline or dscore.change"),
    "change": (
        {"baseline": {"figures": {"score": 0.5}}, "change": {"score": {"value": [1]}}},
        "dscore.change is not what pytest-dscore writes there",
    ),
}


@pytest.mark.parametrize(("changes", "said"), VALUES.values(), ids=VALUES)
def test_a_property_of_another_kind_is_one_sentence(changes: dict[str, object], said: str, command: Command) -> None:
    junit.write(Path("report.xml"), [Case(properties=junit.model() | changes)])
    found = command("report.xml").sentence
    assert said in found
    assert "report.xml" in found


def test_unknown_properties_are_no_matter(command: Command) -> None:
    more = {"from_the_future": "[1", "another.thing": "x", "v2.lower": "y"}
    junit.write(Path("report.xml"), [Case(properties=junit.model() | more)])
    assert command("report.xml").code == 0


def test_other_tools_beside_the_gates_are_no_matter(command: Command) -> None:
    other = (
        '<testsuite name="jest"><properties><property name="x"/></properties><testcase name="a"><failure/></testcase>'
    )
    Path("report.xml").write_text(GOOD.replace("<testsuites>", f"<testsuites>{other}</testsuite>"))
    assert command("report.xml").code == 0


def test_a_suite_alone_and_suites_inside_suites_are_read(tmp_path: Path) -> None:
    inner = GOOD.partition("<testsuites>")[2].removesuffix("</testsuites>")
    for text in (inner, f"<testsuite>{inner}</testsuite>", f"<testsuites><testsuite>{inner}</testsuite></testsuites>"):
        (tmp_path / "report.xml").write_text(text)
        assert gather([tmp_path / "report.xml"]).verdict == "the only gate passed"


def test_jobs_of_a_matrix_are_all_kept_and_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paths = [junit.write(Path(f"py{v}.xml"), [Case(properties=junit.model(score=v / 10))]) for v in (6, 7)]
    report = gather(paths)
    assert [(report.label(one), one.figures["score"].value) for one in report.scores] == [
        ("py6.xml", 0.6),
        ("py7.xml", 0.7),
    ]
    assert report.notes == ()
    assert report.verdict == "all 2 gates passed"


@pytest.mark.parametrize(
    ("suites", "labels"),
    [
        ([{"suite": "a"}, {"suite": "b"}], ["a", "b"]),
        ([{"hostname": "one"}, {"hostname": "two"}], ["one", "two"]),
        ([{}, {}], ["suite 1", "suite 2"]),
        ([{"suite": "a"}, {"suite": "b"}, {"suite": "a"}], ["a, suite 1", "b, suite 2", "a, suite 3"]),
    ],
)
def test_suites_merged_into_one_file_are_told_apart(
    suites: list[dict[str, str]], labels: list[str], tmp_path: Path
) -> None:
    parts = [junit.document([Case(properties=junit.model())], **one).partition("<testsuites>")[2] for one in suites]
    body = "".join(part.removesuffix("</testsuites>") for part in parts)
    (tmp_path / "report.xml").write_text(f"<testsuites>{body}</testsuites>")
    report = gather([tmp_path / "report.xml"])
    assert [report.label(one) for one in report.scores] == labels


def test_the_same_test_twice_in_one_file_is_said_and_both_count(command: Command) -> None:
    junit.write(Path("report.xml"), [Case(properties=junit.model()), junit.failing()])
    result = command("report.xml")
    assert result.code == 1
    assert "report.xml has the test pyproject.toml::dscore\\[digits-min\\_score\\] 2 times" in result.out


def test_the_same_file_twice_is_refused(command: Command) -> None:
    junit.write(Path("report.xml"), [Case(properties=junit.model())])
    assert "a file is given twice" in command("report.xml", "./report.xml").sentence


def test_gates_of_one_score_are_one_row(tmp_path: Path) -> None:
    robust = {"threshold.max_v_robust": 2.0, "verdict.max_v_robust": "pass", "threshold.min_score": None}
    other = {key: value for key, value in (junit.model() | robust).items() if value is not None}
    del other["verdict.min_score"]
    cases = [Case(properties=junit.model()), Case(name="dscore[digits-max_v_robust]", properties=other)]
    report = gather([junit.write(tmp_path / "report.xml", cases)])
    [score] = report.scores
    assert [gate.name for gate in score.gates] == ["min_score", "max_v_robust"]
