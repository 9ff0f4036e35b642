"""A protocol as declared in ``protocol.yaml``, with fingerprints of the data and splits that it was declared for."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

try:
    from yaml import CSafeDumper as SafeDumper  # ten times as fast
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # a PyYAML that was built without libyaml
    from yaml import SafeDumper, SafeLoader  # type: ignore[assignment]

from ..errors import SettingsError, first_line
from ..names import unknown_name
from .compare import Comparison
from .duplicates import row_hashes
from .inputs import is_sparse, n_rows
from .leak import Leak, make_leak
from .nested import as_data
from .probe import as_folds
from .splits import Fold, Rows

VERSION = 1
#: Larger files are refused unread: this is a manifest of 25,000 splits.
MOST_BYTES = 4 * 2**20
_DEEPEST = 20
#: What file systems without hard links answer.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EACCES}

Reference = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")]
# The name of the hash keeps YAML from reading thirty-two digits as a number.
Fingerprint = Annotated[str, Field(pattern=r"^blake2b:[0-9a-f]{32}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Part(_Strict):
    """The training or the test part of a split: how many rows, and which, in any order."""

    rows: int = Field(ge=1)
    fingerprint: Fingerprint


class Split(_Strict):
    """One split."""

    train: Part
    test: Part


class DataFingerprints(_Strict):
    """Fingerprints of what the rows hold, in their order; groups None where there are none."""

    features: Fingerprint
    labels: Fingerprint
    groups: Fingerprint | None = None


class Manifest(_Strict):
    """A declared protocol.

    Parameters
    ----------
    version
        Of the layout of the file, 1.
    name
        What the protocol is called.
    experiment, data
        ``"module:callable"``: what is run, and what returns the data.
    seed
        Seed of the protocol, and of the splits where only their number is given.
    scoring
        Name of the scorer.
    selection
        How hyper-parameters are chosen: ``"internal"`` (on each split's training rows), ``"external"`` (on all rows),
        ``"median"`` (the median of what some splits chose), or ``"none"``.
    rows
        Number of rows.
    fingerprints
        Of features, labels and groups.
    splits
        Of each split, which rows are trained on and which are tested.
    """

    version: int = Field(ge=VERSION, le=VERSION)
    name: str = Field(min_length=1)
    experiment: Reference
    data: Reference
    seed: int = Field(ge=0)
    scoring: str = Field(min_length=1)
    selection: Literal["internal", "external", "median", "none"]
    rows: int = Field(ge=1)
    fingerprints: DataFingerprints
    splits: Annotated[tuple[Split, ...], Field(strict=False, min_length=1)]

    def check(self, X: Any, y: Any, splits: Any, groups: Any = None) -> tuple[str, ...]:
        """Compare the manifest with data and splits as they are now.

        Parameters
        ----------
        X, y, groups
            Data of n rows, as in `make_manifest`.
        splits
            List of (train rows, test rows), splitter, or number of folds.

        Returns
        -------
        tuple of str
            What moved, in words; empty where nothing did.

        Raises
        ------
        SettingsError
            The data or splits cannot be used at all.
        """
        X, labels, group_array, folds = _inputs(X, y, splits, groups, self.seed)
        rows = len(labels)
        moved = [] if rows == self.rows else [f"the number of rows ({self.rows} in the manifest, {rows} now)"]
        now = _data_fingerprints(X, labels, group_array)
        moved += [f"the {part}" for part in ("features", "labels") if getattr(now, part) != self._of(part)]
        if (now.groups is None) != (self.fingerprints.groups is None):
            before, after = ("some", "none") if now.groups is None else ("none", "some")
            moved.append(f"the groups (the manifest has {before}, now there are {after})")
        elif now.groups != self.fingerprints.groups:
            moved.append("the groups")
        if len(folds) != len(self.splits):
            moved.append(f"the number of splits ({len(self.splits)} in the manifest, {len(folds)} now)")
        for i, (split, fold) in enumerate(zip(self.splits, folds, strict=False)):
            moved += _moved_parts(i, split, fold)
        return tuple(moved)

    def leaks(self, comparison: Comparison | None = None) -> tuple[Leak, ...]:
        """The leak that is declared: ``external`` and ``median`` choose with rows that are tested.

        Parameters
        ----------
        comparison
            What `compare_protocols` measured on this data, to name the bias; None where it was not measured.

        Returns
        -------
        tuple of Leak
            One of kind ``"selection"``, or none.
        """
        rows = {
            "external": "hyper-parameters are chosen on all rows, those of the test parts included",
            "median": "hyper-parameters are chosen from other splits, whose training parts hold this split's test rows",
        }.get(self.selection)
        if rows is None:
            return ()
        where = f"the declared protocol {self.name!r} (selection: {self.selection})"
        if comparison is None:
            return (make_leak("selection", where, f"{rows}; the bias was not measured, compare_protocols does it"),)
        bias = comparison.bias[self.selection]
        evidence = f"{rows}; on this data it flatters the error by {bias.mean:.3f} +- {bias.se:.3f} points"
        return (make_leak("selection", where, f"{evidence} (p = {bias.p_value:.3g})", bias.mean),)

    def _of(self, part: str) -> str:
        return str(getattr(self.fingerprints, part))


def make_manifest(
    X: Any,
    y: Any,
    splits: Any,
    groups: Any = None,
    *,
    name: str,
    experiment: str,
    data: str,
    seed: int = 0,
    scoring: str = "accuracy",
    selection: str = "internal",
) -> Manifest:
    """Declare a protocol for data and splits as they are now.

    Parameters
    ----------
    X
        n rows: array of any shape, torch tensor, sparse matrix, pandas or polars frame. The same numbers in another
        container or precision have the same fingerprint.
    y, groups
        n labels; n groups, or None.
    splits
        List of (train rows, test rows), splitter (with its seed set), or number of folds.
    name, experiment, data, seed, scoring, selection
        See `Manifest`.

    Raises
    ------
    SettingsError
        A field cannot be used, or the splitter gives other splits every time.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 0, 1])
    >>> manifest = make_manifest(X, y, 2, name="small", experiment="project.train:run", data="project.data:load")
    >>> manifest.check(X, y, 2)
    ()
    >>> manifest.check(X, 1 - y, 2)
    ('the labels',)
    """
    X, labels, group_array, folds = _inputs(X, y, splits, groups, seed)
    values = {
        "version": VERSION,
        "name": name,
        "experiment": experiment,
        "data": data,
        "seed": seed,
        "scoring": scoring,
        "selection": selection,
        "rows": len(labels),
        "fingerprints": _data_fingerprints(X, labels, group_array).model_dump(),
        "splits": [{"train": _part(train).model_dump(), "test": _part(test).model_dump()} for train, test in folds],
    }
    return _validate(values, "the manifest", {})


def load_manifest(path: str | Path) -> Manifest:
    """Read a manifest from a YAML file.

    Parameters
    ----------
    path
        The file, UTF-8, of at most 4 MiB. Anchors, aliases, tags and keys that stand twice are refused.

    Raises
    ------
    SettingsError
        The file cannot be read, is not such YAML, or a field is missing, unknown or of the wrong type; with the line
        where that is known.
    """
    path = Path(path)
    try:
        node = _compose(_read(path), path)
        lines = dict(_lines(node, path, ()))
        values = SafeLoader("").construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise SettingsError(
            f"{path}{_at(mark.line if mark else None)}: this is not YAML that a manifest may hold "
            f"({first_line(Exception(error.problem or error.context))}): mend it, or write it anew with write_manifest."
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsError(f"{path} is not YAML ({first_line(error)}): write it anew with write_manifest.") from None
    if not isinstance(values, dict):
        raise SettingsError(f"{path} holds a {type(values).__name__}: a manifest is a mapping of names to values.")
    return _validate(values, str(path), lines)


def write_manifest(path: str | Path, manifest: Manifest, *, overwrite: bool = False) -> None:
    """Write a manifest as YAML: the whole file or, where that fails, nothing.

    Parameters
    ----------
    path
        The file, in a directory that exists.
    manifest
        What to write.
    overwrite
        Replace a file that is there.

    Raises
    ------
    SettingsError
        The file is there already, cannot be written, or would be too large to be read again.
    """
    path = Path(path)
    text = "# Made by pytest_dscore.protocol.write_manifest; checked against the data by Manifest.check.\n"
    text += yaml.dump(manifest.model_dump(mode="json"), Dumper=SafeDumper, sort_keys=False, allow_unicode=True)
    if len(text.encode()) > MOST_BYTES:
        raise SettingsError(
            f"{path} would be larger than {MOST_BYTES // 2**20} MiB with {len(manifest.splits)} splits: declare fewer."
        )
    try:
        _write_whole(path, text, overwrite)
    except FileExistsError:
        raise SettingsError(f"{path} exists already: pass overwrite=True to replace it.") from None
    except OSError as error:
        raise SettingsError(f"{path} cannot be written ({error.strerror}): name a file that can.") from error


def fingerprint(X: Any) -> str:
    """Fingerprint of rows in their order: the same for the same numbers in another container or precision.

    Parameters
    ----------
    X
        Array of any shape, torch tensor, sparse matrix, pandas or polars frame or series, or list; n rows.

    Returns
    -------
    str
        ``"blake2b:"`` and 32 hexadecimal digits.
    """
    plain = _plain(X)
    digest = hashlib.blake2b(f"{n_rows(plain)}:".encode(), digest_size=16)
    for key in row_hashes(plain):
        digest.update(key)
    return f"blake2b:{digest.hexdigest()}"


def _plain(X: Any) -> Any:
    """Rows as an array of double precision numbers where they are numbers; otherwise (and sparse) as they are."""
    if is_sparse(X):
        return X.tocsr().astype(np.float64)
    if hasattr(X, "columns"):
        columns = [_plain(np.asarray(X[name])) for name in X.columns]
        if all(column.dtype == np.float64 for column in columns):
            return np.stack(columns, axis=1)
        return X
    values = _array(X)
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
        return np.where(np.isnan(values), np.nan, values)  # NaN has many bit patterns
    if values.dtype.kind not in "iub":
        return values.reshape(len(values), -1) if values.dtype.kind in "US" else values
    numbers = values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        exact = values.dtype.kind == "b" or np.array_equal(numbers.astype(values.dtype), values)
    # Long integers (keys, times) that are not exact as floats stay what they are.
    return numbers if exact else values


def _array(X: Any) -> NDArray[Any]:
    if hasattr(X, "detach"):  # a torch tensor, on any device, of any precision
        X = X.detach().cpu()
        X = X.double() if X.is_floating_point() else X
    return np.asarray(X)


def _data_fingerprints(X: Any, labels: NDArray[Any], groups: NDArray[Any] | None) -> DataFingerprints:
    return DataFingerprints(
        features=fingerprint(X),
        labels=fingerprint(labels),
        groups=None if groups is None else fingerprint(groups),
    )


def _part(rows: Rows) -> Part:
    return Part(rows=len(rows), fingerprint=fingerprint(np.sort(rows)))


def _moved_parts(number: int, split: Split, fold: Fold) -> Iterator[str]:
    for name, rows in zip(("train", "test"), fold, strict=True):
        declared: Part = getattr(split, name)
        now = _part(rows)
        if now.rows != declared.rows:
            yield f"the {name} part of split {number} ({declared.rows} rows in the manifest, {now.rows} now)"
        elif now != declared:
            yield f"the {name} part of split {number} (as many rows, but other ones)"


def _inputs(
    X: Any, y: Any, splits: Any, groups: Any, seed: int
) -> tuple[Any, NDArray[Any], NDArray[Any] | None, list[Fold]]:
    X = _array(X) if hasattr(X, "detach") else X
    y = _array(y) if hasattr(y, "detach") else y
    X, labels, group_array = as_data(X, y, groups)
    if not len(labels):
        raise SettingsError("X has no rows: pass the data that the manifest is for.")
    # A generator of pairs can be read once only.
    splits = list(splits) if hasattr(splits, "__iter__") and not hasattr(splits, "split") else splits
    folds = as_folds(splits, X, labels, group_array, seed)
    again = as_folds(splits, X, labels, group_array, seed)
    if not _same(folds, again):
        raise SettingsError(
            f"{type(splits).__name__} gives other splits every time, so they cannot be declared: set its random_state."
        )
    return X, labels, group_array, folds


def _same(folds: list[Fold], others: list[Fold]) -> bool:
    pairs = zip(folds, others, strict=False)
    same = all(np.array_equal(a, b) for fold, other in pairs for a, b in zip(fold, other, strict=True))
    return len(folds) == len(others) and same


def _read(path: Path) -> str:
    """Text of a file that is not too large.

    Raises
    ------
    SettingsError
        It is, or cannot be read.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):  # opening a pipe would wait for a writer
        raise SettingsError(f"{path} is a pipe or a device: name a file.")
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise SettingsError(f"{path} does not exist: write it with write_manifest.") from None
    except OSError as error:
        raise SettingsError(f"{path} cannot be read ({error.strerror}): name a file that can.") from error
    if len(content) > MOST_BYTES:
        raise SettingsError(
            f"{path} is larger than {MOST_BYTES // 2**20} MiB, so it is no manifest: name another file."
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n")
        raise SettingsError(f"{path}{_at(line)}: this is not UTF-8: save the file as UTF-8.") from None


def _compose(text: str, path: Path) -> yaml.Node:
    """The one document of a text as nodes, without anchors and not nested without end.

    Raises
    ------
    SettingsError
        There is none, or it holds what a manifest must not.
    """
    depth = 0
    # The events first: an alias costs nothing here, and everything once it is followed.
    for event in yaml.parse(text, Loader=SafeLoader):
        if getattr(event, "anchor", None) is not None:
            raise SettingsError(
                f"{path}{_at(_line(event.start_mark))}: anchors and aliases (& and *) are refused: write the value out."
            )
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise SettingsError(
                f"{path}{_at(_line(event.start_mark))}: this is nested too deeply for a manifest: mend it."
            )
    node = yaml.compose(text, Loader=SafeLoader)
    if node is None:
        raise SettingsError(f"{path} is empty: write it with write_manifest.")
    if not isinstance(node, yaml.MappingNode):
        raise SettingsError(
            f"{path}{_at(_line(node.start_mark))}: a manifest is a mapping of names to values: mend it."
        )
    return node


def _lines(node: yaml.Node, path: Path, place: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Line of every key and entry by its place.

    Raises
    ------
    SettingsError
        A key stands twice or is no text.
    """
    yield place, _line(node.start_mark)
    if isinstance(node, yaml.SequenceNode):
        for i, entry in enumerate(node.value):
            yield from _lines(entry, path, (*place, i))
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            line = _line(key.start_mark)
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                raise SettingsError(f"{path}{_at(line)}: a key must be a plain word: mend it.")
            if key.value in seen:
                first = seen[key.value] + 1
                raise SettingsError(
                    f"{path}{_at(line)}: {key.value} stands there twice (first in line {first}): keep one."
                )
            seen[key.value] = line
            yield from _lines(value, path, (*place, key.value))
            yield (*place, key.value), line


def _validate(values: Any, where: str, lines: dict[tuple[Any, ...], int]) -> Manifest:
    version = values.get("version")
    if isinstance(version, int) and not isinstance(version, bool) and version > VERSION:
        raise SettingsError(
            f"{where}{_at(lines.get(('version',)))}: version {version} was written by a newer pytest-dscore (this one "
            f"reads version {VERSION}): update pytest-dscore."
        )
    try:
        return Manifest.model_validate(values)
    except ValidationError as error:
        errors = error.errors()
    more = f" ({len(errors) - 1} more to mend after that)" if len(errors) > 1 else ""
    raise SettingsError(f"{_sentence(errors[0], where, lines)}{more}.")


def _sentence(error: ErrorDetails, where: str, lines: dict[tuple[Any, ...], int]) -> str:
    place = error["loc"]
    line = next((lines[place[:i]] for i in range(len(place), -1, -1) if place[:i] in lines), None)
    key = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).lstrip(".")
    start = f"{where}{_at(line)}: "
    expected = _EXPECTED.get(str(place[-1]), "") if place else ""
    if error["type"] == "missing":
        return f"{start}{key} is missing: {expected or 'set it'}"
    if error["type"] == "extra_forbidden":
        return start + unknown_name("key", place[-1], _fields(place[:-1])).replace("? Valid", "; valid").rstrip(".")
    message = str(error["msg"])
    given = repr(error["input"])
    given = given if len(given) <= 60 else f"{given[:57]}..."
    return f"{start}{key} = {given} cannot be used: {expected or message[:1].lower() + message[1:]}"


def _fields(place: Sequence[Any]) -> Sequence[str]:
    """Names that are valid at a place in the manifest."""
    kinds: dict[Any, type[BaseModel]] = {"fingerprints": DataFingerprints, "train": Part, "test": Part}
    if not place:
        return tuple(Manifest.model_fields)
    return tuple(kinds.get(place[-1], Split).model_fields)


_EXPECTED = {
    "version": f"give {VERSION}, the version of this layout",
    "name": "give a name",
    "experiment": 'give "module:callable", the function that is run',
    "data": 'give "module:callable", the function that returns the data',
    "seed": "give a whole number >= 0",
    "scoring": 'give the name of a scorer, such as "accuracy"',
    "selection": 'give "internal", "external", "median" or "none"',
    "rows": "give a whole number >= 1",
    "fingerprints": "write it anew with write_manifest",
    "splits": "write them anew with write_manifest",
    "features": "write it anew with write_manifest",
    "labels": "write it anew with write_manifest",
    "groups": "write it anew with write_manifest",
    "fingerprint": "write it anew with write_manifest",
}


def _line(mark: Any) -> int:
    return int(mark.line)


def _at(line: int | None) -> str:
    return "" if line is None else f", line {line + 1}"


def _write_whole(path: Path, text: str, overwrite: bool) -> None:
    """Write beside the file, then put it in place in one step."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if overwrite:
            os.replace(temporary, path)
            return
        try:
            os.link(temporary, path)  # unlike a rename, this fails where there is a file
        except OSError as error:
            if error.errno not in _NO_LINKS or path.exists():
                raise
            os.rename(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
