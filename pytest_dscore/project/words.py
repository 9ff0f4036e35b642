"""Names as the words they are made of: what ``get_testSet`` and ``load_holdout_images`` are about."""

from __future__ import annotations

import re
from collections.abc import Collection

HOLDOUT = {"test", "holdout", "heldout", "eval", "evaluation", "validation", "valid", "val", "dev"}
TRAINING = {"train", "training", "fit"}
DATA = {"data", "dataset", "set", "split", "images", "examples", "samples", "loader", "dataloader", "xy"}
MODEL = {"model", "net", "network", "cnn", "classifier", "module", "backbone"}
MAKING = {"build", "make", "create", "get", "load", "new", "init", "construct", "default", "return", "fetch", "read"}
#: What a function does first that returns a figure, or nothing.
DOING = {"train", "fit", "save", "evaluate", "score", "run", "main", "check", "plot", "print", "export", "report"}
#: Parts of a model rather than a model.
PARTS = {"block", "layer", "head", "encoder", "decoder", "attention", "norm", "pool", "embedding", "activation"}
#: Modules that are no models at all.
NO_MODELS = {"loss", "criterion", "metric", "augment", "augmentation", "transform"}
#: What one would not gate first.
LESSER = {"plain", "baseline", "fragile", "toy", "dummy", "example", "mock", "fake", "old", "tiny", "small"}


def words(name: str) -> list[str]:
    """Split a name at underscores and capitals, in small letters; ``hold_out`` is one word, ``testset`` two."""
    apart = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)).lower()
    apart = re.sub(r"(?<![a-z])(hold|held)_out(?![a-z])", r"\1out", apart)
    return [word for part in re.split(r"[^a-z0-9]+", apart) if part for word in _two(part)]


def _two(part: str) -> list[str]:
    for first in HOLDOUT | TRAINING:
        if part.startswith(first) and part[len(first) :] in DATA:
            return [first, part[len(first) :]]
    return [part]


def plain_name(name: str, without: Collection[str] = ()) -> str:
    """Return a name that can stand in a TOML key and a test's name, of the words that are left."""
    return "-".join(word for word in words(name) if word not in without)
