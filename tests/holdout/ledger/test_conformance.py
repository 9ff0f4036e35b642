"""What every backend must do, in one process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout.ledger import (
    HoldoutIdentity,
    HoldoutRetired,
    Import,
    LabelsChanged,
    LedgerDamaged,
    LedgerMissing,
    Retirement,
    Use,
    UseRefused,
)
from tests.holdout.ledger.examples import holdout, images, outcomes, use
from tests.holdout.ledger.places import Place


def test_a_use_is_there_for_the_next_process(place: Place) -> None:
    data = holdout()
    recorded = place.open().record(
        use(0, data, commit="abc", ran_by="CI run 12"), data, lambda existing, new: f"{len(existing)} before"
    )
    assert recorded.is_new
    (found,) = place.open(must_exist=True).uses()
    assert found == recorded.use
    assert (found.commit, found.ran_by, found.verdict, found.model) == ("abc", "CI run 12", "0 before", "model-0")
    np.testing.assert_array_equal(data.unpack(found.outcomes), outcomes(0))
    assert found.wrong == outcomes(0).sum()


def test_each_record_names_the_heads_before_it(place: Place) -> None:
    data = holdout()
    for model in range(4):
        place.open().record(use(model, data), data)
    ledger = place.open()
    declaration, *uses = ledger.history()
    assert declaration.parents == ()
    names = [u.name for u in uses if isinstance(u, Use)]
    assert [u.parents for u in uses[1:]] == [(name,) for name in names[:-1]]
    assert ledger.heads() == (names[-1],)


@pytest.mark.parametrize("again", ["the same model", "the same outcomes"])
def test_the_same_again_is_not_a_new_use(place: Place, again: str) -> None:
    data = holdout()
    first = place.open().record(use(0, data), data)
    same = use(1, data, model="model-0") if again == "the same model" else use(0, data, model="other")

    def admit(existing: Sequence[Use], new: Sequence[Use]) -> str:
        raise AssertionError("there is nothing to admit")

    second = place.open().record(same, data, admit)
    assert not second.is_new
    assert second.use == first.use  # with the outcomes on record: the score of others is not shown
    assert len(place.open().uses()) == 1


def test_a_refused_use_leaves_no_trace(place: Place) -> None:
    data = holdout()
    place.open().record(use(0, data), data)

    def admit(existing: Sequence[Use], new: Sequence[Use]) -> str:
        raise UseRefused(f"budget of {len(existing)} used up")

    before = place.open().export_lines()
    with pytest.raises(UseRefused, match="budget of 1 used up"):
        place.open().record(use(1, data), data, admit)
    assert place.open().export_lines() == before


def test_an_admission_that_fails_leaves_the_ledger_usable(place: Place) -> None:
    data = holdout()
    ledger = place.open()

    def admit(existing: Sequence[Use], new: Sequence[Use]) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ledger.record(use(0, data), data, admit)
    assert ledger.record(use(0, data), data).is_new


def test_several_uses_are_charged_together_or_not_at_all(place: Place) -> None:
    data = holdout()
    ledger = place.open()
    ledger.record(use(2, data), data)
    seen: list[tuple[int, int]] = []

    def admit(existing: Sequence[Use], new: Sequence[Use]) -> str:
        seen.append((len(existing), len(new)))
        if len(existing) + len(new) > 5:
            raise UseRefused("too many")
        return "fine"

    batch = [use(0, data), use(1, data), use(2, data), use(1, data, model="twin of 1"), use(3, data)]
    recorded = ledger.record_all(batch, data, admit)
    assert [r.is_new for r in recorded] == [True, True, False, False, True]
    assert recorded[3].use == recorded[1].use
    with pytest.raises(UseRefused, match="too many"):
        ledger.record_all([use(4, data), use(5, data)], data, admit)
    assert seen == [(1, 3), (4, 2)]
    assert len(place.open().uses()) == 4


def aliases() -> Iterator[tuple[str, HoldoutIdentity, int]]:
    x, y = images()
    order = np.random.default_rng(5).permutation(len(x))
    more_x, more_y = images(50, seed=9)
    yield "renamed", HoldoutIdentity.of(x, y, name="fresh data"), 100
    yield "re-ordered", HoldoutIdentity.of(x[order], y[order], name="b"), 100
    yield "a subset", HoldoutIdentity.of(x[10:40], y[10:40], name="b"), 30
    yield "a superset", HoldoutIdentity.of(np.concatenate([x, more_x]), np.concatenate([y, more_y]), name="b"), 100
    yield "permuted classes", HoldoutIdentity.of(x, (y + 3) % 5, name="b"), 100
    yield "labels as text", HoldoutIdentity.of(x, [f"class {label}" for label in y], name="b"), 100
    yield "one-hot labels", HoldoutIdentity.of(x, np.eye(5)[y], name="b"), 100
    yield "as flat floats", HoldoutIdentity.of(x.reshape(100, 16).astype(np.float64), y.astype(np.int8), name="b"), 100


@pytest.mark.parametrize(("alias", "common"), [pytest.param(a, c, id=label) for label, a, c in aliases()])
def test_the_same_examples_charge_the_same_budget(place: Place, alias: HoldoutIdentity, common: int) -> None:
    data = holdout()
    place.open().record_all([use(model, data) for model in range(3)], data)
    ledger = place.open()
    (found,) = ledger.related(alias)
    assert (found.name, found.common) == ("digits-test", common)
    charged: list[int] = []

    def admit(existing: Sequence[Use], new: Sequence[Use]) -> str:
        charged.append(len(existing))
        return ""

    ledger.record(use(9, alias), alias, admit)
    assert charged == [3]
    assert len(place.open().uses(data)) == 4  # and the other way round
    assert len(place.open().uses(alias)) == 4


def test_the_same_model_on_the_re_ordered_hold_out_is_not_a_new_use(place: Place) -> None:
    x, y = images()
    order = np.random.default_rng(5).permutation(len(x))
    data, moved = holdout(), HoldoutIdentity.of(x[order], (y[order] + 1) % 5)
    place.open().record(use(0, data), data)
    again = Use.of(moved, outcomes(0)[order], model="called otherwise")
    assert not place.open().record(again, moved).is_new


def test_other_data_have_a_budget_of_their_own(place: Place) -> None:
    data, other = holdout(), holdout("other", seed=1)
    ledger = place.open()
    ledger.record(use(0, data), data)
    ledger.record(use(0, other), other, lambda existing, new: str(len(existing)))
    assert ledger.uses(other)[0].verdict == "0"
    assert ledger.uses(data.digest)[0].holdout == data.digest
    assert {h.name for h in ledger.holdouts()} == {"digits-test", "other"}
    assert len(ledger.uses()) == 2


def test_changed_labels_are_named_and_nothing_is_charged(place: Place) -> None:
    x, y = images()
    data = holdout()
    place.open().record(use(0, data), data)
    y[[17, 42]] = (y[[17, 42]] + 1) % 5
    changed = HoldoutIdentity.of(x, y, name="digits-test")
    with pytest.raises(LabelsChanged, match=r"the labels of 2 examples differ .* \(rows 17, 42\)"):
        place.open().record(use(1, changed), changed)
    assert len(place.open().uses()) == 1


def test_a_retired_hold_out_is_closed_with_all_its_examples(place: Place) -> None:
    x, y = images()
    data, part = holdout(), HoldoutIdentity.of(x[:30], y[:30], name="part")
    ledger = place.open()
    ledger.record(use(0, data), data)
    ledger.retire(data, "leaked into a tutorial", ran_by="anna")
    with pytest.raises(HoldoutRetired, match=r"30 examples \(100%\) of hold-out 'digits-test', .*tutorial"):
        place.open().record(use(1, part), part)
    (retirement,) = [r for r in place.open().history() if isinstance(r, Retirement)]
    assert (retirement.why, retirement.ran_by) == ("leaked into a tutorial", "anna")
    with pytest.raises(DScoreError, match=r"was retired on .* already: leaked into a tutorial"):
        place.open().retire(data, "once more")


@pytest.mark.parametrize("why", ["", "  "])
def test_retire_and_import_need_a_reason(place: Place, why: str) -> None:
    data = holdout()
    ledger = place.open()
    ledger.record(use(0, data), data)
    with pytest.raises(DScoreError, match="retire needs a reason"):
        ledger.retire(data.digest, why)
    with pytest.raises(DScoreError, match="import needs a reason"):
        ledger.import_lines(ledger.export_lines(), why)


def test_only_a_hold_out_on_record_can_be_retired(place: Place) -> None:
    data = holdout()
    ledger = place.open()
    ledger.record(use(0, data), data)
    with pytest.raises(DScoreError, match=r"has no hold-out 'digits'; it has digits-test [0-9a-f]{12}"):
        ledger.retire("digits", "why not")


def test_export_and_import_carry_everything_over(place: Place, other_place: Place) -> None:
    data, other = holdout(), holdout("other", seed=1)
    source, target = place.open(), other_place.open()
    source.record_all([use(model, data) for model in range(3)], data)
    target.record(use(7, data), data)
    target.record(use(0, other), other)
    lines = source.export_lines()
    assert target.import_lines(lines, "moved to the new server", ran_by="anna") == 4
    after = other_place.open()
    assert {u.model for u in after.uses(data)} == {"model-0", "model-1", "model-2", "model-7"}
    assert {u.name for u in source.uses()} < {u.name for u in after.uses()}
    (taken,) = [r for r in after.history() if isinstance(r, Import)]
    assert (taken.why, taken.ran_by, len(taken.records)) == ("moved to the new server", "anna", 4)
    assert len(after.heads()) == 1
    assert after.verify(base=source.heads()).ok
    assert after.import_lines(lines, "by mistake again") == 0
    assert after.export_lines() == other_place.open().export_lines()


def test_a_damaged_import_takes_nothing(place: Place) -> None:
    data = holdout()
    ledger = place.open()
    ledger.record_all([use(model, data) for model in range(3)], data)
    lines = list(ledger.export_lines())
    before = ledger.export_lines()
    for damaged, message in [
        (lines[:-1], "was cut short"),
        ([], "was cut short"),
        ([*lines[:-1], "no JSON"], "was cut short"),
        ([*lines[:-1], "", ""], "was cut short"),
        (lines[:1] + lines[2:], "says that it has 4 records and has 3"),
        ([lines[0], lines[1].replace('","', '", "', 1), *lines[2:]], "line 2 of the import was edited"),
        ([lines[0], "{}", *lines[2:]], "line 2 of the import is foreign"),
    ]:
        with pytest.raises(LedgerDamaged, match=message):
            place.open().import_lines(damaged, "test")
        assert place.open().export_lines() == before


def test_an_import_that_lacks_its_beginning_takes_nothing(place: Place, other_place: Place) -> None:
    data = holdout()
    place.open().record_all([use(model, data) for model in range(3)], data)
    lines = place.open().export_lines()
    target = other_place.open()
    with pytest.raises(LedgerDamaged, match=r"the import lacks record [0-9a-f]{64}, a parent of"):
        target.import_lines([*lines[1:-1], lines[-1].replace("4", "3", 1)], "test")
    assert target.uses() == ()


def test_verify_names_a_record_that_was_taken_away(place: Place) -> None:
    data = holdout()
    place.open().record_all([use(model, data) for model in range(3)], data)
    ledger = place.open()
    gone = ledger.uses()[1].name
    place.remove(gone)
    report = place.open(worker=1).verify()
    assert [(f.fault, f.record) for f in report.findings] == [("missing", gone)]
    assert gone in str(report)
    with pytest.raises(LedgerDamaged, match=f"record {gone} is missing"):
        place.open(worker=2).record(use(5, data), data)


def test_verify_names_a_record_that_was_edited(place: Place) -> None:
    data = holdout()
    place.open().record_all([use(model, data) for model in range(3)], data)
    name = place.open().uses()[1].name
    place.rewrite(name, lambda content: content.replace(b"model-1", b"model-X"))
    report = place.open(worker=1).verify()
    assert [(f.fault, f.record) for f in report.findings] == [("edited", name)]
    with pytest.raises(LedgerDamaged, match=f"{name}.* was edited"):
        place.open(worker=2).uses()


@pytest.mark.parametrize(
    ("content", "fault", "reason"),
    [
        (b"", "edited", "is empty"),
        (b'{"commit":null,"format":"dscore-led', "edited", "was cut short"),
        (b'{"colour":"blue"}\n', "foreign", "is foreign"),
        (b"\xff\xfe\x00\n", "foreign", "is not a record"),
    ],
)
def test_a_record_that_is_none_is_named_with_the_reason(place: Place, content: bytes, fault: str, reason: str) -> None:
    data = holdout()
    place.open().record_all([use(model, data) for model in range(2)], data)
    name = place.open().uses()[0].name
    place.rewrite(name, lambda _: content)
    report = place.open(worker=1).verify()
    assert [(f.fault, f.record) for f in report.findings] == [(fault, name)]
    assert reason in report.findings[0].reason
    with pytest.raises(LedgerDamaged, match=f"{name}.* {reason}"):
        place.open(worker=2).record(use(5, data), data)


def test_taking_away_the_newest_record_shows_against_a_base(place: Place) -> None:
    data = holdout()
    ledger = place.open()
    ledger.record_all([use(model, data) for model in range(3)], data)
    (head,) = ledger.heads()
    place.remove(head)
    report = place.open(worker=1).verify(base=[head])
    assert [(f.fault, f.record) for f in report.findings] == [("rolled back", head)]
    with pytest.raises(LedgerDamaged, match=head):
        ledger.record(use(9, data), data)  # this process has seen it


def test_a_ledger_that_should_exist_is_never_begun_anew(place: Place) -> None:
    with pytest.raises(LedgerMissing, match="it is not begun anew"):
        place.open(must_exist=True)
    data = holdout()
    place.open().record(use(0, data), data)
    assert place.open(must_exist=True).uses()
    place.wipe()
    with pytest.raises(LedgerMissing, match="it is not begun anew"):
        place.open(worker=1, must_exist=True)


def test_an_empty_ledger_is_sound(place: Place) -> None:
    ledger = place.open()
    assert (ledger.uses(), ledger.heads(), ledger.holdouts()) == ((), (), ())
    assert ledger.verify().ok


def test_a_clock_that_goes_backwards_changes_nothing(place: Place) -> None:
    data = holdout()
    times = iter(f"{year}-01-01T00:00:00.000000Z" for year in range(2050, 2000, -1))
    ledger = place.open(clock=lambda: next(times))
    for model in range(4):
        assert ledger.record(use(model, data), data, lambda existing, new: str(len(existing))).is_new
    after = place.open()
    assert [u.model for u in after.uses()] == [f"model-{model}" for model in range(4)]
    assert [u.verdict for u in after.uses()] == ["0", "1", "2", "3"]
    assert after.verify().ok


def test_a_use_of_another_hold_out_is_refused(place: Place) -> None:
    data = holdout()
    with pytest.raises(DScoreError, match="was given with hold-out"):
        place.open().record(use(0, holdout(seed=3)), data)


def test_a_use_that_would_not_be_read_back_is_not_written(place: Place) -> None:
    data = holdout()
    ledger = place.open()
    with pytest.raises(DScoreError, match="outcomes hold 12 bytes, but 100 examples take 13"):
        ledger.record(replace(use(0, data), outcomes=bytes(12)), data)
    with pytest.raises(DScoreError, match="model must be a fingerprint"):
        ledger.record(use(0, data, model=" "), data)
    assert ledger.uses() == ()


def test_the_ledger_says_where_it_lies(place: Place) -> None:
    ledger = place.open()
    assert ledger.where in repr(ledger)
