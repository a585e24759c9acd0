"""Log-mel spectrograms: filters and normalization."""

import numpy as np

from regard.data.log_mel import mel_filters
from regard.data.media.audio import AudioProcessor
from regard.models.settings import AudioSource
from tests.media import audio_bytes

AUDIO = AudioProcessor(AudioSource(sample_rate=8000, mel_bins=16, max_seconds=5.0))


def test_every_recording_has_mean_zero_and_variance_one() -> None:
    found = AUDIO.read(audio_bytes()).astype(np.float64)
    assert np.abs(found.mean(0)).max() < 0.01
    assert np.abs(found.std(0) - 1).max() < 0.05
    silent = AUDIO.read(np.zeros(8000, np.float32))
    assert np.isfinite(silent.astype(np.float32)).all()


def test_mel_filters_are_overlapping_triangles() -> None:
    bank = mel_filters(8000, 256, 16)
    assert bank.shape == (129, 16)
    assert (bank >= 0).all()
    assert (bank <= 1).all()
    assert ((bank > 0).sum(1) <= 2).all()  # of each frequency, at most two bands
    peaks = bank.argmax(0)
    assert (peaks.diff() > 0).all()
