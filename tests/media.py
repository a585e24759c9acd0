"""Small models of images and recordings, and files for them."""

import io
import random
from typing import Any

import numpy as np
import soundfile
import torch

from regard.data.media.base import media_processor
from regard.data.settings import LANGUAGE_TOKEN, SubwordSettings
from regard.data.synthetic.scenes import Group, Scene, draw_scene
from regard.data.synthetic.spoken_digits import RATE, Voice, synthesize
from regard.data.targets.labels import Labels
from regard.data.tokenizers.sentencepiece_tokenizer import train_tokenizer
from regard.data.vocabulary import Vocabulary
from regard.models.settings import ModelSettings
from regard.runs.bundle import Bundle, new_model
from regard.runs.folder import RunDescription
from regard.settings import merge_settings
from regard.special_tokens import EOS
from tests.models.variants import small_preset

LINES = ["a red circle left of two blue squares", "three green crosses above a black triangle", "one two three"] * 5
SOURCES: dict[str, dict[str, Any]] = {
    "images": {
        "kind": "image",
        "size": 32,
        "stem": {"kind": "residual", "widths": [8, 16], "channel_attention": "cbam"},
    },
    "speech": {"kind": "audio", "sample_rate": RATE, "mel_bins": 16, "channels": 4, "max_seconds": 10.0},
}
PRESET = {"images": "show-attend-tell", "speech": "listen-attend-spell"}


def media_bundle(
    kind: str, *, labels: tuple[str, ...] = (), languages: tuple[str, ...] = (), preset: str = "", **change: Any
) -> Bundle:
    """A model with random weights: a preset, the default one if none is named, with some settings changed."""
    default = {"images": "image-classifier", "speech": "speech-classifier"}[kind] if labels else PRESET[kind]
    base = {**small_preset(preset or default), "source": {}}
    settings = ModelSettings.parse(merge_settings(merge_settings(base, {"source": SOURCES[kind]}), change))
    signs = [LANGUAGE_TOKEN.format(each) for each in languages]
    vocabulary: Vocabulary = Labels(labels) if labels else train_tokenizer(LINES, SubwordSettings(), 300, signs)
    medium = media_processor(settings.source)
    assert medium is not None
    torch.manual_seed(0)
    model = new_model(settings, medium, vocabulary)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.3)
        if model.output.bias is not None:
            model.output.bias[EOS] += 2
    description = {"max_tokens": 10, "model": settings, "target_languages": languages, "truncate": bool(labels)}
    return Bundle(RunDescription.model_validate(description), model.eval(), medium, vocabulary)


def sample_image(seed: int = 0) -> Any:
    """A Pillow image."""
    return draw_scene(Scene(Group(1, "red", "circle"), "left of", Group(2, "blue", "square")), random.Random(seed))


def image_bytes(kind: str = "PNG", seed: int = 0, **options: Any) -> bytes:
    file = io.BytesIO()
    sample_image(seed).save(file, kind, **options)
    return file.getvalue()


def sample_speech(seed: int = 0) -> Any:
    """About a second of speech."""
    return synthesize(["one", "two"], Voice(120.0, 1.0, 1.0), random.Random(seed))


def audio_bytes(kind: str = "WAV", seed: int = 0, rate: int = RATE, channels: int = 1, **options: Any) -> bytes:
    file = io.BytesIO()
    mono = sample_speech(seed)
    soundfile.write(file, np.stack([mono] * channels, 1) if channels > 1 else mono, rate, format=kind, **options)
    return file.getvalue()
