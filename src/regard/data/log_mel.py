"""Log-mel spectrograms of samples.

The filters are triangles, evenly spaced on the mel scale m = 2595 log10(1 + f / 700) (O'Shaughnessy 1987); each
recording is normalized to mean 0 and variance 1 in every band.
"""

import functools
import math

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.audio_decoding import mono_samples, resample
from regard.errors import RegardError
from regard.models.settings import AudioSource

MIN_SECONDS = 0.02
MIN_ENERGY = 1e-6  # of a band; lower energies are silence


@functools.lru_cache(8)
def mel_filters(rate: int, size: int, mels: int) -> torch.Tensor:
    """The mel filter bank [size // 2 + 1, mels]."""

    def mel(hertz: float) -> float:
        return 2595 * math.log10(1 + hertz / 700)

    edges = 700 * (10 ** (torch.linspace(mel(20.0), mel(rate / 2), mels + 2, dtype=torch.float64) / 2595) - 1)
    frequencies = torch.linspace(0, rate / 2, size // 2 + 1, dtype=torch.float64)[:, None]
    up = (frequencies - edges[:-2]) / (edges[1:-1] - edges[:-2])
    down = (edges[2:] - frequencies) / (edges[2:] - edges[1:-1])
    return torch.minimum(up, down).clamp_min(0).float()


def log_mel_frames(
    audio: NDArray[np.float32] | tuple[NDArray[np.float32], int], settings: AudioSource
) -> NDArray[np.float16]:
    """The log-mel spectrogram [frames, mels] of samples at the model's rate, or of (samples, rate)."""
    samples, rate = mono_samples(audio, settings)
    if not MIN_SECONDS * rate <= len(samples) <= settings.max_seconds * rate + 1:
        raise RegardError(
            f"the recording lasts {len(samples) / rate:,.2f} seconds; from {MIN_SECONDS} to {settings.max_seconds:g} "
            f"are read."
        )
    if not np.isfinite(samples).all():
        raise RegardError("the recording has samples that are not finite numbers; it is damaged.")
    with torch.inference_mode():
        x = resample(torch.from_numpy(np.ascontiguousarray(samples, np.float32)), rate, settings.sample_rate)
        window, hop = (max(1, round(seconds * settings.sample_rate)) for seconds in (settings.window, settings.hop))
        size = 1 << (window - 1).bit_length()
        x = torch.nn.functional.pad(x, (size // 2, size // 2))
        spectrum = torch.stft(x, size, hop, window, torch.hann_window(window), center=False, return_complex=True)
        power = spectrum.abs().square().T  # [T, size // 2 + 1]
        logs = (power @ mel_filters(settings.sample_rate, size, settings.mel_bins)).clamp_min(MIN_ENERGY).log()
        logs = (logs - logs.mean(0)) / logs.std(0, correction=0).clamp_min(0.1)
        return logs.clamp(-20, 20).to(torch.float16).numpy()
