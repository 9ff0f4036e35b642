"""Torch training loops under the probe and in nested_cv: leaks caught and rightly named, clean ones passed."""

# mypy: disable-error-code="import-untyped,no-untyped-def,no-untyped-call,no-any-return,type-arg"
from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.model_selection import StratifiedKFold
from torch import nn

from pytest_dscore.protocol import LeakVerdict, compare_protocols, nested_cv, probe_leaks
from pytest_dscore.protocol.torch_watch import watch_training

from . import torch_zoo as zoo

SEEDS = range(4)


def probe(protocol: Any, data: Any, seed: int) -> LeakVerdict:
    X, y = data(seed)
    return probe_leaks(protocol, X, y, StratifiedKFold(3, shuffle=True, random_state=seed), seed=seed)


@pytest.mark.parametrize("name", zoo.LEAKS)
def test_leaks_are_caught_and_named(name: str) -> None:
    protocol, data, kind = zoo.LEAKS[name]
    verdicts = [probe(protocol, data, seed) for seed in SEEDS]
    assert [[leak.kind for leak in verdict.leaks] for verdict in verdicts] == [[kind]] * len(SEEDS)
    assert max(verdict.runs for verdict in verdicts) <= 10


@pytest.mark.parametrize("name", zoo.CLEAN)
def test_clean_loops_pass(name: str) -> None:
    protocol, data = zoo.CLEAN[name]
    for seed in SEEDS:
        verdict = probe(protocol, data, seed)
        assert verdict.passed, str(verdict)
        assert verdict.runs == 10


def test_the_evidence_names_the_module_and_its_rows() -> None:
    (leak,) = probe(zoo.trains_on_test_too, zoo.rings, 0).leaks
    assert "Mlp in training was given 90 rows, 45 of them test rows" in leak.evidence
    (raw,) = probe(zoo.trains_on_everything, zoo.rings, 0).leaks
    assert "Mlp in training was given 90 rows, 45 of them test rows" in raw.evidence


def test_a_loop_that_ignores_its_seed_is_undecided() -> None:
    def draws_anew(X, y, train, test, seed):
        torch.seed()
        return zoo.plain(X, y, train, test, seed)

    def shuffles_by_numpy(X, y, train, test, seed):
        return zoo.plain(X, y, np.random.default_rng().permutation(train), test, seed)

    for protocol in (draws_anew, shuffles_by_numpy):
        verdict = probe(protocol, zoo.rings, 0)
        assert verdict.undecided
        assert not verdict.passed
        assert "disagrees with itself" in verdict.reason
        assert "fix the seed" in verdict.reason


def test_generators_are_set_for_each_run_and_put_back() -> None:
    X, y = zoo.rings(0)
    drawn = []

    def notes_its_draw(X, y, train, test, seed):
        drawn.append((seed, float(torch.rand(()))))
        return zoo.plain(X, y, train, test, seed)

    torch.manual_seed(123)
    expected = torch.rand(2).tolist()
    random.seed(5)
    torch.manual_seed(123)
    before = float(torch.rand(()))
    states = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]
    assert probe_leaks(notes_its_draw, X, y, 3, seed=7).passed
    assert [before, float(torch.rand(()))] == expected
    assert states == (random.getstate(), np.random.get_state()[1].tolist())  # type: ignore[index]
    assert len(set(drawn)) == 1
    torch.manual_seed(7)
    assert drawn[0] == (7, float(torch.rand(())))


def epochs_protocol(X, y, train, test, seed, epochs=4):
    Z = zoo.scaled(X, train)
    return zoo.guess(zoo.fit(zoo.Mlp(), Z[train], y[train], epochs), Z[test])


SPREAD = """
import json
from pytest_dscore.protocol import nested_cv
from tests.protocol import torch_zoo as zoo
from tests.protocol.test_torch_loops import epochs_protocol

X, y = zoo.rings(1)
found = nested_cv(epochs_protocol, {"epochs": [1, 6]}, X, y, outer=3, inner=2, seed=1, n_jobs=2)
print(json.dumps([found.fold_errors.tolist(), [dict(one) for one in found.selected]]))
"""


def test_nested_cv_gives_the_same_number_for_the_same_seed() -> None:
    X, y = zoo.rings(1)
    grid = {"epochs": [1, 6]}
    first = nested_cv(epochs_protocol, grid, X, y, outer=3, inner=2, seed=1)
    torch.rand(17)
    other = nested_cv(epochs_protocol, grid, X, y, outer=3, inner=2, seed=2)
    # In a process of its own: joblib's workers are not to be relied on after hundreds of runs of pytest within pytest.
    again = subprocess.run([sys.executable, "-c", SPREAD], capture_output=True, text=True, check=True, timeout=300)
    errors, selected = json.loads(again.stdout)
    assert errors == first.fold_errors.tolist()
    assert selected == [dict(one) for one in first.selected]
    assert not np.array_equal(first.fold_errors, other.fold_errors)
    compared = compare_protocols(epochs_protocol, grid, X, y, outer=3, inner=2, seed=1)
    assert np.array_equal(compared.internal.fold_errors, first.fold_errors)


def test_a_protocol_that_imports_torch_itself_is_seeded_from_its_first_run() -> None:
    code = """
import sys
import numpy as np
from pytest_dscore.protocol import probe_leaks

def protocol(X, y, train, test, seed):
    import torch
    return X[test, 0] + float(torch.rand(()))

X = np.random.default_rng(0).normal(size=(30, 2))
assert "torch" not in sys.modules
print(probe_leaks(protocol, X, np.arange(30) % 2, 3))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "no leak found (10 runs)"


def test_on_a_gpu_labels_stay_in_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """There a label out of range would end every use of the GPU; which labels are handed out shows without one."""
    seen = set()

    def logs(X, y, train, test, seed):
        seen.update(y.tolist())
        return zoo.plain(X, y, train, test, seed)

    X, y = zoo.rings(0)
    monkeypatch.setattr("pytest_dscore.protocol.interfere._uses_cuda", lambda: True)
    assert probe_leaks(logs, X, y, 3).passed
    assert seen == {0, 1}
    monkeypatch.undo()
    assert probe_leaks(logs, X, y, 3).passed
    assert len(seen) == 3


def test_a_module_refitted_on_all_rows_for_use_is_noted_and_no_leak() -> None:
    def also_ships(X, y, train, test, seed):
        found = zoo.plain(X, y, train, test, seed)
        zoo.fit(zoo.Mlp(), torch.tensor(X, dtype=torch.float32), y, epochs=1)
        return found

    verdict = probe(also_ships, zoo.rings, 0)
    assert verdict.passed
    assert any("Mlp in training was given 90 rows" in note for note in verdict.notes)


def test_rows_count_as_trained_where_a_gradient_reaches_them() -> None:
    X = np.arange(12.0).reshape(6, 2) + 0.1
    Z, model = torch.tensor(X, dtype=torch.float32), zoo.Mlp()
    with watch_training(X, lambda: 0) as seen:
        loss = nn.functional.cross_entropy(model(Z)[:4], torch.tensor([0, 1, 0, 1]))
        assert seen().modules == []
        loss.backward()
        model(Z[4:])
    (record,) = seen().modules
    assert record.module is model
    assert len(record.seen) == 4
    assert len(seen().watched) == 2
    model(Z).sum().backward()  # after the block nothing is noted
    assert len(record.seen) == 4
