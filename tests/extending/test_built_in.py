"""A built-in extension is what CONTRIBUTING.md's table says: one new file in the folder that it names, or as many as it
names. Every row has extensions here, which are written into a copy of the package and used by their names."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath
from textwrap import dedent
from typing import NamedTuple

import pytest

import regard

HERE = Path(__file__).parent
PACKAGE = Path(regard.__file__).parent
GUIDE = (HERE.parent.parent / "CONTRIBUTING.md").read_text()


class Extension(NamedTuple):
    """files: in the package; each is copied from an example of this folder, or is Python. use: what must run after
    `HELPERS`, where `found` is what the registry has by this name."""

    axis: str
    name: str
    files: dict[str, Path | str]
    use: str


HELPERS = """
import tempfile
from pathlib import Path, PurePath
from types import SimpleNamespace
import torch
from regard.attention import Attention, attend, catalog
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings

torch.set_num_threads(1)
torch.manual_seed(0)
q = torch.randn(1, 2, 5, 8)
x = torch.randn(1, 5, 16)
tokens, mask = torch.tensor([[5, 6, 7], [8, 9, 2]]), torch.ones(2, 3, dtype=torch.bool)
TEXT = {"encoder": {"kind": "recurrent", "width": 8}, "decoder": {"kind": "recurrent", "width": 8}, "tie": "none"}

def model(**settings):
    return Seq2Seq(ModelSettings.parse({**TEXT, **settings}), source_vocabulary_size=12, target_vocabulary_size=12)

def write(name, content):
    path = Path(tempfile.mkdtemp()) / name
    path.write_text(content)
    return path
"""

STRIDED = """
from regard.attention.extents import EXTENTS
from regard.attention.extents.base import Extent

@EXTENTS.register("strided")
class Strided(Extent):
    formula, summary, paper = "(i - j) mod 2 = 0", "every other key", "Child et al. 2019, arXiv:1904.10509"
    use = 'attend(q, k, v, extent="strided")'
    order = 6

    def allowed(self, query_positions, key_positions):
        return (query_positions[:, None] - key_positions[None, :]) % 2 == 0
"""

NEARNESS = """
from regard.attention.positions import POSITIONS
from regard.attention.positions.base import Position

@POSITIONS.register("nearness")
class Nearness(Position):
    formula, summary, paper = "s - |i - j|", "near keys fit best", "nobody"
    use = 'attend(q, k, v, position="nearness")'
    order = 7
    adds_bias = True

    def bias(self, query, query_positions, key_positions, scale, heads):
        return -(query_positions[:, None] - key_positions[None, :]).abs()[None].to(query.dtype)
"""

PARITY = """
from regard.attention.positions import POSITIONS
from regard.attention.positions.base import PositionEmbedding

@POSITIONS.register("parity")
class Parity(PositionEmbedding):
    formula, summary, paper = "p mod 2", "even and odd places differ", "nobody"
    use = "Parity(width)(x)"
    order = 8
    embeds = True

    def __init__(self, width, combine="add"):
        super().__init__(width, combine)

    def embed(self, positions):
        return (positions % 2)[..., None].expand(*positions.shape, self.width)
"""

BRIGHTNESS = """
import torch
from regard.attention.channels import CHANNELS
from regard.attention.channels.base import ImageAttention

@CHANNELS.register("brightness")
class Brightness(ImageAttention):
    formula, summary, paper = "x · σ(mean(x))", "bright channels pass", "nobody"
    use = "Brightness(channels)(x)"
    order = 4

    def __init__(self, channels):
        super().__init__()

    def forward(self, x):
        return x * torch.sigmoid(x.mean((2, 3), keepdim=True))
"""

INTERVAL = """
from regard.data.targets.base import TARGETS

@TARGETS.register("interval")
class Interval:
    target_file = "target.interval"

    def __init__(self, upper):
        self.upper = upper

    @property
    def model(self):
        return str(self.upper).encode()

    @classmethod
    def load(cls, path):
        return cls(float(path.read_text()))
"""

AVERAGE_SETTINGS = """
from typing import Literal
from regard.models.settings.components import ENCODERS, EncoderSettings

@ENCODERS.register("average")
class AverageEncoderSettings(EncoderSettings):
    kind: Literal["average"] = "average"

    def build(self, stem):
        from regard.models.encoders.average import AverageEncoder

        return AverageEncoder(self, stem)
"""

AVERAGE = """
from torch import nn
from regard.models.outputs import EncoderOutput, masked_mean

