"""Names of languages, and detection of the language of a text with the vocabularies of the loaded models."""

from typing import Any

from regard.data.vocabulary import text_tokenizer
from regard.serving.model_pool import ModelPool


def language_name(code: str) -> str:
    """The English name of a language; the code itself if it is unknown."""
    if code == "auto":
        return "Any"
    from babel import Locale, UnknownLocaleError

    try:
        return str(Locale.parse(code.replace("-", "_")).get_display_name("en"))
    except (UnknownLocaleError, ValueError):
        return code


def detect_languages(text: str, pool: ModelPool) -> list[dict[str, Any]]:
    """Source languages of the loaded models and their confidence (0 to 100), best first; without those at 0.

    The subwords of a language are long in its own texts, and short (letters, bytes) in texts of other languages. So
    only languages with a model are detected; for a text in another language all confidences are low.
    """
    piece_lengths: dict[str, float] = {}
    for model in pool.models:
        if model.predictor is None or model.source is None:
            continue
        (tokens,) = text_tokenizer(model.predictor.run.source_processor).encode([text.strip()])
        pieces = text_tokenizer(model.predictor.run.source_processor).pieces(tokens)
        letters = sum(len(piece) for piece in pieces if not piece.startswith("<0x"))
        piece_length = letters / max(1, len(tokens)) if tokens else 0.0
        piece_lengths[model.source] = max(piece_length, piece_lengths.get(model.source, 0.0))
    if not piece_lengths:
        return []
    # A text in the language of the vocabulary has three letters or more per subword; at 1.5, nothing is known.
    certainty = {code: min(1.0, max(0.0, (length - 1.5) / 2.0)) for code, length in piece_lengths.items()}
    total = sum(length**4 for length in piece_lengths.values())
    confidence = {
        code: round(100 * certainty[code] * length**4 / total, 1) for code, length in sorted(piece_lengths.items())
    }
    ranked = sorted(confidence.items(), key=lambda pair: -pair[1])
    return [{"language": code, "confidence": percent} for code, percent in ranked if percent > 0]
