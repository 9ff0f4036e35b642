"""``dscore init``: what it finds in a project, what it writes, and that it leaves everything else alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_dscore.names import OPERATOR_NAMES
from pytest_dscore.project import block, init, looking
from pytest_dscore.project.walking import files_below
from pytest_dscore.settings import Settings, load_settings
from tests.cli.conftest import Run
from tests.gates.project import NET, Project

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).resolve().parents[2]
WORKFLOW = ".github/workflows/dscore.yml"
TORCH = "import torch\nfrom torch import nn\n"
MODEL = """
class Net(nn.Module):
    def __init__(self):
        self.conv = nn.Conv2d(1, 1, 3)
    def forward(self, x): ...
"""
DATA = "def test_set():\n    return images, labels\n"


def write(root: Path, name: str, text: str) -> Path:
    """Write a text file, and the folders above it."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def settings(root: Path) -> Settings:
    """What was written, read as the gate does."""
    return load_settings(root, OPERATOR_NAMES)


@pytest.fixture
def toy(root: Path) -> Path:
    """A project with a model and data, and no weights."""
    write(root, "net.py", TORCH + MODEL + DATA)
    return root


# End to end


@pytest.mark.slow
def test_what_was_written_can_be_run(pytester: pytest.Pytester, tmp_path_factory: pytest.TempPathFactory) -> None:
    project = Project(pytester, tmp_path_factory.mktemp("template"))
    (project.path / "pyproject.toml").unlink()
    done = pytester.run(sys.executable, "-m", "pytest_dscore.cli", "init")
    assert done.ret == 0
    model = settings(project.path).models["net"]
    assert (model.factory, model.weights, model.data) == ("net:build", "weights.safetensors", "net:data")
    assert not (project.path / "log").exists()  # nothing of the project was called
    found = project.run("pyproject.toml", subprocess=True)
    assert re.search(r"net \(n=3, delete\) +D-Score +0\.\d{3}", "\n".join(found.outlines))
    project.replace("pyproject.toml", "min_score = 0.5 ", "min_score = 0.01 ")
    project.replace("pyproject.toml", "# max_drop = 0.02 ", "max_drop = 0.02 ")
    project.run("pyproject.toml", "--dscore-update-baseline", subprocess=True).assert_outcomes(passed=6)
    project.run("pyproject.toml", subprocess=True).assert_outcomes(passed=6)


def test_the_bundled_project(root: Path, cli: Run) -> None:
    shutil.copytree(REPOSITORY / "fixtures", root / "fixtures", ignore=shutil.ignore_patterns("__pycache__"))
    done = cli("init")
    assert done.code == 0
    digits = settings(root).models["digits"]
    assert digits.factory == "fixtures.digits:build_model"
    assert digits.weights == "fixtures/digits.safetensors"
    assert digits.data == "fixtures.digits:holdout"
    text = (root / "pyproject.toml").read_text()
    assert '# factory = "fixtures.digits:build_fragile_model"' in text
    assert '# weights = "fixtures/digits_fragile.safetensors"' in text
    assert '# data = "fixtures.digits:training_set"' in text
    for step in ("--dscore-update-baseline", "dscore holdout begin", "dscore doctor", "PLACEHOLDER"):
        assert step in done.flat


def test_nothing_of_the_project_is_run(toy: Path, cli: Run) -> None:
    write(toy, "evil.py", "open('ran', 'w')\nraise SystemExit('ran')\n")
    assert cli("init").code == 0
    assert not (toy / "ran").exists()
    assert "net" not in sys.modules


# What is written, and what is not