class AverageEncoder(nn.Module):
    def __init__(self, settings, stem):
        super().__init__()
        self.embedding, self.memory_width = stem, settings.width
        self.project = nn.Linear(settings.embedding_width, settings.width)

    def forward(self, source, mask, *, need_weights=False):
        x, mask = self.embedding.read(source, mask)
        x = self.project(x)
        return EncoderOutput(states=x, mask=mask, pooled=masked_mean(x, mask), values=x)
"""

BIGRAM_SETTINGS = """
from typing import ClassVar, Literal
from regard.models.settings.components import DECODERS, DecoderSettings

@DECODERS.register("bigram")
class BigramDecoderSettings(DecoderSettings):
    autoregressive: ClassVar[bool] = True
    predicts_tokens: ClassVar[bool] = True
    predicts: ClassVar[str] = "tokens"

    kind: Literal["bigram"] = "bigram"

    @property
    def attends(self):
        return False

    def build(self, vocabulary, memory_width):
        from regard.models.decoders.bigram import BigramDecoder

        return BigramDecoder(self, vocabulary, memory_width)
"""

BIGRAM = """
from dataclasses import dataclass
from torch import Tensor, nn
from regard.models.outputs import DecoderOutput
from regard.models.token_embedding import Embedding

@dataclass(frozen=True)
class BigramState:
    source: Tensor

    def select(self, index, *, same_sources=False):
        return BigramState(self.source.index_select(0, index))

class BigramDecoder(nn.Module):
    def __init__(self, settings, vocabulary, memory_width):
        super().__init__()
        self.embedding = Embedding(vocabulary, settings.embedding_width)
        self.source = nn.Linear(memory_width, settings.embedding_width)

    def forward(self, targets, memory, *, need_weights=False):
        return DecoderOutput(self.embedding(targets) + self.start(memory).source[:, None])

    def start(self, memory):
        return BigramState(self.source(memory.pooled))

    def step(self, tokens, state):
        return self.embedding(tokens[:, None])[:, 0] + state.source, state
"""

PRODUCT_SETTINGS = """
from typing import ClassVar, Literal
from regard.models.settings.components import DECODERS, DecoderSettings

@DECODERS.register("product")
class ProductHeadSettings(DecoderSettings):
    predicts: ClassVar[str] = "classes"

    kind: Literal["product"] = "product"

    def build(self, vocabulary, memory_width):
        from regard.models.heads.product import ProductHead

        return ProductHead(self, memory_width)
"""

PRODUCT = """
from dataclasses import dataclass
from torch import Tensor, nn
from regard.models.outputs import DecoderOutput

@dataclass(frozen=True)
class ProductState:
    features: Tensor

    def select(self, index, *, same_sources=False):
        return ProductState(self.features.index_select(0, index))

class ProductHead(nn.Module):
    def __init__(self, settings, memory_width):
        super().__init__()
        self.project = nn.Linear(memory_width, settings.embedding_width)

    def forward(self, targets, memory, *, need_weights=False):
        return DecoderOutput(self.project(memory.pooled * memory.mean())[:, None])

    def start(self, memory):
        return ProductState(self(None, memory).features[:, 0])

    def step(self, tokens, state):
        return state.features, state
"""

POINTS_SETTINGS = """
from typing import ClassVar, Literal
from regard.models.settings.components import SOURCES, SourceSettings

@SOURCES.register("points")
class PointsSource(SourceSettings):
    description: ClassVar[str] = "points"

    kind: Literal["points"] = "points"
    axes: int = 2

    def build_stem(self, options, vocabulary):
        from regard.models.stems.points import PointsStem

        return PointsStem(self, options)
"""

POINTS_STEM = """
from torch import nn

class PointsStem(nn.Module):
    def __init__(self, source, options):
        super().__init__()
        self.project = nn.Linear(source.axes, options.width)

    def read(self, source, mask):
        return self.project(source) * mask[..., None], mask
"""

POINTS = """
import json
import numpy as np
from regard.data.media.base import MEDIA_PROCESSORS, MediaPositions, MediaProcessor, open_media

