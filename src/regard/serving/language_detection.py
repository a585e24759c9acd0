"""Names of languages, and an honest guess which one a text is in."""

from typing import Any

from regard.data.vocabulary import text_tokenizer
from regard.serving.model_pool import ModelPool


def name_of(code: str) -> str:
    """In English, as people call it; the code itself where nobody knows it."""
    if code == "auto":
        return "Any"
    from babel import Locale, UnknownLocaleError

    try:
        return str(Locale.parse(code.replace("-", "_")).get_display_name("en"))
    except (UnknownLocaleError, ValueError):
        return code


def detected(text: str, pool: ModelPool) -> list[dict[str, Any]]:
    """Languages of the loaded models, by how well each one's subwords fit the text; none that cannot be told.

    A vocabulary of a language spells its texts in long pieces, and other languages' in letters and bytes. So this knows
    only the languages that there are models for, and says how sure it is; of a text in another language it says little.
    """
    fits: dict[str, float] = {}
    for model in pool.models:
        if model.predictor is None or model.source is None:
            continue
        (tokens,) = text_tokenizer(model.predictor.run.source_side).encode([text.strip()])
        pieces = text_tokenizer(model.predictor.run.source_side).pieces(tokens)
        letters = sum(len(piece) for piece in pieces if not piece.startswith("<0x"))
        fit = letters / max(1, len(tokens)) if tokens else 0.0
        fits[model.source] = max(fit, fits.get(model.source, 0.0))
    if not fits:
        return []
    # Three letters a piece is what a language's own text has at least; below two, nothing is known of it.
    sure = {code: min(1.0, max(0.0, (fit - 1.5) / 2.0)) for code, fit in fits.items()}
    whole = sum(fit**4 for fit in fits.values())
    shares = {code: round(100 * sure[code] * fit**4 / whole, 1) for code, fit in sorted(fits.items())}
    ranked = sorted(shares.items(), key=lambda pair: -pair[1])
    return [{"language": code, "confidence": share} for code, share in ranked if share > 0]
