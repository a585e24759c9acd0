"""Recordings are decoded and resampled correctly, or refused in one sentence before memory is allocated."""

import io
import resource

import numpy as np
import pytest
import soundfile
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.audio_decoding import resample
from regard.data.media.audio import AudioProcessor
from regard.models.settings import AudioSource
from tests.media import audio_bytes, image_bytes, sample_speech

AUDIO = AudioProcessor(AudioSource(sample_rate=8000, mel_bins=16, max_seconds=5.0))


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG"])
def test_every_format_gives_about_the_same_frames(kind: str) -> None:
    plain = AUDIO.read(audio_bytes("WAV")).astype(np.float32)
    other = AUDIO.read(audio_bytes(kind)).astype(np.float32)
    assert plain.shape[1] == 16
    assert abs(len(plain) - len(other)) <= 1
    size = min(len(plain), len(other))
    assert np.corrcoef(plain[:size].ravel(), other[:size].ravel())[0, 1] > 0.8


def test_channels_are_averaged_and_samples_are_resampled() -> None:
    plain = AUDIO.read(audio_bytes()).astype(np.float32)
    both = AUDIO.read(audio_bytes(channels=2)).astype(np.float32)
    assert np.allclose(plain, both, atol=0.02)
    x = sample_speech()
    doubled = resample(torch.from_numpy(x), 8000, 16000).numpy()
    again = AUDIO.read((doubled, 16000)).astype(np.float32)
    size = min(len(plain), len(again))
    assert np.corrcoef(plain[:size].ravel(), again[:size].ravel())[0, 1] > 0.95


@pytest.mark.parametrize(("old", "new"), [(8000, 16000), (16000, 8000), (44100, 16000), (22050, 8000), (8000, 11025)])
def test_resampling_preserves_a_tone(old: int, new: int) -> None:
    t = torch.arange(old, dtype=torch.float64) / old
    tone = torch.sin(2 * torch.pi * 440 * t)
    found = resample(tone, old, new)
    assert abs(len(found) - new) <= 1
    expected = torch.sin(2 * torch.pi * 440 * torch.arange(len(found), dtype=torch.float64) / new)
    middle = slice(new // 10, -new // 10)
    assert (found[middle] - expected[middle]).abs().max() < 2e-3


def test_frequencies_above_the_new_nyquist_frequency_are_removed() -> None:
    t = torch.arange(16000, dtype=torch.float64) / 16000
    found = resample(torch.sin(2 * torch.pi * 6000 * t), 16000, 8000)
    assert found[800:-800].abs().max() < 5e-3


def truncated_wav() -> bytes:
    return audio_bytes()[:3000]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"hello", "this is not a recording"),
        (image_bytes(), "this is not a recording"),
        (truncated_wav(), "cut short|damaged"),
        (audio_bytes("FLAC")[:600], "cut short|damaged|not a recording"),
        (b"", "it is empty"),
        (b"RIFF\xff\xff\xff\xffWAVEfmt ", "not a recording"),
    ],
)
def test_an_invalid_recording_is_refused_in_a_sentence(raw: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        AUDIO.read(raw)
    assert "\n" not in str(error.value)


def test_a_long_recording_is_refused_by_its_header() -> None:
    file = io.BytesIO()
    soundfile.write(file, np.zeros(8000 * 3600, np.int16), 8000, format="FLAC")  # some kilobytes
    assert len(file.getvalue()) < 2_000_000
    with pytest.raises(ValueError, match="lasts 3,600 seconds; 5 is the most"):
        AUDIO.read(file.getvalue())


def test_samples_that_are_not_finite_and_short_recordings_are_refused() -> None:
    file = io.BytesIO()
    soundfile.write(file, np.full(8000, np.nan, np.float32), 8000, format="WAV", subtype="FLOAT")
    with pytest.raises(ValueError, match="not finite"):
        AUDIO.read(file.getvalue())
    with pytest.raises(ValueError, match=r"lasts 0\.01 seconds"):
        AUDIO.read(np.zeros(100, np.float32))


@given(raw=st.binary(max_size=200), at=st.integers(0, 5000), kind=st.sampled_from(["WAV", "FLAC", "OGG"]))
@settings(max_examples=40)
def test_a_damaged_recording_is_decoded_or_refused_in_a_sentence(raw: bytes, at: int, kind: str) -> None:
    whole = bytearray(audio_bytes(kind))
    whole[at % len(whole) : at % len(whole) + len(raw)] = raw
    try:
        assert AUDIO.read(bytes(whole)).shape[1] == 16
    except ValueError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(("old", "new"), [(5003, 8000), (44_101, 8000), (383_999, 8000), (1009, 48_000)])
def test_resampling_between_coprime_rates_needs_little_memory(old: int, new: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tone = torch.sin(2 * torch.pi * 200 * torch.arange(2 * old, dtype=torch.float64) / old).float()
    found = resample(tone, old, new)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # in kilobytes
    assert abs(len(found) - 2 * new) <= 2
    expected = torch.sin(2 * torch.pi * 200 * torch.arange(len(found), dtype=torch.float64) / new)
    assert (found - expected)[new // 10 : -new // 10].abs().max() < 0.05


def test_samples_in_memory_may_be_integers_and_have_channels() -> None:
    one = sample_speech()
    plain = AUDIO.read((one, 8000))
    several = np.stack([one, one], 1)
    assert np.array_equal(AUDIO.read((several, 8000)), plain)
    whole = AUDIO.read(((one * 32767).astype(np.int16), 8000.0))
    assert np.abs(whole.astype(float) - plain.astype(float)).mean() < 0.1
    for rate in (0, "8000", None):
        with pytest.raises(ValueError, match="a rate of"):
            AUDIO.read((one, rate))
