"""A score, a normalizer or an extent from outside is one class: every function finds it by name."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch

from regard import plugins
from regard.attention import Attention, attend, catalog, plan, weights
from regard.attention.extents import EXTENTS
from regard.attention.scores import SCORES
from regard.errors import RegardError
from regard.models.seq2seq import Seq2Seq
from regard.models.settings import ModelSettings, RecurrentDecoderSettings
from regard.views.gallery import gallery_panels

DISTANCE = """
    import torch
    from regard.attention.kernels.grouped_query import repeat_heads
    from regard.attention.scores import SCORES
    from regard.attention.scores.base import Score

    @SCORES.register("negative-distance", aliases=("distance",))
    class NegativeDistance(Score):
        formula, summary, paper = "-|q - k|", "near vectors fit", "nobody 2026"

        def pairs(self, query, key, heads=None):
            return -torch.cdist(query, repeat_heads(key, query.shape[1]))

        def specification(self, query, key):
            return -(query[..., :, None, :] - key[..., None, :, :]).norm(dim=-1)
"""
DIAGONAL = """
    import torch
    from torch import nn
    from regard.attention.scores import SCORES
    from regard.attention.scores.base import LearnedScore

    @SCORES.register("diagonal")
    class Diagonal(LearnedScore):
        formula, summary, paper = "q · (w k)", "a learned weight a dimension", "nobody 2026"

        def __init__(self, query_width, key_width, *, heads=1):
            super().__init__(query_width, key_width, heads)
            self.weight = nn.Parameter(torch.rand(heads, min(query_width, key_width)))

        def queries(self, query):
            return query[..., : self.weight.shape[-1]] * self.weight[:, None]

        def keys(self, key):
            return key[..., : self.weight.shape[-1]].expand(-1, len(self.weight), -1, -1)

        def specification(self, query, key):
            n = self.weight.shape[-1]
            return (query[..., :n] * self.weight[:, None]) @ key[..., :n].transpose(-2, -1)
"""
TEMPERATURE = """
    import torch
    from torch import nn
    from regard.attention.scores import SCORES
    from regard.attention.scores.base import Score

    @SCORES.register("temperature")
    class Temperature(nn.Module, Score):
        formula, summary, paper = "exp(t) q·k", "a learned temperature a head", "nobody 2026"

        def __init__(self, heads):
            super().__init__()
            self.log = nn.Parameter(torch.randn(heads))

        @classmethod
        def create(cls, *, heads, **sizes):
            return cls(heads)

        def queries(self, query):
            return query * self.log.exp()[:, None, None]

        def specification(self, query, key):
            return self.log.exp()[:, None, None] * (query @ key.transpose(-2, -1))
"""
RELU = """
    import torch
    from regard.attention.normalizers import NORMALIZERS
    from regard.attention.normalizers.base import Normalizer, mask_weights

    @NORMALIZERS.register("relu")
    class ReLU(Normalizer):
        formula, summary, paper = "max(s, 0)", "what is below zero does not count", "nobody 2026"

        def weights(self, scores, allowed, heads=None):
            return mask_weights(scores.relu(), allowed), None

        def specification(self, scores, allowed):
            return torch.where(allowed, scores.clamp_min(0), 0)
"""
TEMPERED = """
    import torch
    from regard.attention import reference
    from regard.attention.normalizers import NORMALIZERS
    from regard.attention.normalizers.softmax import Softmax

    @NORMALIZERS.register("tempered")
    class Tempered(Softmax):
        formula, summary, paper = "softmax(s / 2)", "a softer softmax", "nobody 2026"

        def weights(self, scores, allowed, heads=None):
            return super().weights(scores / 2, allowed, heads)

        def specification(self, scores, allowed):
            return reference.softmax(scores / 2, allowed)
"""
STRIDED = """
    from regard.attention.extents import EXTENTS
    from regard.attention.extents.base import Extent

    @EXTENTS.register("strided")
    class Strided(Extent):
        formula, summary, paper = "(i - j) mod 2 = 0", "every other key", "nobody 2026"

        def allowed(self, query_positions, key_positions):
            return (query_positions[:, None] - key_positions[None, :]) % 2 == 0
"""
FAR = """
    from dataclasses import dataclass
    from regard.attention.extents import EXTENTS
    from regard.attention.extents.window import Window

    @EXTENTS.register("far")
    class Far(Window):
        formula, summary, paper = "|i - j| > r", "all but the neighborhood", "nobody 2026"

        def allowed(self, query_positions, key_positions):
            return (query_positions[:, None] - key_positions[None, :]).abs() > self.radius
