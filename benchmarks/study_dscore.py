"""The study of the D-Score: the paper's Table VI and Figure 7; validity, stability and pruning.

``OMP_NUM_THREADS=1 python -m benchmarks.study_dscore`` trains and measures all networks (hours on one core), analyses
them and writes docs/study.md with its pictures. Each network is kept in ``--state`` when it is finished, so the command
can be stopped (Ctrl-C, a kill) and goes on when it is given again. ``--stages validity page`` does a part,
``--smallest`` all of it in small, on scikit-learn's digits alone, in less than a minute.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import torch
import torchvision  # type: ignore[import-untyped]
from rich.console import Console

from benchmarks.study import appendix, data, figure_seven, page, populations, running, table_six
from benchmarks.study.keep import DEFAULT, Store
from benchmarks.study.measured import Measured
from benchmarks.study.work import Result, Task

DOCS = Path(__file__).resolve().parents[1] / "docs"
COMMAND = "python -m benchmarks.study_dscore"
PAGE = "study.md"
PLOTS = "study"


@dataclass(frozen=True)
class Study:
    """The settings of a run.

    Parameters
    ----------
    store
        Where results are kept.
    folder
        Of torchvision's data sets, see `data.load`.
    out
        Where the page goes; its pictures into a folder beside it.
    jobs
        Processes.
    console
        Where progress is shown.
    smallest
        Do all of it in small, on the digits.
    mnist
        Also take a population on MNIST.
    """

    store: Store
    folder: Path | None
    out: Path
    jobs: int
    console: Console
    smallest: bool = False
    mnist: bool = False

    @property
    def plots(self) -> Path:
        """Folder of the pictures."""
        return self.out / PLOTS

    @property
    def sections(self) -> Path:
        """Folder of the finished sections, from which the page is put together."""
        return self.store.folder / "sections" / ("smallest" if self.smallest else "full")

    @property
    def schedules(self) -> Mapping[str, table_six.Schedule]:
        """Of the table and the figure."""
        return table_six.SMALLEST if self.smallest else table_six.SCHEDULES

    def populations(self) -> dict[str, list[Task]]:
        """Networks for validity, by population."""
        return populations.smallest() if self.smallest else populations.populations(mnist=self.mnist)

    def stable(self) -> list[Task]:
        """Networks for stability."""
        if not self.smallest:
            return populations.stable()
        tasks = populations.smallest()["mixed"]
        return [Task(task.recipe, ("everything", "seeds"), task.examples) for task in tasks[:2]]

    def run(self, title: str, tasks: Iterable[Task]) -> dict[Task, Result]:
        """Do tasks, or read what is kept of them."""
        wanted = list(dict.fromkeys(tasks))
        results = running.run(title, wanted, self.store, self.folder, self.jobs, self.console)
        return dict(zip(wanted, results, strict=True))


def table(study: Study) -> str:
    """The paper's Table VI."""
    if study.smallest:
        plan = table_six.tasks(study.schedules, table_six.SEEDS[:2], table_six.SMALLEST_EXAMPLES)
    else:
        plan = table_six.tasks(study.schedules)
    found = study.run("table", (task for rows in plan.values() for row in rows for task in row))
    return table_six.report({name: [[found[task] for task in row] for row in rows] for name, rows in plan.items()})


def figure(study: Study) -> str:
    """The paper's Figure 7."""
    if study.smallest:
        few, seeds = figure_seven.SMALLEST_PROBABILITIES, figure_seven.SEEDS[:1]
        plan = figure_seven.tasks(study.schedules, few, seeds, table_six.SMALLEST_EXAMPLES)
    else:
        plan = figure_seven.tasks(study.schedules)
    found = study.run("figure", (task for curve in plan.values() for tasks in curve.values() for task in tasks))
    results = {name: {p: [found[task] for task in tasks] for p, tasks in curve.items()} for name, curve in plan.items()}
    return figure_seven.report(results, study.plots)


def validity(study: Study) -> str:
    """Whether the score predicts accuracy under changes that it does not use."""
    # The analyses are loaded when they are needed: training and measuring does without them.
    from benchmarks.study import validity as analysis

    measured = _populations(study)
    if study.smallest:
        return analysis.report(measured, study.plots, draws=50, splits=4)
    return analysis.report(measured, study.plots)


def stability(study: Study) -> str:
    """How many examples the score needs."""
    from benchmarks.study import stability as analysis

    return analysis.report(_mixed(study), study.plots, repeats=4 if study.smallest else 100)


def pruning(study: Study) -> str:
    """Whether regions whose deletion helps are more than chance."""
    from benchmarks.study import pruning as analysis

    return analysis.report(_mixed(study))


