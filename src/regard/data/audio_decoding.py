"""Decoding of recordings: WAV, FLAC and OGG files, or arrays, to mono samples; resampling; WAV files from samples."""

import io
import math
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
import soundfile
import torch
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.models.settings import AudioSource

FORMATS = ("WAV", "WAVEX", "FLAC", "OGG")
SAMPLE_RATES = (1_000, 384_000)  # lowest and highest
MAX_CHANNELS = 8
BLOCK = 1 << 16  # samples read at once
SINC_ZEROS = 24  # zero crossings of the interpolating sinc, on each side: resampling is exact to about -80 dB
MAX_RESAMPLING_WEIGHTS = 1 << 20


def read_samples(raw: io.BytesIO, settings: AudioSource) -> tuple[NDArray[np.float32], int]:
    """The mean of the channels, and the sample rate. Raises RegardError."""
    try:
        file = soundfile.SoundFile(raw)
    except (soundfile.LibsndfileError, RuntimeError, TypeError):
        raise RegardError("this is not a recording that can be read; there are WAV, FLAC and OGG.") from None
    # libsndfile reads a truncated WAV file without an error; the size in a streamed file means nothing.
    start, size = bytes(raw.getbuffer()[:8]), raw.getbuffer().nbytes
    declared = int.from_bytes(start[4:8], "little")
    if start[:4] == b"RIFF" and declared not in (0, 0xFFFFFFFF) and declared + 8 > size + 1:
        raise RegardError("the recording is cut short: it has fewer samples than its header says.")
    with file:
        rate, seconds = file.samplerate, file.frames / max(1, file.samplerate)
        if file.format not in FORMATS:
            raise RegardError(f"this is a {file.format} file; there are WAV, FLAC and OGG.")
        if not SAMPLE_RATES[0] <= rate <= SAMPLE_RATES[1] or not 1 <= file.channels <= MAX_CHANNELS:
            raise RegardError(f"a recording of {file.channels} channels at {rate:,} samples a second is not read.")
        if seconds > settings.max_seconds:
            raise RegardError(
                f"the recording lasts {seconds:,.0f} seconds; {settings.max_seconds:g} is the most that this model "
                f"reads."
            )
        # A header may be wrong: samples are read block by block, up to the limit.
        blocks: list[NDArray[np.float32]] = []
        remaining = int(settings.max_seconds * rate) + 1
        try:
            while remaining > 0 and len(block := file.read(min(BLOCK, remaining), dtype="float32", always_2d=True)):
                blocks.append(block.mean(1))
                remaining -= len(block)
        except (soundfile.LibsndfileError, RuntimeError):
            raise RegardError("the recording is damaged or cut short.") from None
        samples = np.concatenate(blocks) if blocks else np.zeros(0, np.float32)
        if len(samples) < file.frames and file.frames < remaining + len(samples):
            raise RegardError("the recording is cut short: it has fewer samples than its header says.")
    return samples, rate


def mono_samples(audio: Any, settings: AudioSource) -> tuple[NDArray[np.floating[Any]], int]:
    """Mono samples as floats, and their rate. Integers of 8, 16 or 32 bits are scaled; channels are averaged."""
    samples, rate = audio if isinstance(audio, tuple) and len(audio) == 2 else (audio, settings.sample_rate)
    samples = np.asarray(samples)
    if isinstance(rate, bool) or not isinstance(rate, Real) or not SAMPLE_RATES[0] <= float(rate) <= SAMPLE_RATES[1]:
        raise RegardError(
            f"a rate of {rate!r} is not read; give the samples a second, from {SAMPLE_RATES[0]} to {SAMPLE_RATES[1]:,}."
        )
    if samples.dtype == np.uint8:
        samples = (samples.astype(np.float32) - 128) / 128
    elif samples.dtype in (np.int16, np.int32):
        samples = samples / np.float32(-float(np.iinfo(samples.dtype).min))
    if samples.ndim == 2 and samples.shape[1] <= MAX_CHANNELS:
        samples = samples.mean(1)
    if samples.ndim != 1 or not np.issubdtype(samples.dtype, np.floating):
        raise RegardError(
            f"an array {samples.shape} of {samples.dtype} is not a recording; give samples [N] or [N, channels] as "
            f"numbers from -1 to 1, or as whole numbers of 16 bits."
        )
    return samples, round(float(rate))


def resample(x: torch.Tensor, old: int, new: int) -> torch.Tensor:
    """x [N] from the sample rate `old` to `new`: interpolated by a windowed sinc, band-limited to both."""
    if old == new:
        return x
    # Rates such as 44,101 are rounded to the nearest ratio with few phases, off by some millionths: there are as many
    # weights below as the product of the two.
    ratio = Fraction(old, new).limit_denominator(max(1, math.isqrt(MAX_RESAMPLING_WEIGHTS * new // old)))
    old, new = ratio.numerator, ratio.denominator
    cutoff = min(old, new) * 0.99  # below both Nyquist frequencies
    width = math.ceil(SINC_ZEROS * old / cutoff)
    # new outputs for old inputs: output j lies at j / new of the block, the taps at k / old.
    taps = torch.arange(-width, width + old, dtype=torch.float64) / old
    at = torch.arange(new, dtype=torch.float64)[:, None] / new
    t = ((taps - at) * cutoff).clamp(-SINC_ZEROS, SINC_ZEROS)
    kernel = torch.sinc(t) * torch.cos(t * math.pi / SINC_ZEROS / 2) ** 2 * (cutoff / old)
    padded = torch.nn.functional.pad(x[None, None], (width, width + old))
    y = torch.nn.functional.conv1d(padded, kernel[:, None].to(x.dtype), stride=old)
    return y[0].T.reshape(-1)[: -(-len(x) * new // old)]


def encode_wav(audio: NDArray[np.float32] | tuple[NDArray[np.float32], int], settings: AudioSource) -> bytes:
    """Samples at the model's rate, or (samples, rate), as a WAV file of 16 bits at the model's rate."""
    samples, rate = mono_samples(audio, settings)
    x = resample(torch.from_numpy(np.ascontiguousarray(samples, np.float32)), rate, settings.sample_rate)
    file = io.BytesIO()
    soundfile.write(file, x.clamp(-1, 1).numpy(), settings.sample_rate, format="WAV", subtype="PCM_16")
    return file.getvalue()
