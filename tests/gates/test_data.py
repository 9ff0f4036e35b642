"""Data and models that cannot be scored: a failed gate with one sentence, never a pass."""

from __future__ import annotations

import pytest
import torch

from tests.gates.project import PASSING, Project, failed, output, properties, section

DATASET = """
class Rows:
    def __init__(self, rows):
        self.rows = rows
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, row):
        return self.rows[row]
"""

DATA = {
    "raises": ("raise OSError('no disk')", ["data 'net:X' raised OSError: no disk", "net.py:"]),
    "exits": ("raise SystemExit(0)", ["data 'net:X' raised SystemExit"]),
    "none": ("return None", ["data 'net:X': the data is a NoneType", "map-style torch Dataset"]),
    "a number": ("return 3", ["the data is a int"]),
    "three values": ("return images, labels, 3", ["it returned 3 values", "(images, labels)"]),
    "images only": ("return images", ["images but no labels", "(images, labels)"]),
    "a generator": ("return ((i, l) for i, l in zip(images, labels))", ["the data is a generator"]),
    "a loader": ("return torch.utils.data.DataLoader(Rows([(i, 0) for i in images]))", ["data 'net:X'", "Dataset"]),
    "iterable": ("return iter([1])", ["the data is a list_iterator"]),
    "empty": ("return images[:0], labels[:0]", ["the data is empty (0 images)"]),
    "empty dataset": ("return Rows([])", ["the data is empty (a Dataset of length 0)"]),
    "no channels": ("return images[:, 0], labels", ["images have the shape (40, 12, 12)", "(N, C, H, W)"]),
    "integers": ("return (images * 255).byte(), labels", ["images are uint8", "floating point"]),
    "nan": ("images[7, 0, 0, 0] = float('nan'); return images, labels", ["image 7 holds NaN"]),
    "inf": ("images[39, 0, 11, 11] = float('inf'); return images, labels", ["image 39 holds NaN or infinity"]),
    "numpy nan": ("images[7] = float('nan'); return images.numpy(), labels.numpy()", ["image 7 holds NaN"]),
    "nan in a row": ("images[7] = float('nan'); return Rows(list(zip(images, labels)))", ["image 7 holds NaN"]),
    "too few labels": ("return images, labels[:-1]", ["labels have the shape (39,) for 40 images"]),
    "one-hot labels": ("return images, nn.functional.one_hot(labels)", ["labels have the shape (40, 3)"]),
    "float labels": ("return images, labels.float()", ["labels are float32", "labels.long()"]),
    "text labels": ("return images, ['cat'] * 40", ["labels (str) are not numbers"]),
    "none labels": ("return images, None", ["labels"]),
    "negative label": ("labels[5] = -1; return images, labels", ["label -1 of row 5 is negative"]),
    "label too large": ("labels[5] = 3; return images, labels", ["label 3 of row 5 is out of range", "3 classes"]),
    "labels from 1": ("return images, labels + 1", ["label 3 of row", "out of range", "(0 to 2)"]),
    "one class": ("return images, labels * 0 + 1", ["all 40 labels are class 1"]),
    "one class in rows": ("return Rows([(i, 0) for i in images])", ["all 40 labels are class 0"]),
    "sizes": (
        "return Rows([(images[0], 0), (images[1, :, :11], 1)])",
        ["image 1 has the shape (1, 11, 12), image 0 has (1, 12, 12)", "one size"],
    ),
    "sizes in an array": (
        "import numpy as np\n    rows = np.empty(2, dtype=object)\n"
        "    rows[0], rows[1] = images[0].numpy(), images[1, :, :11].numpy()\n    return rows, [0, 1]",
        ["data 'net:X'", "images"],
    ),
    "a list of images": ("return list(images), labels", ["row 0", "(image, label) pair"]),
    "object images in rows": (
        "import numpy as np\n    return Rows([(np.array([[['a', 1]]], dtype=object), 0)] * 2)",
        ["data 'net:X'", "row 0"],
    ),
    "pillow": (
        "from PIL import Image\n    return Rows([(Image.new('L', (12, 12)), 0)])",
        ["row 0 is a Image", "float tensor"],
    ),
    "row raises": ("return Rows({0: (images[0], 0), 2: 1})", ["Dataset raised KeyError on row 1"]),
    "no pairs": ("return Rows([images[0], images[1]])", ["row 0 of the Dataset is a Tensor", "(image, label) pair"]),
    "dicts": ("return Rows([{'image': images[0], 'label': 0}])", ["row 0 of the Dataset is a dict"]),
}