"""
ALL = {
    "score": {"negative-distance": DISTANCE, "diagonal": DIAGONAL, "temperature": TEMPERATURE},
    "normalizer": {"relu": RELU, "tempered": TEMPERED},
    "extent": {"strided": STRIDED, "far": FAR},
}
NAMES = [(axis, name) for axis, choices in ALL.items() for name in choices]
HEADS, WIDTH = 4, 8


@pytest.fixture(scope="module", autouse=True)
def _loaded_plugins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All of them in one file each, loaded as --plugin does, and forgotten afterward."""
    folder = tmp_path_factory.mktemp("plugins")
    for axis, name in NAMES:
        file = folder / f"{name}.py"
        file.write_text(dedent(ALL[axis][name]))
        plugins.load_file(file)
    yield
    for axis, name in NAMES:
        del catalog.AXES[axis]._entries[name]
    del SCORES._aliases["distance"]


def build(axis: str, name: str) -> Any:
    """What is passed to attend: the name where that is enough, else an object."""
    torch.manual_seed(0)
    if name == "diagonal":
        return SCORES.get(name)(WIDTH, WIDTH, heads=HEADS).double()  # type: ignore[call-arg, attr-defined]
    if name == "temperature":
        return SCORES.get(name)(HEADS).double()  # type: ignore[call-arg, attr-defined]
    return EXTENTS.get(name)(2) if name == "far" else name  # type: ignore[call-arg]


def tensors(key_heads: int = HEADS, length: int = 70) -> list[torch.Tensor]:
    torch.manual_seed(1)
    shapes = [(2, HEADS, length, WIDTH), (2, key_heads, length, WIDTH), (2, key_heads, length, 5)]
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def gradients(component: Any, inputs: list[torch.Tensor], **options: Any) -> list[torch.Tensor]:
    parameters = list(component.parameters()) if isinstance(component, torch.nn.Module) else []
    output = attend(inputs[0], inputs[1], inputs[2], **options)
    return [output, *torch.autograd.grad((output * output.detach().cos()).sum(), [*inputs, *parameters])]


@pytest.mark.parametrize(("axis", "name"), NAMES)
@pytest.mark.parametrize("masked", ["no", "padding", "rows", "added"])
def test_supporting_kernels_equal_the_specification(axis: str, name: str, masked: str) -> None:
    component, inputs = build(axis, name), tensors()
    rows = torch.rand(2, 1, 70, 70, generator=torch.Generator().manual_seed(2)) > 0.3
    rows[0, 0, 3] = False
    mask = {"no": None, "padding": torch.arange(70) < 50, "rows": rows, "added": torch.randn(70, 70).double()}[masked]
    options = {catalog.AXES[axis].keyword: component, "mask": mask}
    expected = gradients(component, inputs, backend="reference", **options)
    supporting = set(catalog.find(name).kernels) - {"window", "short", "reference"}
    assert {"dense", "tiled"} <= supporting
    for backend in ("auto", *sorted(supporting)):
        for actual, reference in zip(gradients(component, inputs, backend=backend, **options), expected, strict=True):
            torch.testing.assert_close(actual, reference, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("axis", "name"), NAMES)
def test_catalog_lists_the_kernels_of_plugins(axis: str, name: str) -> None:
    entry = catalog.find(name)
    assert (entry.axis, entry.paper) == (axis, "nobody 2026")
    inputs = tensors(length=9)
    for backend in ("sdpa", "dense", "tiled", "reference"):
        options: dict[str, Any] = {catalog.AXES[axis].keyword: build(axis, name), "backend": backend}
        if backend in entry.kernels:
            assert plan(*inputs, **options).kernel == backend
        else:
            with pytest.raises(RegardError, match="cannot serve"):
                plan(*inputs, **options)


def test_subclass_of_a_built_in_class_never_runs_its_fused_kernel() -> None:
    """A softmax with other weights is no softmax, a window with other keys no window."""
    assert "sdpa" not in catalog.find("tempered").kernels
    assert "window" not in catalog.find("far").kernels
    assert catalog.find("far").use == "attend(q, k, v, extent='far')"
    assert [entry.name for entry in catalog.entries("extent")][-2:] == ["strided", "far"]
    inputs = tensors(length=400)
    far = plan(*inputs, extent=build("extent", "far"))
    assert far.kernel != "window"
    assert "window" in plan(*inputs, extent=EXTENTS.get("window")(2)).kernel  # type: ignore[call-arg]


@pytest.mark.parametrize(("axis", "name"), NAMES)
def test_weights_plan_and_grouped_heads(axis: str, name: str) -> None:
    if name in ("diagonal",):
        return  # its keys have as many heads as its queries
    q, k, v = tensors(key_heads=2, length=9)
    options = {catalog.AXES[axis].keyword: build(axis, name)}
    output, w = attend(q, k, v, need_weights=True, **options)
    assert w is not None
    torch.testing.assert_close(weights(q, k, **options), w)
    torch.testing.assert_close(output, w @ v.repeat_interleave(2, 1))
    torch.testing.assert_close(weights(q, k, rows=slice(2, 5), heads=[1], **options), w[:, 1:2, 2:5])
    assert plan(q, k, v, **options).scores


