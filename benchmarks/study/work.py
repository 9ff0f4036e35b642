"""From a recipe to what is kept of it: trained and measured where the store has neither, else read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import reduce
from pathlib import Path

from benchmarks.study import data as datasets
from benchmarks.study import measuring, networks, training, unseen
from benchmarks.study.data import Data
from benchmarks.study.keep import Store, key
from benchmarks.study.measured import Measured, Recipe
from benchmarks.study.measuring import Wanted
from benchmarks.study.training import Trained

#: Test examples that are measured and kept in one piece: so much a kill loses.
PIECE = 2000

#: Kinds of passes by name; a task asks for one or several.
PASSES = {
    "everything": measuring.everything,
    "table": measuring.table_only,
    "seeds": measuring.further_seeds,
    "unseen": measuring.unseen_only,
}


@dataclass(frozen=True)
class Task:
    """One network to be trained and measured.

    Parameters
    ----------
    recipe
        How it is trained.
    passes
        Names in `PASSES`.
    examples
        Test examples to measure it on.
    """

    recipe: Recipe
    passes: tuple[str, ...] = ("everything",)
    examples: int = PIECE


@dataclass(frozen=True)
class Result:
    """What is known of one network: hits, and p where its augmentation was guided by a score."""

    measured: Measured
    p: float | None


def do(task: Task, store: Store, folder: Path | None = None) -> None:
    """Train and measure what the store lacks; `folder` is that of `data.load`."""
    if result(task, store, folder) is None:
        _finish(task, store, datasets.load(task.recipe.dataset, folder))


def result(task: Task, store: Store, folder: Path | None = None) -> Result | None:
    """What the store has of a task, None where anything is missing."""
    data = datasets.load(task.recipe.dataset, folder)
    kept = store.weights(_trained_key(task.recipe, data))
    found = [[store.hits(name) for name in names] for names in _names(task, data)]
    if kept is None or not all(all(parts) for parts in found):
        return None
    joined = [measuring.joined([part for part in parts if part is not None]) for parts in found]
    return Result(reduce(measuring.merged, joined), kept[1]["p"])


def trained(recipe: Recipe, data: Data, store: Store) -> Trained:
    """The network of a recipe, from the store or trained and kept now."""
    name = _trained_key(recipe, data)
    kept = store.weights(name)
    if kept is not None:
        model = networks.build(recipe.architecture, data.channels, data.size, data.classes)
        model.load_state_dict(kept[0])
        return Trained(model.eval(), kept[1]["p"])
    guided = recipe.augmentation == "ours"
    plain = trained(replace(recipe, augmentation="none"), data, store).model if guided else None
    new = training.train(recipe, data, plain)
    store.keep_weights(name, new.model.state_dict(), {"p": new.p, "recipe": asdict(recipe)})
    return new


def _finish(task: Task, store: Store, data: Data) -> None:
    network = trained(task.recipe, data, store)
    for passes, names in zip(task.passes, _names(task, data), strict=True):
        for (start, stop), name in zip(_pieces(task, data), names, strict=True):
            if store.hits(name) is None:
                wanted = PASSES[passes](data.size)
                store.keep_hits(name, measuring.measure(network.model, task.recipe, data, wanted, start, stop))


def _names(task: Task, data: Data) -> list[list[str]]:
    """Names in the store: a list for each kind of passes, in it one for each piece of the test set."""
    return [
        [_measured_key(task.recipe, data, PASSES[passes](data.size), piece) for piece in _pieces(task, data)]
        for passes in task.passes
    ]


def _pieces(task: Task, data: Data) -> list[tuple[int, int]]:
    end = min(task.examples, len(data.test_labels))
    return [(start, min(start + PIECE, end)) for start in range(0, end, PIECE)]


def _trained_key(recipe: Recipe, data: Data) -> str:
    return key(recipe, data=data.digest, networks=networks.VERSION, training=training.VERSION)


def _measured_key(recipe: Recipe, data: Data, wanted: Wanted, piece: tuple[int, int]) -> str:
    versions = {"measuring": measuring.VERSION, "unseen": unseen.VERSION}
    return key(recipe, network=_trained_key(recipe, data), passes=asdict(wanted), piece=piece, **versions)