def write_data(project: Project, code: str) -> None:
    """Give the model a data function with this body."""
    source = (project.path / "net.py").read_text()
    project.write("net.py", f"{source}\n{DATASET}\ndef X():\n    images, labels = data()\n    {code}\n")
    project.replace("pyproject.toml", "net:data", "net:X")


@pytest.mark.parametrize(("code", "parts"), DATA.values(), ids=DATA)
def test_data_that_cannot_be_scored(project: Project, code: str, parts: list[str]) -> None:
    write_data(project, code)
    result = project.run()
    failed(result, project, "model 'tiny' cannot be scored: ", *parts)
    assert any("ERROR" in line and ">= 0.010" in line for line in section(result))


@pytest.mark.parametrize(
    "code",
    [
        "return [images, labels]",
        "return images.numpy(), labels.numpy()",
        "return images, labels.tolist()",
        "return torch.utils.data.TensorDataset(images, labels)",
        "return Rows(list(zip(images.numpy(), labels.tolist())))",
        "return images.double(), labels.to(torch.uint8)",
        "return images.requires_grad_(), labels",
    ],
)
def test_every_form_of_the_same_data_gives_the_same_score(project: Project, code: str) -> None:
    write_data(project, code)
    project.run().assert_outcomes(passed=1)
    score = float(properties(project.cases()["dscore[tiny-min_score]"])["dscore.score"])
    assert score == project.direct().score.value


def test_missing_data(project: Project) -> None:
    project.replace("pyproject.toml", "net:data", "net:dta")
    failed(project.run(), project, "data 'net:dta'", "name 'dta' does not exist", "did you mean 'data'?")


MODELS = {
    "no Conv2d": ("nn.Sequential(nn.Flatten(), nn.Linear(144, 3))", ["(Sequential) has no nn.Conv2d layer"]),
    "Conv1d only": (
        "nn.Sequential(nn.Flatten(2), nn.Conv1d(1, 1, 142), nn.Flatten())",
        ["(Sequential) has no nn.Conv2d layer"],
    ),
    "maps too small": (
        "nn.Sequential(nn.Conv2d(1, 3, 3, stride=6), nn.AdaptiveAvgPool2d(1), nn.Flatten())",
        ["n = 3 is larger than every feature map (the largest is 2 x 2)", "set n <= 2"],
    ),
    "NaN": (
        "nn.Sequential(nn.Conv2d(1, 3, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.BatchNorm1d(3, eps=float('nan')))",
        ["logits are NaN", "find the layer"],
    ),
    "batch norm in training": (
        "Training(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.AdaptiveAvgPool2d(1), nn.Flatten())",
        ["batch-norm layer '1' stays in training mode", "model.eval()"],
    ),
    "batch norm without statistics": (
        "nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3, track_running_stats=False), nn.AdaptiveAvgPool2d(1), "
        "nn.Flatten())",
        ["batch-norm layer '1' keeps no running statistics", "track_running_stats=True"],
    ),
    "random": ("Noisy(nn.Conv2d(1, 3, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())", ["other logits", "deterministic"]),
    "channels": (
        "nn.Sequential(nn.Conv2d(3, 3, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())",
        ["the model raised RuntimeError on a batch of shape (4, 1, 12, 12)", "channels"],
    ),
    "maps as output": ("nn.Conv2d(1, 3, 3)", ["returned a tensor of shape", "expected (4, classes)"]),
    "too few classes": (
        "nn.Sequential(nn.Conv2d(1, 2, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())",
        ["out of range", "2 classes"],
    ),
    "exits in forward": ("Exits(nn.Conv2d(1, 3, 3))", ["the model raised SystemExit"]),
}
CLASSES = """
class Training(nn.Sequential):
    def eval(self):
        return self

class Noisy(nn.Sequential):
    def forward(self, images):
        return super().forward(images) + torch.rand(len(images), 3)

class Exits(nn.Sequential):
    def forward(self, images):
        raise SystemExit(0)
"""