@pytest.mark.parametrize(
    "before",
    [
        b"",
        b'[project]\nname = "x"\n',
        b'[project]\nname = "x"',
        b'# \xc3\xa4\r\n[project]\r\nname = "x"\r\n',
        b"[tool.pytest.ini_options]\naddopts = ['-q']\n\n\n",
        b"[tool]\nx = 1\n",
    ],
)
def test_every_byte_before_stays(toy: Path, cli: Run, before: bytes) -> None:
    path = toy / "pyproject.toml"
    path.write_bytes(before)
    path.chmod(0o640)
    assert cli("init").code == 0
    after = path.read_bytes()
    assert after.startswith(before)
    assert path.stat().st_mode & 0o777 == 0o640
    assert settings(toy).models["net"].factory == "net:Net"
    added = after[len(before) :]
    assert (b"\r\n" in before) == (b"\r\n" in added)
    assert added.count(b"\n") == added.count(b"\r\n") or b"\r\n" not in added
    assert [file.name for file in toy.iterdir() if file.name.startswith(".py")] == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tool.dscore]\nn = 2\n", "has [tool.dscore] already, so nothing was written"),
        ("[tool.dscore.models.x]\n", "has [tool.dscore] already"),
        ("tool.dscore.n = 2\n", "has [tool.dscore] already"),
        ("[tool\n", "cannot be read"),
        ("tool = {x = 1}\n", "cannot take a table at its end"),
        ("tool = 3\n", "cannot take a table at its end"),
        ("[[tool]]\nx = 1\n", ""),
    ],
)
def test_what_cannot_be_added_to_is_left_alone(toy: Path, cli: Run, text: str, says: str) -> None:
    path = write(toy, "pyproject.toml", text)
    assert says in cli("init").sentence
    assert path.read_text() == text
    assert not (toy / ".github").exists()


def test_a_second_run_writes_nothing(root: Path, toy: Path, cli: Run) -> None:
    cli("init")
    before = (toy / "pyproject.toml").read_bytes()
    assert "has [tool.dscore] already" in cli("init").sentence
    assert (toy / "pyproject.toml").read_bytes() == before


def test_nor_where_all_of_the_first_is_comments(root: Path, cli: Run) -> None:
    assert cli("init").code == 0
    before = (root / "pyproject.toml").read_bytes()
    assert "all comments, so nothing was written: uncomment it" in cli("init").sentence
    assert (root / "pyproject.toml").read_bytes() == before