@MEDIA_PROCESSORS.register("points")
class PointsProcessor(MediaProcessor):
    plural_name = "points"
    dtype = np.float32
    suffixes = (".points",)

    def __init__(self, settings):
        self.settings = settings

    def read(self, media):
        return np.asarray(json.load(open_media(media)), np.float32)

    def reshape(self, flat):
        return flat.reshape(-1, self.settings.axes)

    def position_counts(self, lengths):
        return lengths // self.settings.axes

    def collate(self, arrays):
        points = [self.reshape(np.asarray(each)) for each in arrays]
        padded = np.zeros((len(points), max(map(len, points)), self.settings.axes), np.float32)
        mask = np.zeros(padded.shape[:2], bool)
        for row, each in enumerate(points):
            padded[row, : len(each)], mask[row, : len(each)] = each, True
        return padded, mask

    def positions(self, array, count):
        return MediaPositions(tuple(map(str, range(count))), "points")

    def example(self):
        return np.zeros((3, self.settings.axes), np.float32)
"""

LETTERS = """
from regard.tasks.base import TASKS, Preset
from regard.tasks.translation import Translation

@TASKS.register("letters")
class Letters(Translation):
    name, verb = "letters", "spell"
    presets = (Preset("letters-small", model={"encoder": {"kind": "recurrent"}, "decoder": {"kind": "recurrent"}}),)

    def recognizes(self, data, modality):
        return 0.0
"""

LENGTHS = """
from regard.evaluation.evaluators.base import EVALUATORS, Evaluator

class Report:
    def __init__(self, characters):
        self.characters = characters

    def as_dict(self):
        return {"characters": self.characters}

    def lines(self):
        return [f"{self.characters} characters"]

@EVALUATORS.register("lengths")
class LengthsEvaluator(Evaluator):
    def evaluate(self, run, predictor, files, metrics, progress):
        return Report(sum(len(path.read_text()) for path in files))
"""

PIPES = """
from regard.data.example import Example
from regard.data.input_files import read_lines
from regard.data.readers import READERS, Reader

@READERS.register("pipes")
class PipesReader(Reader):
    suffixes = (".pipes",)

    def read(self, path, layout):
        for number, (line, problem) in enumerate(read_lines(path), 1):
            source, _, target = line.partition("|")
            yield Example(source, target, str(path), number, problem)
"""

ECHO = """
from regard.inference.engines.base import ENGINES, Engine
from regard.inference.results import Hypothesis

@ENGINES.register("echo")
class EchoEngine(Engine):
    name, title, priority = "echo", "the echo", 99
    batch_tokens = 8

    @classmethod
    def unsupported_model(cls, opened, device):
        return ""

    @classmethod
    def open(cls, opened, *, device, precision, threads, shortlist):
        return cls()

    def unsupported_reason(self, config):
        return ""

    def search(self, sources, config, constraints=None):
        return [[Hypothesis(list(source), 0.0, 0.0)] for source in sources]
"""

SQUARED_LOGITS = """
from regard.training.loss import LOSSES, Loss, MainLoss

@LOSSES.register("squared-logits")
class SquaredLogits(MainLoss):
    @classmethod
    def build(cls, model, settings):
        return cls()

    def __call__(self, forward):
        total = forward.model.logits(forward.decoded.features)[forward.target_mask].square().sum()
        return Loss(total, total.detach().double())
"""

CAMEL = """
from regard.interop.families.bert import Bert
from regard.interop.family import FAMILIES

@FAMILIES.register("camel")
class Camel(Bert):
    exports = None
    prefix = "camel."
