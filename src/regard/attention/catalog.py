"""The family's table of contents: every axis and every choice, with its formula and paper.

Names, aliases and spelling help for the whole package come from here. It does not import PyTorch, so that listing
the family is instant.
"""

from dataclasses import dataclass
from difflib import get_close_matches

from regard.errors import RegardError

AXES = {
    "score": "how well does this key fit this query?",
    "extent": "which keys may this query look at?",
    "normalizer": "how do scores become weights?",
    "position": "how does attention learn where things are?",
    "image": "the same idea over the channels and positions of [B, C, H, W]",
}

KEYWORDS = {"normalizer": "normalize"}  # the argument for an axis, where it is called differently

KERNELS = {
    "short": "softmax attention over few positions, in C; the weights are kept for the way back",
    "sdpa": "PyTorch's fused softmax attention; nothing of size Tq x Tk is stored",
    "window": "chunks with look-around over sdpa; time and memory grow with T x radius",
    "dense": "the four stages over the whole Tq x Tk matrix",
    "tiled": "the four stages over one tile of rows at a time, recomputed for gradients; memory grows with T",
    "reference": "the specification in attention/reference.py",
}

EVERY = ("short", "sdpa", "window", "dense", "tiled", "reference")
LONG = ("sdpa", "window", "dense", "tiled", "reference")
UNFUSED = ("dense", "tiled", "reference")


@dataclass(frozen=True)
class Entry:
    """One choice on one axis."""

    axis: str
    name: str
    formula: str
    summary: str
    paper: str
    kernels: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    use: str = ""  # how it is written in Python


BAHDANAU = "Bahdanau, Cho, Bengio 2014, arXiv:1409.0473"
LUONG = "Luong, Pham, Manning 2015, arXiv:1508.04025"
VASWANI = "Vaswani et al. 2017, arXiv:1706.03762"
XU = "Xu et al. 2015, arXiv:1502.03044"