def test_a_file_that_changes_meanwhile_is_left_alone(toy: Path, cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(toy, "pyproject.toml", "[project]\n")

    def look(root: Path) -> Any:
        path.write_text("[other]\n")
        return found(root)

    found = looking.look
    monkeypatch.setattr(looking, "look", look)
    assert "was changed by somebody else meanwhile" in cli("init").sentence
    assert path.read_text() == "[other]\n"
    assert sorted(file.name for file in toy.iterdir()) == ["net.py", "pyproject.toml"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_read_only_file_is_left_alone(toy: Path, cli: Run) -> None:
    path = write(toy, "pyproject.toml", "[project]\n")
    path.chmod(0o444)
    assert "is read-only" in cli("init").sentence


def test_a_workflow_that_exists_stays(toy: Path, cli: Run) -> None:
    path = write(toy, WORKFLOW, "mine")
    done = cli("init")
    assert done.code == 0
    assert path.read_text() == "mine"
    assert f"no workflow: {WORKFLOW} exists, and stays as it is" in done.flat


def test_no_workflow_below_the_top_of_the_repository(toy: Path, cli: Run) -> None:
    (toy / ".git").mkdir()
    below = toy / "part"
    write(below, "net.py", TORCH + MODEL + DATA)
    done = cli("init", "--root", "part")
    assert "only at the top of the repository" in done.flat
    assert not (below / ".github").exists()
    assert settings(below).models


def test_the_workflow_is_careful(toy: Path, cli: Run) -> None:
    write(toy, "requirements.txt", "torch\n")
    write(toy, "pyproject.toml", '[project]\nname = "x"\n')
    done = cli("init")
    text = (toy / WORKFLOW).read_text()
    document = yaml.safe_load(text)
    assert document["permissions"] == {"contents": "read"}
    assert set(document[True]) == {"push", "pull_request"}
    runs = [step["run"] for step in document["jobs"]["gate"]["steps"] if "run" in step]
    assert runs[:2] == ["pip install --requirement requirements.txt", "pip install --editable ."]
    assert "pytest --dscore --junitxml=report.xml" in runs
    assert not any("${{" in run for run in runs)
    ours = (REPOSITORY / ".github/workflows/ci.yml").read_text()
    for pin in re.findall(r"uses: (\S+ # \S+)", text):
        assert pin in ours
    assert f"Say in {WORKFLOW} where pytest-dscore comes from" in done.flat


def test_the_workflow_of_a_project_that_depends_on_the_plugin(toy: Path, cli: Run) -> None:
    write(toy, "pyproject.toml", '[project]\nname = "x"\ndependencies = ["pytest_dscore>=0.1"]\n')
    done = cli("init")
    assert "PYTEST_DSCORE" not in (toy / WORKFLOW).read_text()
    assert "comes from" not in done.flat


# Where nothing is found


def uncommented(text: str) -> str:
    """The block as it is when its user took the marks off, and put names in place of what was unknown."""
    lines = [line.removeprefix("# ") if re.match(r"# (\[|[a-z_]+ = |# )", line) else line for line in text.splitlines()]
    return "\n".join(lines).replace("MODULE:FUNCTION", "mine:made")


def test_an_empty_project_gets_a_block_that_is_complete(root: Path, cli: Run) -> None:
    done = cli("init")
    text = (root / "pyproject.toml").read_text()
    assert tomllib.loads(text) == {}
    for sentence in (
        "a model: write a class derived from torch.nn.Module",
        "data to judge on: write a function without",
    ):
        assert sentence in done.flat
    assert "Write what is missing" in done.flat
    (root / "pyproject.toml").write_text(uncommented(text))
    found = settings(root)
    assert list(found.models) == ["mine"]
    assert list(found.holdouts) == ["mine-test"]
    assert list(found.protocols) == ["my-protocol"]


@pytest.mark.parametrize("text", [TORCH + MODEL, DATA, TORCH + MODEL + "def train_set():\n    return x, y\n"])
def test_half_a_model_is_all_comments(root: Path, cli: Run, text: str) -> None:
    write(root, "net.py", text)
    assert cli("init").code == 0
    written = (root / "pyproject.toml").read_text()
    assert tomllib.loads(written) == {}
    (root / "pyproject.toml").write_text(uncommented(written))
    assert settings(root).models


def test_training_data_are_never_judged_on(root: Path, cli: Run) -> None:
    write(root, "net.py", TORCH + MODEL + "def get_data(train=True):\n    return x, y\n")
    done = cli("init")
    assert "net:get_data (net.py:8): returns a pair; seems to be training data" in done.flat
    assert tomllib.loads((root / "pyproject.toml").read_text()) == {}


def test_an_estimator_gets_a_protocol(root: Path, cli: Run) -> None:
    write(
        root,
        "wine.py",
        "from sklearn.datasets import load_wine\nfrom sklearn.svm import SVC\n"
        "def make_svc():\n    return SVC()\n"
        "def dataset():\n    return load_wine(return_X_y=True)\n",
    )
    assert cli("init").code == 0
    found = settings(root)
    assert found.models == {}
    (protocol,) = found.protocols.values()
    assert (protocol.estimator, protocol.data) == ("wine:make_svc", "wine:dataset")


# What is found


def references(root: Path, *files: str) -> tuple[list[str], list[str]]:
    """Names of the models and of the data found in ``mod.py`` and further files."""
    for number, text in enumerate(files):
        write(root, f"mod{number or ''}.py", TORCH + text)
    found = looking.look(root)
    return tuple([one.reference.partition(":")[2] for one in kind] for kind in (found.models, found.data))  # type: ignore[return-value]


INIT = "    def __init__(self{}):\n        self.c = nn.Conv2d(1, 1, 3)\n    def forward(self, x): ...\n"


@pytest.mark.parametrize(
    ("text", "models"),
    [
        ("class A(nn.Module):\n" + INIT.format(""), ["A"]),
        ("class A(torch.nn.Module):\n" + INIT.format(", width=3, *, depth=2, **more"), ["A"]),
        ("class A(nn.Module):\n" + INIT.format(", width"), []),
        ("class A(nn.Module):\n" + INIT.format(", *, width"), []),
        ("import torch.nn as n\nclass A(n.Module):\n" + INIT.format(""), ["A"]),
        ("from torch.nn import Module as M\nclass A(M):\n" + INIT.format(""), ["A"]),
        ("class A:\n" + INIT.format(""), []),
        ("class A(nn.Module):\n    x = 1\n", []),  # no forward
        ("class _A(nn.Module):\n" + INIT.format(""), []),
        ("class FocalLoss(nn.Module):\n" + INIT.format(""), []),
        # The base is a part, and may be what one wants: after the others.
        ("class B(nn.Module):\n" + INIT.format("") + "class A(B):\n    pass\n", ["A", "B"]),
        ("class B(nn.Module):\n" + INIT.format(", w") + "class A(B):\n    pass\n", []),
        ("class A(nn.Module):\n" + INIT.format("") + "def build():\n    return A()\n", ["build", "A"]),
        ("class A(nn.Module):\n" + INIT.format(", w") + "def f():\n    net = A(3)\n    return net.eval()\n", ["f"]),
        ("def f() -> nn.Module:\n    return magic()\n", ["f"]),
        ("def f() -> 'nn.Module':\n    return magic()\n", ["f"]),
        ("def f(x) -> nn.Module:\n    return magic()\n", []),
        ("def f():\n    return nn.Sequential(nn.Conv2d(1, 1, 3))\n", ["f"]),
        ("import torchvision\ndef f():\n    return torchvision.models.resnet18()\n", ["f"]),
        ("def build_model():\n    return magic()\n", ["build_model"]),
        ("def build_model() -> int:\n    return magic()\n", []),
        ("def build_model():\n    print('x')\n", []),
        ("def build_model():\n    yield magic()\n    return magic()\n", []),
        ("async def build_model():\n    return magic()\n", []),
        ("def train_model():\n    return magic()\n", []),
        ("def model_parameters():\n    return magic()\n", []),
        ("import pytest\n@pytest.fixture\ndef model():\n    return magic()\n", []),
        ("class T:\n    def build_model(self):\n        return magic()\n", []),
        ("from sklearn.svm import SVC\ndef build_classifier():\n    return SVC()\n", []),
    ],
)
def test_models(root: Path, text: str, models: list[str]) -> None:
    assert references(root, text)[0] == models


def test_a_class_is_known_across_files(root: Path) -> None:
    base = "class Base(nn.Module):\n" + INIT.format("")
    write(root, "pkg/__init__.py", "from .base import Base\n")
    write(root, "pkg/base.py", TORCH + base)
    write(root, "pkg/deep/net.py", "from ..base import Base\nclass Net(Base):\n    pass\n")
    write(root, "top.py", "import pkg\nclass Top(pkg.Base):\n    pass\n")
    found = [one.reference for one in looking.look(root).models]
    assert sorted(found) == ["pkg.base:Base", "pkg.deep.net:Net", "top:Top"]
    assert found[-1] == "pkg.base:Base"


def test_a_model_with_convolutions_comes_first(root: Path) -> None:
    plain = "class A(nn.Module):\n    def __init__(self): self.l = nn.Linear(1, 1)\n    def forward(self, x): ...\n"
    models, _ = references(root, plain + "class Z(nn.Module):\n" + INIT.format(""))
    assert models == ["Z", "A"]
    assert "no convolution is seen in it" in looking.look(root).models[1].what


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("def test_set():\n    return x, y\n", ["test_set"]),
        ("def getTestset():\n    return magic()\n", ["getTestset"]),
        ("def hold_out():\n    return magic()\n", ["hold_out"]),
        ("def val_data(root='data'):\n    return magic()\n", ["val_data"]),
        ("def val_data(root):\n    return magic()\n", []),
        ("from torch.utils.data import Dataset\ndef f() -> Dataset:\n    return magic()\n", ["f"]),
        ("def f() -> tuple[torch.Tensor, torch.Tensor]:\n    return magic()\n", ["f"]),
        ("def f() -> tuple[torch.Tensor, torch.Tensor, int]:\n    return magic()\n", []),
        ("def f():\n    return a, b\n", []),
        ("def f(train=False):\n    return a, b\n", ["f"]),
        ("def test_predictions():\n    assert magic()\n", []),
        ("def test_model():\n    return magic()\n", []),
        ("def evaluate_test_set():\n    return x, y\n", []),
        ("def data():\n    return x, y\n", ["data"]),
        ("def data():\n    return {}\n", []),
        ("def val_data():\n    return x, y\ndef train_data():\n    return x, y\n", ["val_data", "train_data"]),
        ("def data():\n    return x, y\ndef test_data():\n    return x, y\n", ["test_data", "data"]),
        ("def data(split='test'):\n    return x, y\ndef more_data():\n    return x, y\n", ["data", "more_data"]),
        (
            "from torch.utils.data import Dataset\nclass Digits(Dataset):\n"
            "    def __init__(self, train=False): ...\n    def __getitem__(self, i): ...\n",
            ["Digits"],
        ),
        (
            "from torch.utils.data import Dataset\nclass Digits(Dataset):\n"
            "    def __init__(self, root): ...\n    def __getitem__(self, i): ...\n",
            [],
        ),
        ("import torchvision\ndef test_set():\n    return torchvision.datasets.MNIST('.')\n", ["test_set"]),
    ],
)
def test_data(root: Path, text: str, data: list[str]) -> None:
    assert references(root, text)[1] == data


