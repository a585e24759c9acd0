"""Files of images and recordings: opened, or refused in one sentence; batches of them."""

from pathlib import Path

import numpy as np
import pytest

from regard.data.media.audio import AudioProcessor
from regard.data.media.base import open_media
from regard.data.media.image import ImageProcessor
from regard.models.settings import AudioSource, ImageSource
from tests.media import audio_bytes, sample_image

IMAGES = ImageProcessor(ImageSource(size=32))
AUDIO = AudioProcessor(AudioSource(sample_rate=8000, mel_bins=16, max_seconds=5.0))


def test_missing_files_folders_and_large_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no such file"):
        open_media(tmp_path / "none.png")
    with pytest.raises(ValueError, match="there is no such file"):
        open_media("PNG\0\1")
    with pytest.raises(ValueError, match="this is not a file"):
        open_media(tmp_path)
    large = tmp_path / "large.png"
    with large.open("wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(ValueError, match="65 MB"):
        open_media(large)


def test_batches_are_scaled_to_about_zero_and_have_masks() -> None:
    pictures, mask = IMAGES.collate([IMAGES.read(sample_image(seed)) for seed in range(3)])
    assert pictures.shape == (3, 3, 32, 32)
    assert mask.all()
    assert -1 <= pictures.min() < 0 < pictures.max() <= 1
    short, long = AUDIO.read(np.zeros(4000, np.float32)), AUDIO.read(audio_bytes())
    frames, mask = AUDIO.collate([short.reshape(-1), long.reshape(-1)])
    assert mask.sum(1).tolist() == [len(short), len(long)]
    assert not frames[0, len(short) :].any()
