"""``[tool.dscore]`` and markers as values: what is accepted, and one sentence for everything that is not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pytest_dscore.errors import SettingsError
from pytest_dscore.settings import GATES, HoldoutSettings, Settings, key_line, load_settings, marker_settings

OPERATORS = ("delete", "invert", "noise", "shuffle")
MODEL = '[tool.dscore.models.{name}]\nfactory = "a.b:C.d"\ndata = "x:y"\n'
TINY = MODEL.format(name="tiny")


def read(tmp_path: Path, text: str) -> Settings:
    """Settings of a pyproject.toml."""
    (tmp_path / "pyproject.toml").write_text(text)
    return load_settings(tmp_path, OPERATORS)


def refusal(tmp_path: Path, text: str) -> str:
    """The message that a pyproject.toml is refused with: one line without anything of pydantic."""
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, text)
    message = str(caught.value)
    assert "\n" not in message
    assert "pydantic" not in message
    assert "validation error" not in message
    return message


def test_defaults(tmp_path: Path) -> None:
    settings = read(tmp_path, TINY + "min_score = 0.5")
    model = settings.models["tiny"]
    assert (model.n, model.operator, model.form, model.pad, model.fill) == (3, "delete", "mean", None, None)
    assert (model.batch_size, model.device, model.bf16) == (256, "auto", False)
    assert (model.bootstrap, model.confidence, model.seed, model.weights) == (1000, 0.95, 0, None)
    assert settings.junit_properties is True
    assert model.thresholds() == {"min_score": 0.5}


def test_the_models_own_keys_replace_common_ones(tmp_path: Path) -> None:
    common = "[tool.dscore]\nn = 4\nseed = 7\nmin_score = 0.5\n"
    models = read(tmp_path, common + TINY + "n = 2\nmin_accuracy = 1\n" + MODEL.format(name="other")).models
    assert (models["tiny"].n, models["tiny"].seed) == (2, 7)
    assert models["tiny"].thresholds() == {"min_score": 0.5, "min_accuracy": 1.0}
    assert (models["other"].n, models["other"].seed) == (4, 7)
    assert models["other"].thresholds() == {"min_score": 0.5}


def test_whole_numbers_are_thresholds_too(tmp_path: Path) -> None:
    model = read(tmp_path, TINY + "min_score = 1\nmax_v_robust = 2").models["tiny"]
    assert {type(value) for value in model.thresholds().values()} == {float}


@pytest.mark.parametrize("line", ["pad = 0", "pad = [3, 4]", "fill = -1", "fill = [0.1, -2, 3]", "bf16 = true"])
def test_accepted_forms(tmp_path: Path, line: str) -> None:
    read(tmp_path, TINY + "min_score = 0.5\n" + line)


@pytest.mark.parametrize(
    "text",
    [
        "[tool.dscore]\nform = 'ratio'\n" + TINY + "min_score = 1.5",
        "[tool.dscore]\nmin_score = 1.5\n" + TINY + "form = 'ratio'",
        TINY + "form = 'ratio'\nmin_score = 1.5",
        "[tool.dscore]\nform = 'ratio'\nmin_score = 1.5\n" + TINY,
    ],
    ids=["common form", "common threshold", "own", "common"],
)
def test_a_ratio_may_exceed_1_wherever_it_is_set(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text).models["tiny"].thresholds() == {"min_score": 1.5}


def test_a_bounded_score_may_not(tmp_path: Path) -> None:
    for text in (
        TINY + "min_score = 1.5",
        "[tool.dscore]\nmin_score = 1.5\n" + TINY,
        "[tool.dscore]\nform = 'ratio'\nmin_score = 1.5\n" + TINY + "form = 'bounded'",
    ):
        message = refusal(tmp_path, text)
        assert "min_score = 1.5 can never be met: this D-Score lies between 0 and 1" in message


OWN = {
    "n = '3'": ["n = '3' cannot be used", "whole number >= 2"],
    "n = 1": ["n = 1 cannot be used", "whole number >= 2"],
    "n = 2.5": ["n = 2.5 cannot be used", "whole number >= 2"],
    "n = 3.0": ["n = 3.0 cannot be used", "whole number >= 2"],
    "n = true": ["n = True cannot be used", "whole number >= 2"],
    "n = [3]": ["n = [3] cannot be used", "whole number >= 2"],
    "min_score = '0.5'": ["min_score = '0.5' cannot be used", "number"],
    "min_score = true": ["min_score = True cannot be used", "number"],
    "min_score = -0.1": ["min_score = -0.1 cannot be used", "> 0"],
    "min_score = nan": ["min_score = nan", "number"],
    "min_score = inf": ["min_score = inf"],
    "max_v_robust = nan": ["max_v_robust = nan", "number"],
    "max_v_robust = inf": ["max_v_robust = inf", "finite"],
    "max_v_robust = -1": ["max_v_robust = -1", ">= 0"],
    "min_score = 0": ["min_score = 0", "always pass"],
    "min_score = -0.0": ["min_score = -0.0", "always pass"],
    "min_accuracy = 0": ["min_accuracy = 0", "> 0 and <= 1"],
    "min_accuracy = 1.1": ["min_accuracy = 1.1", "> 0 and <= 1"],
    "min_accuracy = 95": ["min_accuracy = 95", "> 0 and <= 1"],
    "min_accuracy = nan": ["min_accuracy = nan", "> 0 and <= 1"],
    "min_v_fitness = -1": ["min_v_fitness = -1", "> 0 and <= 1"],
    "pad = -1": ["pad = -1 cannot be used", "pixels"],
    "pad = [1, 2, 3]": ["pad = [1, 2, 3]", "pair [vertical, horizontal]"],
    "pad = 'a'": ["pad = 'a' cannot be used"],
    "pad = [1, -2]": ["pad = ", "pixels"],
    "fill = 'black'": ["fill = 'black' cannot be used", "value of black"],
    "fill = nan": ["fill = nan", "finite"],
    "fill = [0.0, inf]": ["fill = [0.0, inf]", "finite"],
    "form = 'ration'": ["form = 'ration' cannot be used", '"bounded" or "ratio"'],
    "operator = 'delte'": ["operator 'delte' does not exist", "did you mean 'delete'?"],
    "operator = 3": ["operator = 3 cannot be used"],
    "batch_size = 0": ["batch_size = 0 cannot be used"],
    "bootstrap = 0": ["bootstrap = 0 cannot be used", "whole number from 100 to 100,000"],
    "bootstrap = 1_000_000_000": ["bootstrap = 1000000000 cannot be used", "whole number from 100 to 100,000"],
    "bootstrap = 1e23": ["bootstrap = 1e+23 cannot be used", "whole number from 100 to 100,000"],
    "confidence = 0.9999999999999999": ["confidence = 0.9999999999999999 cannot be used", "up to 0.999999, such as"],
    "confidence = 1": ["confidence = 1 cannot be used"],
    "confidence = 95": ["confidence = 95 cannot be used"],
    "confidence = nan": ["confidence = nan"],
    "seed = -1": ["seed = -1 cannot be used"],
    "seed = 1.5": ["seed = 1.5 cannot be used"],
    "bf16 = 1": ["bf16 = 1 cannot be used"],
    "device = 0": ["device = 0 cannot be used"],
    "min_scor = 0.5": ["key 'min_scor' does not exist", "did you mean 'min_score'?"],
    "max_vrobust = 1": ["key 'max_vrobust' does not exist", "did you mean 'max_v_robust'?"],
    "xyzzy = 1": ["key 'xyzzy' does not exist", "Valid: ", "min_score"],
}


@pytest.mark.parametrize(("line", "parts"), OWN.items(), ids=OWN)
@pytest.mark.parametrize("place", ["common", "own"])
def test_a_bad_value_names_its_table_its_key_and_the_fix(
    tmp_path: Path, line: str, parts: list[str], place: str
) -> None:
    enough = "" if line.startswith("min_score") else "min_score = 0.5\n"
    if place == "own":
        message = refusal(tmp_path, TINY + enough + line)
        assert message.startswith("[tool.dscore.models.tiny] ")
    else:
        message = refusal(tmp_path, f"[tool.dscore]\n{enough}{line}\n{TINY}")
        assert message.startswith(("[tool.dscore] ", "[tool.dscore.models.tiny] operator"))
    for part in parts:
        assert part in message


PLACES = {
    "factory = 'a'": ["factory = 'a' cannot be used", "module:callable"],
    "factory = 'a:'": ["factory = 'a:' cannot be used", "module:callable"],
    "factory = 'a/b.py:c'": ["factory = 'a/b.py:c' cannot be used", "module:callable"],
    "factory = 'a:b()'": ["factory = 'a:b()' cannot be used", "module:callable"],
    "factory = 3": ["factory = 3 cannot be used", "module:callable"],
    "data = 'a b:c'": ["data = 'a b:c' cannot be used", "module:callable"],
    "weights = 3": ["weights = 3 cannot be used", ".safetensors, .pt or .pth"],
}


@pytest.mark.parametrize(("line", "parts"), PLACES.items(), ids=PLACES)
def test_bad_places(tmp_path: Path, line: str, parts: list[str]) -> None:
    text = re.sub(rf"^{line.split(' ', maxsplit=1)[0]} = .*\n", "", TINY, flags=re.MULTILINE)
    message = refusal(tmp_path, f"{text}min_score = 0.5\n{line}\n")
    for part in ("[tool.dscore.models.tiny] ", *parts):
        assert part in message


@pytest.mark.parametrize("key", ["factory", "data"])
def test_a_missing_place(tmp_path: Path, key: str) -> None:
    text = re.sub(rf"^{key} = .*\n", "", TINY, flags=re.MULTILINE)
    assert f"[tool.dscore.models.tiny] {key} is missing: give " in refusal(tmp_path, f"{text}min_score = 0.5")


NO_TABLE = "has no table [tool.dscore]"
FILES = {
    "empty": ("", NO_TABLE),
    "other tools": ("[tool.other]\nn = 3", NO_TABLE),
    "tool is no table": ("tool = 3", NO_TABLE),
    "dscore is no table": ("[tool]\ndscore = 3", NO_TABLE),
    "dscore is an array": ("[[tool.dscore]]\nn = 3", NO_TABLE),
    "the table of an option of pytest": ("[tool.pytest.dscore]\nmin_score = 0.5", NO_TABLE),
    "syntax": ("[tool.dscore\nn = 3", "pyproject.toml cannot be read: "),
    "twice": ("[tool.dscore]\nn = 3\nn = 4", "pyproject.toml cannot be read: "),
    "models are text": ("[tool.dscore]\nmodels = 'tiny'", "[tool.dscore.models] must hold a table for each of them"),
    "model is text": ("[tool.dscore]\nmodels.tiny = 'a:b'", "[tool.dscore.models.tiny] must be a table"),
    "no threshold": (TINY, "[tool.dscore.models.tiny] has no threshold, so it would always pass: set one of min_score"),
    "name with a space": (MODEL.format(name='"a b"') + "min_score = 0.5", "letters, digits and . _ - only"),
    "name with a bracket": (MODEL.format(name='"a]b"') + "min_score = 0.5", "letters, digits and . _ - only"),
    "empty name": (MODEL.format(name='""') + "min_score = 0.5", "letters, digits and . _ - only"),
    "not ASCII": (MODEL.format(name='"zïffer"') + "min_score = 0.5", "letters, digits and . _ - only"),
    "name with a new line": (MODEL.format(name='"a\\n"') + "min_score = 0.5", "letters, digits and . _ - only"),
    "junit": ("[tool.dscore]\njunit_properties = 'no'\n" + TINY, "junit_properties = 'no' must be true or false"),
    "nested": (MODEL.format(name="a.b") + "min_score = 0.5", "[tool.dscore.models.a] key 'b' does not exist"),
    "misspelt models": ("[tool.dscore.model.tiny]\nn = 3", "key 'model' does not exist; did you mean 'models'?"),
}


@pytest.mark.parametrize(("text", "part"), FILES.values(), ids=FILES)
def test_an_unusable_file(tmp_path: Path, text: str, part: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_settings(tmp_path, OPERATORS)
    assert part in str(caught.value)


def test_a_missing_file_names_its_place_and_rootdir(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"does not exist: create it or pass --rootdir"):
        load_settings(tmp_path, OPERATORS)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match=r"cannot be read"):
        load_settings(tmp_path, OPERATORS)


def test_several_faults_are_named_together(tmp_path: Path) -> None:
    message = refusal(tmp_path, TINY + "n = 1\nmin_scor = 0.5\nseed = -1")
    for part in ("n = 1", "'min_scor'", "seed = -1"):
        assert message.count(part) == 1


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Two models."""
    common = "[tool.dscore]\nn = 4\nmin_score = 0.5\n"
    return read(tmp_path, common + TINY + "operator = 'noise'\n" + MODEL.format(name="other"))