def test_a_loader_is_named_with_what_to_do(root: Path, cli: Run) -> None:
    write(root, "d.py", "from torch.utils.data import DataLoader\ndef test_loader():\n    return DataLoader(x)\n")
    assert "d:test_loader (d.py:2) returns a DataLoader, and a gate takes a Dataset or a pair" in cli("init").flat


def safetensors(path: Path, *names: str) -> None:
    """A file of weights whose header names these tensors."""
    from safetensors.torch import save_file
    from torch import zeros

    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: zeros(1) for name in names}, path)


def test_weights_go_by_layers_then_by_name(toy: Path) -> None:
    safetensors(toy / "images.safetensors", "images", "labels")
    safetensors(toy / "other.safetensors", "body.weight")
    safetensors(toy / "run/zz.safetensors", "conv.weight", "conv.bias")
    (toy / "optimizer.pt").write_bytes(b"")
    (toy / "net_best.pth").write_bytes(b"")
    found = looking.look(toy)
    assert [one.path for one in found.weights][:2] == ["run/zz.safetensors", "net_best.pth"]
    assert {one.path for one in found.weights[found.fitting :]} == {"other.safetensors", "optimizer.pt"}


def test_weights_that_do_not_fit_are_comments(toy: Path, cli: Run) -> None:
    safetensors(toy / "other.safetensors", "body.weight")
    assert "weights that fit the model: name the file" in cli("init").flat
    assert settings(toy).models["net"].weights is None
    assert '# weights = "other.safetensors"' in (toy / "pyproject.toml").read_text()


