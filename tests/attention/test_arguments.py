"""What does not fit is told in one sentence that names the argument."""

import re
from typing import Any

import pytest
import torch

import regard.attention as attention_api
from regard.attention import (
    T5,
    Additive,
    ALiBi,
    Attention,
    Bilinear,
    Draw,
    Entmax,
    Hard,
    Learned,
    LocalMonotonic,
    LocalPredictive,
    Reinforce,
    Rotary,
    Shaw,
    Sigmoid,
    Sinusoidal,
    Window,
    attend,
    catalog,
    plan,
    weights,
)

Q, K, V = torch.zeros(2, 4, 3, 8), torch.zeros(2, 4, 5, 8), torch.zeros(2, 4, 5, 6)


def call(**changes: Any) -> Any:
    arguments = {"query": Q, "key": K, "value": V, **changes}
    return attend(arguments.pop("query"), arguments.pop("key"), arguments.pop("value"), **arguments)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: call(query=[1, 2]), "query: expected a tensor"),
        (lambda: call(query=Q[0]), r"query: expected \[batch, heads, time, width\], got \(4, 3, 8\)"),
        (lambda: call(query=Q.long()), "query: expected floating-point numbers"),
        (lambda: call(key=K.double()), "key: torch.float64 does not fit the query's torch.float32"),
        (lambda: call(key=K[:1], value=V[:1]), "key: a batch of 1"),
        (lambda: call(key=K[..., :7]), "key: width 7 does not fit the query's width 8; a scaled-dot score"),
        (lambda: call(key=K[:, :3], value=V[:, :3]), "key: 3 heads do not divide the query's 4"),
        (lambda: call(value=V[:, :, :4]), r"value: \(2, 4, 4, 6\) does not fit the key's"),
        (lambda: call(mask=torch.ones(3, 5, dtype=torch.long)), "mask: expected a boolean tensor .* not torch.int64"),
        (lambda: call(mask=[[True]]), "mask: expected a boolean tensor .* not list"),
        (lambda: call(mask=torch.ones(3, 4, dtype=torch.bool)), r"mask: \(3, 4\) does not fit .* \(2, 4, 3, 5\)"),
        (
            lambda: call(mask=torch.ones(2, 5, dtype=torch.bool)),
            r"for padding, \[B, Tk\], use mask\[:, None, None, :\]",
        ),
        (lambda: call(mask=torch.ones(2, 3, 5, dtype=torch.bool)), r"use mask\[:, None\]"),
        (lambda: call(score="dott"), "score: there is no 'dott'; did you mean 'dot'"),
        (lambda: call(score="additive"), r"score: 'additive' has weights of its own; pass Additive\("),
        (lambda: call(score="concat"), "score: 'additive' has weights of its own"),
        (lambda: call(score=3), "score: expected a name, a Score or a function, not int"),
        (lambda: call(score=lambda q, k: q), r"score: the function gave \(2, 4, 3, 8\), but .* need \(2, 4, 3, 5\)"),
        (lambda: call(score=Additive(8, 8, heads=2)), "query: 4 heads do not fit the additive score, made for 2"),
        (lambda: call(score=Bilinear(7, 8, heads=4)), "query: width 8 does not fit the bilinear score, made for 7"),
        (lambda: call(extent="local"), "extent: there is no 'local'"),
        (lambda: call(extent="window"), r"extent: 'window' needs radius; pass Window\(radius=64\)"),
        (lambda: call(extent="local-p"), r"extent: 'local-p' needs query_width, radius=radius; pass LocalPredictive\("),
        (lambda: call(extent=7), "extent: expected a name or an Extent, not int"),
        (lambda: call(extent=LocalPredictive(8, radius=2, heads=3)), "query: 4 heads do not fit local-p, made for 3"),
        (lambda: call(normalize="softmx"), "normalize: there is no 'softmx'; did you mean 'softmax'"),
        (lambda: call(normalize=torch.softmax), "normalize: expected a name or a Normalizer"),
        (lambda: call(scale=float("nan")), "scale: nan is not a finite number"),
        (lambda: call(scale="big"), "scale: 'big' is not a finite number"),
        (lambda: call(dropout=1.5), "dropout: 1.5 is not a share"),
        (lambda: call(offset=-1), "offset: -1 is not a position"),
        (lambda: call(offset=1.5), "offset: 1.5 is not a position"),
        (lambda: call(position="rotery"), "position: there is no 'rotery'; did you mean 'rotary'"),
        (lambda: call(mask=torch.ones(3, 5, dtype=torch.bool, device="meta")), "mask: it is on meta, the query on cpu"),
        (lambda: call(dropout=None), "dropout: None is not a share"),
        (lambda: call(score=lambda q, k: (q @ k.mT).double()), "score: the function gave torch.float64"),
        (lambda: Window(3, global_tokens=2.0), "global_tokens: 2.0"),  # type: ignore[arg-type]
        (lambda: Window(3, global_tokens="a"), "global_tokens: 'a'"),  # type: ignore[arg-type]
        (lambda: Additive(8, 8, heads=4, key_heads=3), "key_heads: 3 do not divide the 4 heads"),
        (lambda: Sinusoidal(8)(torch.zeros(1, 8)), r"x: expected \[batch, time, width\]"),
        (lambda: Reinforce()(torch.ones(1, dtype=torch.bool), []), "reward: expected a floating-point tensor"),
        (lambda: Reinforce()(torch.ones(1), Draw(Q, Q, Q)), r"draws: expected a list of draws; for one, pass \[draw\]"),
        (lambda: call(position="t5"), r"position: 't5' has weights of its own; pass T5\(heads\)"),
        (lambda: call(position=T5(3)), "position: t5 was made for 3 heads, the query has 4"),
        (lambda: call(position=ALiBi(8)), "position: alibi was made for 8 heads, the query has 4"),
        (lambda: call(position=Rotary(6)), "position: rotary was made for width 6, the query has 8"),
        (lambda: call(position=Shaw(6)), "position: shaw was made for width 6, the query has 8"),
        (lambda: call(position=Shaw(8, value_width=8)), "position: shaw was made for values of width 8, these have 6"),
        (
            lambda: call(normalize=Entmax(learnable=True, heads=3)),
            "normalize: entmax has 3 learned alphas, the query 4 heads",
        ),
        (lambda: call(position=3), "position: expected a name or a Position"),
        (lambda: call(backend="cuda"), "backend: there is no 'cuda'; the choices are auto, short, sdpa"),
        (lambda: call(backend="window"), "backend: 'window' cannot serve this call: window serves windows"),
        (
            lambda: call(backend="sdpa", normalize="sparsemax"),
            "backend: 'sdpa' cannot serve this call: .* not by sparsemax",
        ),
        (lambda: call(backend="sdpa", dropout=0.1), "not fused with dropout"),
        (lambda: call(backend="reference", dropout=0.1), "the reference has no dropout"),
        (lambda: call(backend="reference", normalize="hard"), "the reference draws no positions"),
        (lambda: weights(Q, K, heads=[4]), "heads: there is no head 4; there are 4"),
        (lambda: weights(Q, K, rows=slice(0, 3, 2)), "rows: a slice with a step"),
        (lambda: Window(-1), "radius: -1 is not a distance"),
        (lambda: Window(float("nan")), "radius: nan is not a distance"),  # type: ignore[arg-type]
        (lambda: Window(2.5), "radius: 2.5 is not a distance between positions"),  # type: ignore[arg-type]
        (lambda: Window("wide"), "radius: 'wide' is not a distance"),  # type: ignore[arg-type]
        (lambda: Window(2, global_tokens=-1), "global_tokens: -1"),
        (lambda: LocalMonotonic(-2), "radius: -2"),
        (lambda: LocalPredictive(8, radius=-0.5), "radius: -0.5"),
        (lambda: LocalPredictive(8, radius=0), "radius: 0 is not possible; it must be above 0"),
        (lambda: LocalPredictive(0, radius=1), "query_width: 0"),
        (lambda: Entmax(1.0), "alpha: 1.0 is not possible"),
        (lambda: Entmax(0.5), "alpha: 0.5 is not possible"),
        (lambda: Entmax(float("nan")), "alpha: nan is not possible"),
        (lambda: Sigmoid(float("inf")), "bias: inf"),
        (lambda: Hard("straight"), "estimator: there is no 'straight'"),  # type: ignore[arg-type]
        (lambda: Hard("gumbel", temperature=0), "temperature: 0"),
        (lambda: Reinforce(momentum=1.0), "momentum: 1.0"),
        (lambda: Reinforce()(torch.zeros(1), []), "draws: the list is empty"),
        (lambda: Reinforce()(torch.zeros(1), [None]), "draws: nothing was drawn"),
        (lambda: Additive(8, 8, 0), "width: 0"),
        (lambda: Additive(0, 8), "query_width: 0"),
        (lambda: Rotary(7), "width: rotary rotates pairs"),
        (lambda: Rotary(8, base=-1.0), "base: -1.0"),
        (lambda: ALiBi(0), "heads: 0"),
        (lambda: T5(2, buckets=3), "buckets: 3"),
        (lambda: T5(2, buckets=32, max_distance=8), "max_distance: 8"),
        (lambda: Shaw(8, max_distance=-1), "max_distance: -1"),
        (lambda: Sinusoidal(0), "width: 0"),
        (lambda: Sinusoidal(8, combine="multiply"), "combine: there is no 'multiply'"),
        (lambda: Sinusoidal(8)(torch.zeros(1, 2, 6)), "x: width 6 does not fit positions of width 8"),
        (lambda: Learned(0, 8), "length: 0"),
    ],
)
def test_invalid_arguments_raise_one_sentence(build, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as error:
        build()
    message = str(error.value)
    assert message.endswith(".")
    assert "\n" not in message


NAMED = [(axis, name) for axis in ("score", "extent", "normalizer", "position") for name in catalog.AXES[axis].names()]


@pytest.mark.parametrize(("axis", "name"), NAMED)
def test_code_in_error_messages_runs(axis: str, name: str) -> None:
    """A name that a function cannot make gets a message with Python to write instead, which runs as it stands."""
    keyword = catalog.AXES[axis].keyword
    try:
        call(**{keyword: name})
        return
    except ValueError as error:
        message = str(error)
    snippets = re.findall(r"\b[A-Z]\w*\((?:[^()]|\(\))*\)(?:\(x\))?", message)
    assert snippets, message
    sizes = {"width": 8, "query_width": 8, "key_width": 8, "heads": 4, "radius": 2, "length": 9}
    for snippet in snippets:
        built = eval(
            snippet,
            {
                **vars(attention_api),
                **{n: getattr(attention_api, n) for n in attention_api.__all__},
                **sizes,
                "x": K[:, 0],
            },
        )
        if isinstance(built, Attention):
            memory = torch.zeros(2, 5, 8)
            assert built(memory, memory).output.shape == (2, 5, 8)
        elif not isinstance(built, torch.Tensor):
            assert call(**{keyword: built}).shape == (2, 4, 3, 6)


def test_plan_rejects_unknown_arguments() -> None:
    with pytest.raises(TypeError, match="'scores' is not one of them"):
        plan(Q, K, V, scores="dot")


@pytest.mark.parametrize("function", [attend, plan, lambda q, k, v, **options: weights(q, k, **options)])
def test_renamed_keyword_of_functions_raises_with_the_new_name(function: Any) -> None:
    with pytest.raises(TypeError, match="'normalise' is now called 'normalize'"):
        function(Q, K, V, normalise="softmax")


def test_renamed_keyword_of_the_module_raises_with_the_new_name() -> None:
    with pytest.raises(TypeError, match=r"Attention\(\): the argument 'normalise' is now called 'normalize'"):
        Attention(8, normalise="softmax")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Attention\(\) got an unexpected keyword argument 'scores'"):
        Attention(8, scores="dot")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["scaled_dot", "Scaled-Dot", "scaled dot", "scaled"])
def test_spellings_of_names(name: str) -> None:
    assert torch.equal(call(score=name), call())


def test_numpy_numbers_are_accepted() -> None:
    import numpy as np

    q = torch.randn(1, 1, 5, 4)
    actual = attend(q, q, q, extent=Window(np.int64(1)), scale=np.float32(0.5), offset=np.int32(0))  # type: ignore[arg-type]
    torch.testing.assert_close(actual, attend(q, q, q, extent=Window(1), scale=0.5))