@pytest.mark.parametrize(("axis", "name"), [(axis, name) for axis, name in NAMES if name != "far"])
def test_attention_module_builds_plugins_by_name(axis: str, name: str) -> None:
    torch.manual_seed(0)
    keyword = catalog.AXES[axis].keyword
    attention = Attention(16, heads=4, key_width=12, **{keyword: name})  # type: ignore[arg-type]
    query, memory = torch.randn(2, 6, 16), torch.randn(2, 7, 12)
    attended = attention(query, memory, need_weights=True)
    assert attended.output.shape == (2, 6, 16)
    attended.output.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in attention.parameters())
    cached = attention(query, cache=attention.prepare(memory))
    torch.testing.assert_close(cached.output, attended.output)
    assert (attention.query is None) == (name == "diagonal")


def test_plugin_with_weights_by_name_in_attend_raises() -> None:
    q = torch.randn(1, HEADS, 3, WIDTH)
    with pytest.raises(RegardError, match=r"pass Diagonal\(query_width, key_width, heads=heads\), or use Attention"):
        attend(q, q, q, score="diagonal")
    with pytest.raises(RegardError, match=r"pass Temperature\(heads\), or use Attention"):
        attend(q, q, q, score="temperature")
    with pytest.raises(RegardError, match=r"extent: 'far' needs radius; pass Far\(radius\)"):
        attend(q, q, q, extent="far")


def test_aliases_and_spellings() -> None:
    q = torch.randn(1, 1, 3, WIDTH)
    for spelling in ("distance", "Negative_Distance", "negative distance"):
        assert torch.equal(attend(q, q, q, score=spelling), attend(q, q, q, score="negative-distance"))
    with pytest.raises(RegardError, match="did you mean 'negative-distance'"):
        attend(q, q, q, score="negative-distanc")


def test_settings_and_gallery_include_plugins() -> None:
    settings = RecurrentDecoderSettings(score="negative-distance", normalize="relu", extent="strided")
    assert settings.score == "negative-distance"
    with pytest.raises(ValueError, match="negative-distance"):
        RecurrentDecoderSettings(score="negative")
    assert {name for _, name in NAMES} <= {panel.title for panel in gallery_panels()}


@pytest.mark.parametrize(
    "decoder",
    [
        {"kind": "recurrent", "score": "negative-distance", "normalize": "relu", "extent": "strided"},
        {"kind": "recurrent", "attend": "after", "score": "diagonal", "normalize": "tempered"},
        {"kind": "recurrent", "score": "temperature", "extent": "far", "radius": 1},
        {"kind": "transformer", "normalize": "relu", "heads": 2},
        {"kind": "pooling", "score": "diagonal", "normalize": "relu"},
    ],
)
def test_models_with_plugins_have_gradients(decoder: dict[str, Any]) -> None:
    torch.manual_seed(0)
    tie = "none" if decoder["kind"] == "pooling" else "target"
    encoder = {"kind": "recurrent", "width": 12}
    settings = ModelSettings.parse({"encoder": encoder, "decoder": {**decoder, "width": 16}, "tie": tie})
    model = Seq2Seq(settings, source_vocabulary_size=20, target_vocabulary_size=30)
    source, targets = torch.randint(4, 20, (2, 7)), torch.randint(4, 30, (2, 1 if tie == "none" else 5))
    output = model(source, torch.ones(2, 7, dtype=torch.bool), targets)
    output.features.square().sum().backward()
    attention = next(component for component in model.decoder.modules() if isinstance(component, Attention))
    assert attention.normalizer.name == decoder.get("normalize", "softmax")
    assert attention.score.name == decoder.get("score", "scaled-dot")
    assert all(p.grad is not None and p.grad.isfinite().all() for p in attention.parameters())


@pytest.mark.parametrize("name", ["dot", "general", "location-aware"])
def test_name_or_alias_of_a_built_in_score_raises(name: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(dedent(DISTANCE).replace('"negative-distance", aliases=("distance",)', repr(name)))
    with pytest.raises(RegardError, match=r"mine\.py: .*; rename yours"):
        plugins.load_file(file)
    assert len(SCORES.names()) == len(set(SCORES.names()))


def test_name_of_another_plugin_raises(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(dedent(RELU))
    with pytest.raises(RegardError, match=r"already a normalizer named 'relu', in .*relu\.py; rename yours"):
        plugins.load_file(file)