@pytest.mark.parametrize("name", ['net "best".pt', "net\\best.pt", "net\x7f.pt", "net\u00e4\U0001f600.pt", "net'\t.pt"])
def test_any_name_of_a_file_is_written_as_it_is(toy: Path, cli: Run, name: str) -> None:
    (toy / name).write_bytes(b"")
    assert cli("init").code == 0
    assert settings(toy).models["net"].weights == name


# Where it looks


def test_what_is_not_the_project_s_own_is_not_read(toy: Path) -> None:
    skipped = [
        ".hidden/net.py",
        "node_modules/net.py",
        "lib/site-packages/net.py",
        "tests/net.py",
        "pkg/tests/net.py",
        "env/net.py",
        "conda/net.py",
        "test_net.py",
        "net_test.py",
        "conftest.py",
        "setup.py",
        "not-a-name/net.py",
        "build/net.py",
    ]
    for name in skipped:
        write(toy, name, TORCH + MODEL)
    write(toy, "env/pyvenv.cfg", "")
    (toy / "conda/conda-meta").mkdir()
    (toy / "loop").symlink_to(toy, target_is_directory=True)
    assert [one.reference for one in looking.look(toy).models] == ["net:Net"]


def test_a_file_in_another_encoding(root: Path) -> None:
    (root / "net.py").write_bytes(b"# coding: latin-1\n# \xe4\n" + (TORCH + MODEL).encode())
    found = looking.look(root)
    assert ([one.reference for one in found.models], found.remarks) == (["net:Net"], ())