def test_a_marker_replaces_keys_and_inherits_no_threshold(settings: Settings) -> None:
    name, model = marker_settings({"model": "tiny", "n": 2, "max_v_robust": 1}, settings.models, OPERATORS)
    assert (name, model.n, model.operator, model.factory) == ("tiny", 2, "noise", "a.b:C.d")
    assert model.thresholds() == {"max_v_robust": 1.0}


def test_a_marker_may_use_tuples(settings: Settings) -> None:
    _, model = marker_settings({"model": "tiny", "pad": (1, 2), "fill": (0.5,)}, settings.models, OPERATORS)
    assert (model.pad, model.fill) == ([1, 2], [0.5])


@pytest.mark.parametrize(
    ("keywords", "parts"),
    [
        ({}, ["say which with model", "tiny, other"]),
        ({"model": "tinny"}, ["model 'tinny' does not exist", "did you mean 'tiny'?"]),
        ({"model": "tiny", "min_scor": 1}, ["@pytest.mark.dscore key 'min_scor'", "did you mean 'min_score'?"]),
        ({"model": "tiny", "factory": "a:b"}, ["@pytest.mark.dscore key 'factory' does not exist"]),
        ({"model": "tiny", "operator": "x"}, ["@pytest.mark.dscore operator 'x' does not exist"]),
        ({"model": "tiny", "min_score": 2}, ["@pytest.mark.dscore min_score = 2 can never be met"]),
    ],
)
def test_an_unusable_marker(settings: Settings, keywords: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        marker_settings(keywords, settings.models, OPERATORS)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("[tool.dscore]\nmin_score = 1\n[tool.dscore.models.tiny]\nmin_score = 2", "min_score", 3),
        ("[tool.dscore]\nmin_score = 1\n[tool.dscore.models.tiny]\nn = 2", "min_score", 1),
        ("[tool.dscore]\n\n[ tool . dscore.models . 'tiny' ] # here\n  min_score=2", "min_score", 3),
        ("[tool.other]\nmin_score = 1\n[tool.dscore.models.tiny]\n# min_score = 1", "min_score", 2),
        ("[tool.dscore.models.tiny2]\nmin_score = 1\n[tool.dscore]\n", "min_score", 2),
        ("", "min_score", None),
    ],
)
def test_key_line(tmp_path: Path, text: str, key: str, line: int | None) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert key_line(tmp_path, "models.tiny", key) == line