def _mixed(study: Study) -> list[Measured]:
    """The mixed networks; those that were measured on more examples and with further seeds with all of that."""
    mixed = {one.recipe: one for one in _populations(study)["mixed"]}
    mixed |= {task.recipe: result.measured for task, result in study.run("stability", study.stable()).items()}
    return list(mixed.values())


def _populations(study: Study) -> dict[str, list[Measured]]:
    plan = study.populations()
    found = study.run("populations", (task for tasks in plan.values() for task in tasks))
    return {name: [found[task].measured for task in tasks] for name, tasks in plan.items()}


#: What the stages write, in the order of the page.
SECTIONS: Mapping[str, Callable[[Study], str]] = MappingProxyType(
    {"table": table, "figure": figure, "validity": validity, "stability": stability, "pruning": pruning}
)
STAGES = (*SECTIONS, "page")


def write_page(study: Study) -> Path:
    """Put the finished sections together; those that are missing are named on the page."""
    texts = {name: study.sections / f"{name}.md" for name in SECTIONS}
    there = {name: path.read_text(encoding="utf-8").strip() for name, path in texts.items() if path.exists()}
    missing = [name for name in SECTIONS if name not in there]
    note = f"Not yet done (the same command goes on): {page.joined(missing)}." if missing else ""
    path = study.out / PAGE
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [head(study), note, *there.values(), appendix.report(study.populations())]
    path.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")
    return path


def head(study: Study) -> str:
    """What the page is, made how, with what."""
    flags = " --smallest" if study.smallest else ""
    small = "\n\n**This is the smallest run, which shows that everything works: its figures mean nothing.**"
    made = (
        f"Made by `{COMMAND}{flags}` on {datetime.date.today().isoformat()} with Python {platform.python_version()}, "
        f"torch {torch.__version__}, torchvision {torchvision.__version__}. Do not edit: run it again (what is "
        "finished is kept, see [benchmarks](../benchmarks/README.md))."
    )
    scope = (
        "Networks are small and trained briefly on one core (at most 20,000 training images), so that many could be "
        "had. What is the paper's and what is a reconstruction: [README](../README.md)."
    )
    title = "# A study of the D-Score: the paper's experiments, validity, stability, pruning"
    return "\n\n".join([title, page.wrapped(made), page.wrapped(scope)]) + (small if study.smallest else "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    console = Console(soft_wrap=True)
    state = Path(options.state)
    # What the smallest run finds means nothing, and must not take the place of the real page.
    out = Path(options.out) if options.out else state / "smallest" if options.smallest else DOCS
    study = Study(Store(state), options.data, out, options.jobs, console, options.smallest, options.mnist)
    torch.set_num_threads(1)
    try:
        _run(study, options.stages)
    except data.MissingData as error:
        print(f"study_dscore: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstudy_dscore: stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def _run(study: Study, stages: Sequence[str]) -> None:
    for name in _datasets(study, stages):
        data.load(name, study.folder)
    for number, stage in enumerate(stages, 1):
        remain = len(stages) - number
        study.console.print(f"stage {stage} ({number} of {len(stages)}, {remain} remain after it)")
        if stage == "page":
            study.console.print(f"wrote {write_page(study)}")
            continue
        study.sections.mkdir(parents=True, exist_ok=True)
        (study.sections / f"{stage}.md").write_text(SECTIONS[stage](study), encoding="utf-8")


def _datasets(study: Study, stages: Sequence[str]) -> list[str]:
    """What the stages read: looked for before anything is trained."""
    found: list[str] = []
    if {"table", "figure"} & set(stages):
        found += study.schedules
    if {"validity", "stability", "pruning"} & set(stages):
        found += [task.recipe.dataset for tasks in study.populations().values() for task in tasks]
    if {"stability", "pruning"} & set(stages):
        found += [task.recipe.dataset for task in study.stable()]
    return list(dict.fromkeys(found))


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=COMMAND, description=(__doc__ or "").split("\n", maxsplit=1)[0], allow_abbrev=False
    )
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES, help="default: all")
    parser.add_argument("--smallest", action="store_true", help="all of it in small, on the digits, in a minute")
    parser.add_argument("--mnist", action="store_true", help="also a population of 24 networks on MNIST")
    parser.add_argument("--jobs", type=_count, default=1, help="processes, one thread each (default: 1)")
    parser.add_argument("--out", metavar="DIR", help="where the page goes (default: docs, for --smallest in --state)")
    parser.add_argument("--state", default=DEFAULT, metavar="DIR", help=f"finished networks (default: {DEFAULT})")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="full MNIST and CIFAR-10 in torchvision's layout, in place of ../shared/data; CIFAR-10 is then unpickled",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