def test_files_that_do_not_parse_are_named(toy: Path, cli: Run) -> None:
    write(toy, "broken.py", "def f(:\n")
    (toy / "bytes.py").write_bytes(b"\xff\xfe\x00")
    write(toy, "deep.py", "x = " + "(" * 5000)
    write(toy, "huge.py", "#" * 1_000_001)
    write(toy, "warns.py", "x = '\\d'\nif x is 'y': pass\n")
    done = cli("init")
    assert done.code == 0
    for name in ("broken.py was left out: it is no Python", "bytes.py was left out", "deep.py was left out"):
        assert name in done.flat
    assert "huge.py was not read: it is larger than 1,000 kB" in done.flat
    assert "warns.py" not in done.flat


def test_the_search_has_an_end(root: Path) -> None:
    for number in range(12):
        write(root, f"a{number:02}.py", "")
    found = files_below(root, most_sources=10)
    assert len(found.sources) == 10
    assert found.remarks[0].startswith("the search ended after 10 Python files")
    assert files_below(root, most_entries=5).remarks
    assert files_below(root).remarks == ()


def test_a_src_layout(root: Path, cli: Run) -> None:
    write(root, "src/pkg/net.py", TORCH + MODEL + DATA)
    said = 'set pythonpath = ["src"] in [tool.pytest.ini_options]'
    assert said in cli("init").flat
    assert settings(root).models["net"].factory == "pkg.net:Net"
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["src"]\n')
    assert said not in cli("init").flat


def test_src_as_a_package_is_no_layout(root: Path) -> None:
    write(root, "src/__init__.py", "")
    write(root, "src/net.py", TORCH + MODEL)
    found = looking.look(root)
    assert ([one.reference for one in found.models], found.src_layout) == (["src.net:Net"], False)


def test_a_name_that_settings_do_not_take_is_no_candidate(root: Path) -> None:
    assert references(root, "class \u00c4(nn.Module):\n" + INIT.format("")) == ([], [])


def test_names_cannot_be_those_of_two_subjects(root: Path) -> None:
    write(root, "test_data_module.py", "")
    write(root, "net.py", TORCH + MODEL + DATA)
    found = looking.look(root)
    assert block.model_name(found) != block.holdout_name(found)


@pytest.mark.parametrize("text", [NET, TORCH + "class N\u00c4(nn.Module):\n" + INIT.format("") + DATA])
def test_a_name_can_stand_in_a_test_s_name(root: Path, cli: Run, text: str) -> None:
    write(root, "net.py", text)
    assert cli("init").code == 0
    (name,) = settings(root).models
    assert re.fullmatch(r"[a-z0-9-]+", name)


# The command


def test_a_root_that_is_no_directory(cli: Run) -> None:
    assert "--root nowhere is not a directory" in cli("init", "--root", "nowhere").sentence


def test_it_loads_nothing_heavy(toy: Path) -> None:
    code = (
        "import sys; from pytest_dscore.cli import main; main(['init']);"
        "print(sorted({'torch', 'sklearn', 'sqlalchemy', 'net'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=toy, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_long_list_is_cut() -> None:
    assert init._few([str(i) for i in range(5)], 3) == ["0", "1", "2", "... and 2 more"]