def test_every_gate_judges_a_figure_of_the_result() -> None:
    from pytest_dscore.score import DScore

    assert set(GATES.values()) <= set(DScore.__dataclass_fields__)


HOLDOUT = '[tool.dscore.holdouts.test]\ndata = "a:b"\nepsilon = 0.02\n'


def holdout(tmp_path: Path, more: str = "") -> HoldoutSettings:
    (tmp_path / "pyproject.toml").write_text(HOLDOUT + more, encoding="utf-8")
    return load_settings(tmp_path, OPERATORS).holdouts["test"]


def test_a_holdout_needs_no_model(tmp_path: Path) -> None:
    found = holdout(tmp_path)
    assert (found.delta, found.bound, found.mode, found.feedback) == (0.05, "best", "non-adaptive", "exact")
    assert (found.ledger, found.charge, found.max_uses, found.min_accuracy) == (".dscore/ledger", "all", None, None)


def test_a_password_in_a_ledgers_url_is_in_no_repr(tmp_path: Path) -> None:
    assert "hunter2" not in repr(holdout(tmp_path, 'ledger = "postgresql+psycopg://me:hunter2@host/db"\n'))


HOLDOUTS = {
    "epsilon": ("epsilon = 2", "[tool.dscore.holdouts.test] epsilon = 2 cannot be used: give a number between 0 and 1"),
    "delta": ("delta = 0", "delta = 0 cannot be used"),
    "NaN": ("delta = nan", "delta = nan cannot be used"),
    "bound": ("bound = 'onion'", "give one of best, union"),
    "mode": ("mode = 'adaptve'", 'give "non-adaptive" or "adaptive"'),
    "feedback": ("feedback = 1", 'give "exact", "pass-fail" or "ladder"'),
    "charge": ("charge = 'none'", 'give "all" or "clean"'),
    "no uses": ("max_uses = 0", "give a whole number >= 1"),
    "warning": ("warn_at = 1.5", "give a number between 0 and 1, such as 0.8"),
    "empty ledger": ("ledger = ''", 'ledger cannot be used: give a directory, "git:REF"'),
    "secret": ("ledger = ['postgresql://me:hunter2@host/db']", "ledger cannot be used"),
    "misspelt": ("epsilom = 0.02", "key 'epsilom' does not exist; did you mean 'epsilon'?"),
    "adaptive, of what was seen": (
        "mode = 'adaptive'\nbound = 'bootstrap'",
        "bound = 'bootstrap' knows only",
    ),
    "feedback without adaptive": ("feedback = 'ladder'", "only counts with mode = 'adaptive'"),
    "pass-fail at nothing": ("mode = 'adaptive'\nfeedback = 'pass-fail'", "needs min_accuracy"),
    "a ladder and a threshold": (
        "mode = 'adaptive'\nfeedback = 'ladder'\nmin_accuracy = 0.9",
        "min_accuracy does not go with feedback = 'ladder'",
    ),
}


@pytest.mark.parametrize(("line", "part"), HOLDOUTS.values(), ids=HOLDOUTS)
def test_an_unusable_holdout(tmp_path: Path, line: str, part: str) -> None:
    base = HOLDOUT.replace("epsilon = 0.02\n", "") if line.startswith("epsilon =") else HOLDOUT
    (tmp_path / "pyproject.toml").write_text(f"{base}{line}\n", encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load_settings(tmp_path, OPERATORS)
    assert part in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("key", ["data", "epsilon"])
def test_a_holdout_without(tmp_path: Path, key: str) -> None:
    lines = [line for line in HOLDOUT.splitlines() if not line.startswith(key)]
    (tmp_path / "pyproject.toml").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(SettingsError, match=rf"\[tool.dscore.holdouts.test\] {key} is missing: give "):
        load_settings(tmp_path, OPERATORS)


def test_a_model_and_a_holdout_of_one_name(tmp_path: Path) -> None:
    text = TINY + "min_score = 0.5\n" + HOLDOUT.replace("test", "tiny")
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match="a model and a hold-out are both called 'tiny'"):
        load_settings(tmp_path, OPERATORS)
