"""regard.attention beside its peers: forward and backward, one thread, ratios of medians in one run.

    python -m bench.attention             # everything, about five minutes
    python -m bench.attention additive    # one part: additive, window, plain, module, sparse

Peers: torch.nn.functional, torch.nn.MultiheadAttention, FlexAttention (forward only on the processor),
x-transformers, entmax.
"""

import sys
import warnings
from collections.abc import Callable

import entmax as entmax_package
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa
from x_transformers.x_transformers import Attention as TheirAttention

from bench.measure import Claim, medians, report
from regard import native
from regard.attention import Additive, Attention, Window, attend
from regard.attention.kernels.entmax import entmax

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
torch.manual_seed(0)


def show(title: str, times: dict[str, float]) -> None:
    print(f"\n{title}")
    for name, seconds in times.items():
        print(f"  {name:<46} {seconds * 1e3:9.2f} ms")


def forward_and_backward(run):
    """Forward and backward, gradients thrown away."""
    return lambda: run().sum().backward()


def additive() -> list[Claim]:
    """B 8, 128 x 128, width 256: the usual code broadcasts [B, Tq, Tk, A] through tanh."""
    B, T, D = 8, 128, 256
    score = Additive(D, D, D)
    q, k, v = (torch.randn(B, 1, T, D, requires_grad=True) for _ in range(3))

    def broadcast(q=q, k=k, v=v):
        a = q[:, 0] @ score.weight_query[0].t() + score.bias[0]
        b = k[:, 0] @ score.weight_key[0].t()
        energy = torch.tanh(a[:, :, None] + b[:, None]) @ score.v[0]
        return torch.softmax(energy, -1) @ v[:, 0]

    def regard_attend(q=q, k=k, v=v):
        return attend(q, k, v, score=score)

    def without_native(q=q, k=k, v=v):
        with native.disabled():
            return attend(q, k, v, score=score)

    def without_native_backward():
        with native.disabled():
            attend(q, k, v, score=score).sum().backward()

    torch.testing.assert_close(regard_attend()[:, 0], broadcast(), rtol=1e-3, atol=1e-4)
    candidates: dict[str, Callable[[], object]] = {
        "broadcast tanh": broadcast,
        "regard": regard_attend,
        "regard without a compiler": without_native,
    }
    with torch.no_grad():
        forward = medians(candidates)
    show("additive, forward", forward)
    training_times = medians(
        {
            "broadcast tanh": forward_and_backward(broadcast),
            "regard": forward_and_backward(regard_attend),
            "regard without a compiler": without_native_backward,
        }
    )
    show("additive, forward and backward", training_times)
    return [
        Claim("additive forward", "broadcast tanh", forward["broadcast tanh"] / forward["regard"], 15),
        Claim(
            "additive forward + backward",
            "broadcast tanh",
            training_times["broadcast tanh"] / training_times["regard"],
            8,
        ),
        Claim(
            "additive forward, no compiler",
            "broadcast tanh",
            forward["broadcast tanh"] / forward["regard without a compiler"],
            3,
        ),
        Claim(
            "additive forward + backward, no compiler",
            "broadcast tanh",
            training_times["broadcast tanh"] / training_times["regard without a compiler"],
            2,
        ),
    ]