ENTRIES = (
    Entry("score", "dot", "q·k", "large vectors that agree", LUONG, EVERY, use='attend(q, k, v, score="dot")'),
    Entry(
        "score",
        "scaled-dot",
        "q·k / √D",
        "dot, kept at unit variance whatever the width",
        VASWANI,
        EVERY,
        ("scaled",),
        use="attend(q, k, v)",
    ),
    Entry(
        "score",
        "cosine",
        "q·k / (|q| |k|)",
        "direction only, length does not count",
        "Graves, Wayne, Danihelka 2014, arXiv:1410.5401",
        EVERY,
        use='attend(q, k, v, score="cosine", scale=10.0)',
    ),
    Entry(
        "score",
        "bilinear",
        "qᵀ W k",
        "a learned product between two spaces",
        LUONG,
        EVERY,
        ("general",),
        use='Attention(width, key_width=source_width, score="bilinear")',
    ),
    Entry(
        "score",
        "additive",
        "vᵀ tanh(W k + U q + b) = vᵀ tanh(W[q; k] + b)",
        "a small network looks at both; the concat form is the same",
        BAHDANAU,
        UNFUSED,
        ("concat", "mlp", "bahdanau"),
        use='Attention(width, key_width=source_width, score="additive")',
    ),
    Entry(
        "score",
        "location",
        "vᵀ tanh(W k + U q + F f + b), f = filters * the look before",
        "additive, and it sees where it looked before: speech, where one moves on; coverage, the sum of all looks",
        "Chorowski et al. 2015, arXiv:1506.07503; See, Liu, Manning 2017, arXiv:1704.04368",
        ("dense", "tiled"),
        ("location-aware", "coverage"),
        use='Attention(width, key_width=source_width, score="location")',
    ),
    Entry("extent", "global", "every j", "look everywhere", BAHDANAU, EVERY, ("full",), use="attend(q, k, v)"),
    Entry(
        "extent",
        "causal",
        "j ≤ i",
        "never look ahead",
        VASWANI,
        ("short", "sdpa", *UNFUSED),
        use='attend(q, k, v, extent="causal")',
    ),
    Entry(
        "extent",
        "window",
        "|i − j| ≤ r",
        "the neighborhood; causal or not, with global tokens or not",
        f"{VASWANI} (restricted); Beltagy, Peters, Cohan 2020, arXiv:2004.05150",
        LONG,
        ("restricted",),
        use="attend(q, k, v, extent=Window(64, causal=True, global_tokens=1))",
    ),
    Entry(
        "extent",
        "local-m",
        "|t − s| ≤ r",
        "a window that moves on with the output",
        LUONG,
        LONG,
        ("monotonic",),
        use="attend(q, k, v, extent=LocalMonotonic(5))",
    ),
    Entry(
        "extent",
        "local-p",
        "|s − p| ≤ r, then × exp(−(s−p)²/2σ²), p = S·σ(vᵀ tanh(W q)), σ = r/2",
        "a window around a position the query predicts, fading out from it",
        LUONG,
        UNFUSED,
        ("predictive",),
        use="Attention(width, extent=LocalPredictive(width, radius=5))",
    ),
    Entry(
        "normalizer",
        "softmax",
        "exp(sⱼ) / Σ exp(s)",
        "soft attention: some weight everywhere",
        BAHDANAU,
        EVERY,
        ("soft",),
        use="attend(q, k, v)",
    ),
    Entry(
        "normalizer",
        "hard",
        "one position, drawn from the softmax; gradients by REINFORCE or straight-through Gumbel",
        "all weight on one position: drawn in training, the best at evaluation",
        f"{XU}; Jang, Gu, Poole 2016, arXiv:1611.01144",
        UNFUSED,
        use='Attention(width, normalize=Hard("reinforce"))  # or Hard("gumbel", temperature=0.5)',
    ),
    Entry(
        "normalizer",
        "sparsemax",
        "argmin over the simplex of |p − s|²",
        "exact zeros where the score is low",
        "Martins, Astudillo 2016, arXiv:1602.02068",
        UNFUSED,
        use='attend(q, k, v, normalize="sparsemax")',
    ),
    Entry(
        "normalizer",
        "entmax",
        "[(α−1)sⱼ − τ]₊^(1/(α−1))",
        "between softmax (α → 1) and sparsemax (α = 2); α can be learned",
        "Peters, Niculae, Martins 2019, arXiv:1905.05702; Correia et al. 2019, arXiv:1909.00015",
        UNFUSED,
        ("entmax15",),
        use="attend(q, k, v, normalize=Entmax(1.3))  # or Entmax(1.5, learnable=True)",
    ),
    Entry(
        "normalizer",
        "sigmoid",
        "1 / (1 + exp(−sⱼ − b))",
        "each position for itself, any total",
        "Ramapuram et al. 2024, arXiv:2409.04431",
        UNFUSED,
        use='attend(q, k, v, normalize="sigmoid")',
    ),
    Entry(
        "normalizer",
        "none",
        "sⱼ",
        "the raw scores are the weights",
        "Katharopoulos et al. 2020, arXiv:2006.16236",
        UNFUSED,
        use='attend(q, k, v, normalize="none")',
    ),
    Entry(
        "position",
        "sinusoidal",
        "sin, cos(p / 10000^(2i/D))",
        "waves of many lengths, joined to the embedding",
        VASWANI,
        use='Sinusoidal(width)(x)  # or Sinusoidal(16, combine="concatenate")(x)',
    ),
    Entry(
        "position",
        "learned",
        "a table, one vector a position",
        "a learned vector a position, joined to the embedding",
        "Gehring et al. 2017, arXiv:1705.03122",
        use="Learned(length, width)(x)",
    ),
    Entry(
        "position",
        "rotary",
        "turn (x₂ᵢ, x₂ᵢ₊₁) by p·θᵢ",
        "queries and keys are turned by their position",
        "Su et al. 2021, arXiv:2104.09864",
        EVERY,
        ("rope",),
        use='Attention(width, heads=8, position="rotary")',
    ),
    Entry(
        "position",
        "alibi",
        "s − m|i − j|",
        "each head forgets with distance, at its own slope",
        "Press, Smith, Lewis 2021, arXiv:2108.12409",
        ("sdpa", *UNFUSED),
        use='Attention(width, heads=8, position="alibi")',
    ),
    Entry(
        "position",
        "shaw",
        "q·(k + a_{j−i}), Σ w (v + a'_{j−i})",
        "a learned vector for each clipped distance",
        "Shaw, Uszkoreit, Vaswani 2018, arXiv:1803.02155",
        UNFUSED,
        ("relative",),
        use='Attention(width, heads=8, position="shaw")',
    ),
    Entry(
        "position",
        "t5",
        "s + b[bucket(j − i)]",
        "a learned number for each head and bucket of distances",
        "Raffel et al. 2020, arXiv:1910.10683",
        ("sdpa", *UNFUSED),
        ("relative-bias",),
        use='Attention(width, heads=8, position="t5")',
    ),
    Entry(
        "image",
        "squeeze-excitation",
        "x · σ(W₂ relu(W₁ mean(x)))",
        "which channels matter, from the average of each",
        "Hu et al. 2017, arXiv:1709.01507",
        (),
        ("se",),
        use="SqueezeExcitation(channels)(x)",
    ),
    Entry(
        "image",
        "cbam",
        "channels, then positions: x · M_c(x), then · M_s",
        "which channels matter, then where",
        "Woo et al. 2018, arXiv:1807.06521",
        use="CBAM(channels)(x)",
    ),
    Entry(
        "image",
        "eca",
        "x · σ(conv₁ᵈ(mean(x)))",
        "squeeze-and-excitation with a handful of weights",
        "Wang et al. 2019, arXiv:1910.03151",
        use="ECA(channels)(x)",
    ),
)


def choices(axis: str) -> list[str]:
    """The names on one axis, in the order they are taught."""
    return [entry.name for entry in ENTRIES if entry.axis == axis]


def find(name: str, axis: str | None = None) -> Entry:
    """The entry of that name or alias. Raises RegardError with the likely spelling if there is none."""
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    entries = [entry for entry in ENTRIES if axis in (None, entry.axis)]
    for entry in entries:
        if wanted == entry.name or wanted in entry.aliases:
            return entry
    known = [spelling for entry in entries for spelling in (entry.name, *entry.aliases)]
    near = get_close_matches(wanted, known, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    what = f"{KEYWORDS.get(axis, axis)}: there is no" if axis else "there is no mechanism"
    raise RegardError(f"{what} {name!r}; {meant}the choices are {', '.join(entry.name for entry in entries)}.")