@pytest.mark.parametrize(("model", "parts"), MODELS.values(), ids=MODELS)
def test_a_model_that_cannot_be_scored(project: Project, model: str, parts: list[str]) -> None:
    source = (project.path / "net.py").read_text()
    project.write("net.py", f"{source}\n{CLASSES}\ndef X():\n    return {model}\n")
    project.replace("pyproject.toml", "net:build", "net:X")
    project.replace("pyproject.toml", 'weights = "weights.safetensors"\n', "")
    failed(project.run(), project, "model 'tiny' cannot be scored: ", *parts)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("n = 13", ["n = 13 is larger than the images (12 x 12 pixels)", "set n <= 12"]),
        ("device = 'cudda'", ['device = "cudda" is not available here', 'device = "auto"']),
        ("device = 'meta'", ["device"]),
        ("device = ''", ["device"]),
        ("fill = [0.0, 0.0, 0.0]", ["fill"]),
    ],
)
def test_a_setting_that_the_data_or_the_machine_cannot_meet(project: Project, line: str, parts: list[str]) -> None:
    project.settings(line, PASSING)
    failed(project.run(), project, "model 'tiny' cannot be scored: ", *parts)


@pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is there")
@pytest.mark.parametrize("device", ["cuda", "cuda:0"])
def test_cuda_asked_for_and_absent(project: Project, device: str) -> None:
    project.settings(f"device = '{device}'", PASSING)
    failed(project.run(), project, f'device = "{device}" is not available here', 'set device = "auto"')


def test_a_failure_of_one_pass_is_no_pass(project: Project) -> None:
    """NaN appears only where the object has moved: the clean pass is fine."""
    project.replace("net.py", 'log("forward")', 'log("forward"); images = images / (images[:, :, -1:].abs().sum() > 0)')
    failed(project.run(), project, "logits are NaN when the object is upper left")


SKIPPING = {
    "data": ("def data():\n    import pytest\n    pytest.skip('not downloaded')", "data 'net:data' raised Skipped"),
    "factory": ("def build():\n    import pytest\n    pytest.skip('no')", "factory 'net:build' raised Skipped"),
    "import": ("import pytest\npytest.importorskip('no_such_library')", "importing net raised Skipped"),
    "forward": (
        "def forward(self, x):\n    import pytest\n    pytest.xfail('later')\nNet.forward = forward",
        "raised XFailed",
    ),
    "dataset": (
        "class D:\n    def __len__(self):\n        return 3\n    def __getitem__(self, i):\n"
        "        import pytest\n        pytest.skip('no')\ndef data():\n    return D()",
        "raised Skipped on row 0",
    ),
}


@pytest.mark.parametrize(("code", "sentence"), SKIPPING.values(), ids=SKIPPING)
def test_a_users_skip_does_not_skip_the_gate(project: Project, code: str, sentence: str) -> None:
    project.write("net.py", (project.path / "net.py").read_text() + f"\n{code}\n")
    failed(project.run(), project, sentence)


def test_a_namesake_imported_before_is_refused(project: Project) -> None:
    project.write("tests/net.py", "def build():\n    pass\n")
    project.write("tests/test_first.py", "import net\n\ndef test_it():\n    assert net\n")
    text = output(project.run("tests/test_first.py", "-p", "no:randomly"))
    assert "of the same name was imported before it" in text
    assert "1 failed, 1 passed" in text