def window() -> list[Claim]:
    """r = 64, T = 4096, 4 heads of 64, against full SDPA with the same window as a mask."""
    T = 4096
    q, k, v = (torch.randn(1, 4, T, 64, requires_grad=True) for _ in range(3))
    claims = []
    positions = torch.arange(T)
    for causal in (False, True):
        allowed = (positions[:, None] - positions).abs() <= 64
        allowed = allowed & (positions <= positions[:, None]) if causal else allowed
        additive_mask = torch.zeros(T, T).masked_fill(~allowed, -torch.inf)
        extent = Window(64, causal=causal)
        torch.testing.assert_close(
            attend(q, k, v, extent=extent), sdpa(q, k, v, attn_mask=additive_mask), rtol=1e-4, atol=1e-5
        )
        times = medians(
            {
                "SDPA, boolean mask": forward_and_backward(lambda m=allowed: sdpa(q, k, v, attn_mask=m)),
                "SDPA, float mask": forward_and_backward(lambda m=additive_mask: sdpa(q, k, v, attn_mask=m)),
                "regard": forward_and_backward(lambda e=extent: attend(q, k, v, extent=e)),
            },
            seconds=12,
        )
        name = "causal window" if causal else "window"
        show(f"{name} r = 64, T = 4096, forward and backward", times)
        best = min(times["SDPA, boolean mask"], times["SDPA, float mask"])
        claims.append(
            Claim(f"{name} forward + backward, T = 4096", "SDPA with the better mask", best / times["regard"], 8)
        )
    claims += _flex(q, k, v)
    inputs = {t: [torch.randn(1, 4, t, 64, requires_grad=True) for _ in range(3)] for t in (2048, 4096, 8192, 16384)}
    times = medians(
        {str(t): forward_and_backward(lambda x=x: attend(*x, extent=Window(64))) for t, x in inputs.items()}, seconds=12
    )
    show("window r = 64 as T doubles, forward and backward", times)
    growth = [times[str(2 * t)] / times[str(t)] for t in (2048, 4096, 8192)]
    claims.append(
        Claim(
            "window time, worst growth per doubling of T to 16384",
            "itself at half the length",
            max(growth),
            2.3,
            at_most=True,
        )
    )
    return claims


def _flex(q, k, v) -> list[Claim]:
    """FlexAttention compiles a window for the processor too, forward only."""
    q, k, v = (x.detach() for x in (q, k, v))
    try:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        T = q.shape[2]
        blocks = create_block_mask(lambda b, h, i, j: (i - j).abs() <= 64, None, None, T, T, device="cpu")
        compiled = torch.compile(flex_attention)
        with torch.no_grad():
            times = medians(
                {
                    "FlexAttention, compiled": lambda: compiled(q, k, v, block_mask=blocks),
                    "regard": lambda: attend(q, k, v, extent=Window(64)),
                }
            )
    except Exception as error:
        print(f"\nFlexAttention does not serve here: {type(error).__name__}")
        return []
    show("window r = 64, T = 4096, forward only", times)
    return [
        Claim(
            "window forward, T = 4096",
            "FlexAttention, compiled",
            times["FlexAttention, compiled"] / times["regard"],
            1.0,
        )
    ]


def plain() -> list[Claim]:
    """Softmax attention: the whole of `attend` against calling SDPA oneself."""
    claims = []
    for shape in ((8, 8, 256, 64), (2, 8, 1024, 64)):
        q, k, v = (torch.randn(shape, requires_grad=True) for _ in range(3))
        for name, peer, regard_attend in (
            ("plain", lambda q=q, k=k, v=v: sdpa(q, k, v), lambda q=q, k=k, v=v: attend(q, k, v)),
            (
                "causal",
                lambda q=q, k=k, v=v: sdpa(q, k, v, is_causal=True),
                lambda q=q, k=k, v=v: attend(q, k, v, extent="causal"),
            ),
        ):
            with torch.no_grad():
                forward = medians({"SDPA": peer, "regard": regard_attend}, seconds=8, min_rounds=31)
            training_times = medians(
                {"SDPA": forward_and_backward(peer), "regard": forward_and_backward(regard_attend)},
                seconds=12,
                min_rounds=31,
            )
            show(f"{name} {shape}, forward", forward)
            show(f"{name} {shape}, forward and backward", training_times)
            label = f"{name}, T = {shape[2]}"
            claims.append(
                Claim(
                    f"{label}, forward, share of the time",
                    "SDPA called directly",
                    forward["regard"] / forward["SDPA"],
                    1.03,
                    at_most=True,
                )
            )
            claims.append(
                Claim(
                    f"{label}, forward + backward, share of the time",
                    "SDPA called directly",
                    training_times["regard"] / training_times["SDPA"],
                    1.03,
                    at_most=True,
                )
            )
    return claims