"""

# By the first column of the table.
ROWS: dict[str, list[Extension]] = {
    "score": [
        Extension(
            "score",
            "negative-distance",
            {"attention/scores/negative_distance.py": HERE / "negative_distance.py"},
            """
            from regard.attention import NegativeDistance
            torch.testing.assert_close(attend(q, q, q, score="negative-distance"), attend(q, q, q, score=found()))
            decoder = model(decoder={**TEXT["decoder"], "score": "negative-distance"}).decoder
            assert isinstance(decoder.attention.score, NegativeDistance)
            assert catalog.find("negative-distance").summary
            """,
        )
    ],
    "normalizer": [
        Extension(
            "normalizer",
            "relu",
            {"attention/normalizers/relu.py": HERE / "relu_normalizer.py"},
            """
            assert (attend(q, q, q, normalize="relu", need_weights=True).weights == 0).any()
            assert isinstance(Attention(16, normalize="relu").normalizer, found)
            for kind in ("recurrent", "transformer", "pooling"):
                built = model(decoder={"kind": kind, "width": 8, "normalize": "relu"})
                assert any(isinstance(getattr(each, "normalizer", None), found) for each in built.decoder.modules())
            assert catalog.find("relu").summary
            """,
        )
    ],
    "extent": [
        Extension(
            "extent",
            "strided",
            {"attention/extents/strided.py": STRIDED},
            """
            assert (attend(q, q, q, extent="strided", need_weights=True).weights[..., 0, 1::2] == 0).all()
            built = model(decoder={**TEXT["decoder"], "extent": "strided"})
            assert isinstance(built.decoder.attention.extent, found)
            assert catalog.find("strided").summary
            """,
        )
    ],
    "position, channel attention": [
        Extension(
            "position",
            "nearness",
            {"attention/positions/nearness.py": NEARNESS},
            """
            assert isinstance(Attention(16, heads=2, position="nearness").position, found)
            assert not torch.equal(attend(q, q, q, position="nearness"), attend(q, q, q))
            built = model(encoder={"kind": "transformer", "width": 8, "heads": 2, "position": "nearness"})
            assert any(isinstance(getattr(each, "position", None), found) for each in built.encoder.modules())
            assert catalog.find("nearness").summary
            """,
        ),
        Extension(
            "position",
            "parity",
            {"attention/positions/parity.py": PARITY},
            """
            from regard.attention import Parity
            assert torch.equal(Parity(16)(x)[:, 1::2], x[:, 1::2] + 1)
            built = model(encoder={"kind": "transformer", "width": 8, "heads": 2, "position": "parity"})
            assert isinstance(built.encoder.embedding.position, Parity)
            assert catalog.find("parity").summary
            """,
        ),
        Extension(
            "channel-attention",
            "brightness",
            {"attention/channels/brightness.py": BRIGHTNESS},
            """
            from regard.attention import Brightness
            assert Brightness(3)(torch.zeros(1, 3, 4, 4)).shape == (1, 3, 4, 4)
            built = model(source={"kind": "image", "stem": {"kind": "residual", "channel_attention": "brightness"}})
            assert any(isinstance(each, Brightness) for each in built.encoder.modules())
            assert catalog.find("brightness").summary
            """,
        ),
    ],
    "encoder, decoder, head, source": [
        Extension(
            "encoder",
            "average",
            {
                "models/settings/encoders/average.py": AVERAGE_SETTINGS,
                "models/encoders/average.py": AVERAGE,
            },
            """
            built = model(encoder={"kind": "average", "width": 8})
            assert built(tokens, mask, tokens).features.shape == (2, 3, 8)
            """,
        ),
        Extension(
            "decoder",
            "bigram",
            {
                "models/settings/decoders/bigram.py": BIGRAM_SETTINGS,
                "models/decoders/bigram.py": BIGRAM,
            },
            """
            from regard.inference.search.batch_search import search
            from regard.inference.search_config import SearchConfig
            built = model(decoder={"kind": "bigram", "width": 8}).eval()
            assert built(tokens, mask, tokens).features.shape == (2, 3, 8)
            assert all(search(built, tokens, mask, SearchConfig(beam=2)))
            """,
        ),
        Extension(
            "decoder",
            "product",
            {
                "models/settings/decoders/product.py": PRODUCT_SETTINGS,
                "models/heads/product.py": PRODUCT,
            },
            """
            from regard.tasks.base import get_task
            built = model(decoder={"kind": "product", "width": 8})
            assert built(tokens, mask, tokens[:, :1]).features.shape == (2, 1, 8)
            get_task("classification").check(built.settings)
            from regard.training.settings import run_settings
            by_preset = run_settings("classifier", {}, ["model.decoder.kind=product"], {})
            assert by_preset.task == "classification"
            """,
        ),
        Extension(
            "source",
            "points",
            {
                "models/settings/sources/points.py": POINTS_SETTINGS,
                "models/stems/points.py": POINTS_STEM,
                "data/media/points.py": POINTS,
            },
            """
            from regard.data.media.base import media_processor
            built = model(source={"kind": "points"})
            processor = media_processor(built.settings.source)
            source, mask = map(torch.from_numpy, processor.collate([processor.read(b"[[1, 2], [3, 4]]")]))
            assert built(source, mask, tokens[:1]).features.shape == (1, 3, 8)
            """,
        ),
        Extension(
            "media-processor",
            "points",
            {},  # the source's
            """
            from regard.data.settings import DataSettings
            from regard.tasks.task_detection import detect_modality
            table = write("table.tsv", "file\\tcaption\\n" + "a.points\\ttwo\\nb.points\\tthree\\n" * 9)
            assert detect_modality(DataSettings(pairs=(table,))) == "points"
            """,
        ),
    ],
    "task": [
        Extension(
            "task",
            "transliteration",
            {"tasks/transliteration.py": HERE / "transliteration.py"},
            """
            from typer.testing import CliRunner
            from regard.cli import app
            from regard.training.settings import run_settings
            table = write("words.tsv", "abc\\tdef\\n" * 20)
            settings = run_settings(None, {}, [], {"data": {"pairs": [str(table)]}}, task="transliteration")
            assert (settings.task, settings.data.subwords.kind) == ("transliteration", "character")
            assert "transliterate" in CliRunner().invoke(app, ["--help"]).output
            """,
        ),
        Extension(
            "task",
            "letters",
            {"tasks/letters.py": LETTERS},
            """
            from regard.training.settings import run_settings
            data = {"data": {"pairs": [str(write("words.tsv", "abc\\tdef\\n" * 20))]}}
            settings = run_settings("letters-small", {}, [], data, task="letters")
            assert (settings.task, settings.preset) == ("letters", "letters-small")
            assert run_settings("letters-small", {}, [], {}).task == "letters"
            """,
        ),
    ],
    "target": [
        Extension(
            "target",
            "interval",
            {"data/targets/interval.py": INTERVAL},
            """
            from regard.runs.folder import load_target
            path = write("target.interval", "2.5")
            assert isinstance(load_target(path.parent), found)
            assert load_target(path.parent).upper == 2.5
            """,
        )
    ],
    "metric": [
        Extension(
            "metric",
            "first_word",
            {"evaluation/metrics/first_word.py": HERE / "first_word.py"},
            """
            from regard.evaluation.metrics import corpus_score, parse_metric_names
            assert parse_metric_names("FIRST_WORD") == ["first_word"]
            assert corpus_score("first_word", ["a b", "c"], [["a c", "d"]]).value == 50
            """,
        )
    ],
    "evaluator": [
        Extension(
            "evaluator",
            "lengths",
            {"evaluation/evaluators/lengths.py": LENGTHS},
            """
            from regard import loading
            from regard.cli.evaluate import _evaluate_by_task
            loading.load = lambda run, device: SimpleNamespace(task=SimpleNamespace(evaluator="lengths"))
            _evaluate_by_task(Path("run"), [write("test.txt", "abc")], None, "cpu", False)
            """,
        )
    ],
    "reader of training data": [
        Extension(
            "reader",
            "pipes",
            {"data/formats/pipes.py": PIPES},
            """
            from regard.data.example import Layout
            from regard.data.readers import read_pairs
            (example,) = read_pairs(write("pairs.pipes", "cat|Katze\\n"), Layout())
            assert (example.source, example.target) == ("cat", "Katze")
            """,
        )
    ],
    "document format": [
        Extension(
            "document",
            "srt",
            {"documents/formats/srt.py": HERE / "subtitles.py"},
            """
            from regard.documents.document import DocumentLayout, document_format, read_document
            layout = DocumentLayout()
            name = document_format(PurePath("film.srt"), layout)
            document = read_document(b"1\\n00:00:01,000 --> 00:00:02,000\\nthe cat\\n", "film.srt", name, layout)
            assert document.texts == ["the cat"]
            """,
        )
    ],
    "search": [
        Extension(
            "search",
            "second-start",
            {"inference/search/second_start.py": HERE / "second_start.py"},
            """
            from regard.inference.options import Options
            from regard.inference.search.base import selectable_searches
            from regard.inference.search.batch_search import search
            from regard.inference.search_config import SearchConfig
            assert "second-start" in selectable_searches()
            assert Options(search="second-start").search_name == "second-start"
            assert all(search(model().eval(), tokens, mask, SearchConfig(search="second-start")))
            """,
        )
    ],
    "engine": [
        Extension(
            "engine",
            "echo",
            {"inference/engines/echo.py": ECHO},
            """
            from regard.inference.engines.selection import open_loaded_run
            fields = ("description", "source_processor", "target")
            opened = SimpleNamespace(folder="run", alignment_head=lambda: None, **dict.fromkeys(fields))
            for name in ("auto", "echo"):
                engine = open_loaded_run(opened, engine=name).engine
                assert isinstance(engine, found)
                assert engine.search([[5, 2]], None)[0][0].tokens == [5, 2]
            """,
        )
    ],
    "main loss": [
        Extension(
            "loss",
            "squared-logits",
            {"training/losses/squared_logits.py": SQUARED_LOGITS},
            """
            import numpy as np
            from regard.data.batch import collate_tokens
            from regard.training.objective import Objective
            from regard.training.settings import TrainingSettings
            objective = Objective(model(), TrainingSettings(), "squared-logits")
            objective(collate_tokens([[5, 6, 2]], [[7, 2]], np.array([0]))).total.backward()
            """,
        )
    ],
    "family of imported models": [
        Extension(
            "family",
            "camel",
            {"interop/families/camel.py": CAMEL},
            """
            from regard.interop.family import family_of
            assert isinstance(family_of({"model_type": "camel", "hidden_size": 8}), found)
            """,
        )
    ],
}
# What new files are not enough for: the file that the list below the table names, too, and what fails without it.
MORE_FILES = {
    "a source, by its files": (
        "tasks/classification.py",
        """
        from regard.training.settings import run_settings
        table = write("table.tsv", "file\\tlabel\\n" + "a.points\\ttwo\\nb.points\\tthree\\n" * 9)
        data = {"data": {"pairs": [str(table)]}}
        run_settings(None, {}, ["model.source.kind=points"], data, task="classification")
        """,
    ),
}
EXTENSIONS = [(row, extension) for row, extensions in ROWS.items() for extension in extensions]


def beyond_the_table() -> str:
    """What the list below the table says."""
    return GUIDE.partition("These take more than one file:\n\n")[2].partition("\n\n")[0]


def table() -> dict[str, str]:
    """The first and the second column of the table of extensions, row by row."""
    lines = GUIDE.partition("| to add a |")[2].partition("\n\n")[0].splitlines()[2:]
    return {cells[1].strip(): cells[2] for cells in (line.split("|") for line in lines)}


def named_folders(cell: str) -> list[str]:
    """The folders that a cell of the table names; one without a parent is beside the one before it."""
    found: list[PurePosixPath] = []
    for name in re.findall(r"`([\w/]+)/`", cell):
        beside = found[-1].parent if found else PurePosixPath()
        found.append(PurePosixPath(name) if "/" in name else beside / name)
    return [str(each) for each in found]


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What went wrong with each extension, in a copy of the package that has all of them."""
    folder = tmp_path_factory.mktemp("src")
    package = folder / "regard"
    shutil.copytree(PACKAGE, package)
    for _, extension in EXTENSIONS:
        for name, content in extension.files.items():
            assert not (package / name).exists(), name
            (package / name).write_text(content.read_text() if isinstance(content, Path) else content)
    uses = {f"{each.axis} {each.name}": (each.axis, each.name, dedent(each.use)) for _, each in EXTENSIONS}
    more = {what: dedent(use) for what, (_, use) in MORE_FILES.items()}
    code = f"""
import json, traceback
import regard.plugins
assert regard.__file__.startswith({str(package)!r})
helpers = {{}}
exec({HELPERS!r}, helpers)
failures = {{}}
for what, (axis, name, use) in {uses!r}.items():
    try:
        registry = regard.plugins.get_registry(axis)
        found = registry.get(name)
        assert name in registry.builtin_names()
        exec(use, {{**helpers, "found": found}})
    except BaseException:
        failures[what] = traceback.format_exc()
for what, use in {more!r}.items():
    try:
        exec(use, dict(helpers))
    except BaseException:
        failures[what] = traceback.format_exc()
open({str(folder / "failures.json")!r}, "w").write(json.dumps(failures))
"""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, env=environment)
    found: dict[str, str] = json.loads((folder / "failures.json").read_text())
    return found


def test_every_row_of_the_table_has_an_extension() -> None:
    assert list(table()) == list(ROWS)


@pytest.mark.parametrize("row", ROWS)
def test_an_extension_is_in_every_folder_that_the_row_names_and_in_no_other(row: str) -> None:
    used = {str(PurePosixPath(name).parent) for extension in ROWS[row] for name in extension.files}
    assert used == set(named_folders(table()[row]))


@pytest.mark.parametrize("extension", [each for _, each in EXTENSIONS], ids=lambda each: f"{each.axis} {each.name}")
def test_new_files_are_enough(failures: dict[str, str], extension: Extension) -> None:
    failure = failures.get(f"{extension.axis} {extension.name}")
    assert failure is None, failure


@pytest.mark.parametrize("what", MORE_FILES)
def test_where_new_files_are_not_enough_the_guide_names_the_others(failures: dict[str, str], what: str) -> None:
    file, _ = MORE_FILES[what]
    assert what in failures, f"the new files are enough: {file} need not be named any more"
    assert f"`{file}`" in beyond_the_table()