def module() -> list[Claim]:
    """Self-attention as a module, in training and in inference."""
    claims = []
    for B, T, width, heads in ((16, 128, 256, 4), (8, 64, 128, 4), (4, 512, 512, 8)):
        x = torch.randn(B, T, width)
        padding = torch.zeros(B, T, dtype=torch.bool)
        padding[: B // 2, -T // 4 :] = True
        torch_mha = torch.nn.MultiheadAttention(width, heads, batch_first=True)
        regard_attend = Attention(width, heads=heads)
        x_attention = TheirAttention(width, heads=heads, dim_head=width // heads, flash=True)
        shape = f"{B} x {T} x {width}"
        training = medians(
            {
                "torch.nn.MultiheadAttention": forward_and_backward(lambda: torch_mha(x, x, x, need_weights=False)[0]),
                "x-transformers": forward_and_backward(lambda: x_attention(x)),
                "regard": forward_and_backward(lambda: regard_attend(x).output),
            }
        )
        show(f"module {shape}, training", training)
        with torch.no_grad():
            for each in (torch_mha, regard_attend, x_attention):
                each.eval()
            inference = medians(
                {
                    "torch.nn.MultiheadAttention": lambda: torch_mha(x, x, x, need_weights=False),
                    "x-transformers": lambda: x_attention(x),
                    "regard": lambda: regard_attend(x),
                }
            )
            show(f"module {shape}, inference", inference)
            padded = medians(
                {
                    "torch.nn.MultiheadAttention": lambda: torch_mha(
                        x, x, x, need_weights=False, key_padding_mask=padding
                    ),
                    "x-transformers": lambda: x_attention(x, mask=~padding),
                    "regard": lambda: regard_attend(x, mask=~padding[:, None, None]),
                }
            )
            show(f"module {shape}, inference with padding", padded)
        for kind, times in (("training", training), ("inference", inference), ("inference with padding", padded)):
            peer = "torch.nn.MultiheadAttention"
            claims.append(Claim(f"module {shape}, {kind}", peer, times[peer] / times["regard"], 1.0))
    return claims


def sparse() -> list[Claim]:
    """Sparsemax and entmax-1.5 over rows of 256, forward and backward."""
    scores = (torch.randn(8, 8, 256, 256) * 2).requires_grad_()
    alpha_2, alpha_1_5 = torch.tensor(2.0), torch.tensor(1.5)

    def native_disabled(run):
        def run_without_native() -> None:
            with native.disabled():
                run()

        return run_without_native

    claims = []
    for name, peer, alpha in (
        ("sparsemax", entmax_package.sparsemax, alpha_2),
        ("entmax-1.5", entmax_package.entmax15, alpha_1_5),
    ):
        torch.testing.assert_close(entmax(scores, alpha), peer(scores, -1), rtol=1e-4, atol=1e-5)
        regard_attend = forward_and_backward(lambda a=alpha: entmax(scores, a))
        times = medians(
            {
                "entmax package": forward_and_backward(lambda f=peer: f(scores, -1)),
                "regard": regard_attend,
                "regard without a compiler": native_disabled(regard_attend),
            }
        )
        show(f"{name}, forward and backward", times)
        claims.append(
            Claim(f"{name} forward + backward", "entmax package", times["entmax package"] / times["regard"], 2)
        )
    return claims


BENCHMARKS = {"additive": additive, "window": window, "plain": plain, "module": module, "sparse": sparse}


def main() -> None:
    names = sys.argv[1:] or list(BENCHMARKS)
    for name in names:
        if name not in BENCHMARKS:
            sys.exit(f"attention.py: there is no part {name!r}; the parts are {', '.join(BENCHMARKS)}.")
    report([claim for name in names for claim in BENCHMARKS[name]()])


if __name__ == "__main__":
    main()
