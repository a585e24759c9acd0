"""Images and recordings are decoded correctly, or refused in one sentence before memory is allocated."""

import io
import resource
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from regard.data.audio import mel_filters, resample
from regard.data.media.audio import AudioProcessor
from regard.data.media.base import open_media
from regard.data.media.image import ImageProcessor
from regard.models.settings import AudioSource, ImageSource
from tests.media import audio_bytes, image_bytes, sample_image, sample_speech

IMAGES = ImageProcessor(ImageSource(size=32))
GRAY = ImageProcessor(ImageSource(size=32, color=False))
AUDIO = AudioProcessor(AudioSource(sample_rate=8000, mel_bins=16, max_seconds=5.0))


def as_png(pixels: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_every_format_gives_about_the_same_image(kind: str) -> None:
    plain = IMAGES.read(image_bytes("PNG")).astype(int)
    other = IMAGES.read(image_bytes(kind)).astype(int)
    assert plain.shape == (3, 32, 32)
    assert abs(plain - other).mean() < 12


def test_an_image_is_padded_to_a_square_with_gray() -> None:
    wide = np.zeros((10, 40, 3), np.uint8)
    wide[:] = (255, 0, 0)
    found = IMAGES.read(as_png(wide))
    assert found[:, 16, 16].tolist() == [255, 0, 0]
    assert found[:, 0, 16].tolist() == found[:, 31, 16].tolist() == [128, 128, 128]


def test_an_image_of_the_right_size_is_unchanged() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3)).astype(np.uint8)
    assert np.array_equal(IMAGES.read(as_png(pixels)), pixels.transpose(2, 0, 1))
    assert np.array_equal(IMAGES.read(pixels), pixels.transpose(2, 0, 1))


def test_transparent_pixels_are_white() -> None:
    clear = np.zeros((32, 32, 4), np.uint8)
    assert (IMAGES.read(as_png(clear)) == 255).all()
    palette = Image.new("P", (32, 32), 0)
    file = io.BytesIO()
    palette.save(file, "PNG", transparency=0)
    assert (IMAGES.read(file.getvalue()) == 255).all()


def test_exif_orientation_is_applied() -> None:
    pixels = np.zeros((32, 32, 3), np.uint8)
    pixels[:16] = 255  # light above
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", exif=exif.tobytes(), quality=95)
    found = IMAGES.read(file.getvalue())
    assert found[:, 28].mean() > 200
    assert found[:, 4].mean() < 60


def test_grayscale_with_sixteen_bits() -> None:
    deep = (np.linspace(0, 65535, 32 * 32).reshape(32, 32)).astype(np.uint16)
    found = GRAY.read(as_png(deep))
    assert found.shape == (1, 32, 32)
    assert found[0, 0, 0] == 0
    assert found[0, -1, -1] == 255
    assert abs(int(found[0, 16, 0]) - 128) < 3


def png_header(width: int, height: int) -> bytes:
    """A PNG whose header says this size, almost without pixels."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"hello, I am a text", "this is not a picture that can be read"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "this is not a picture"),
        (image_bytes()[:200], "cut short|not a picture"),
        (image_bytes("JPEG")[:300], "cut short|not a picture"),
        (audio_bytes(), "this is not a picture"),
        (png_header(10_000, 10_000), "more than 40 million|10,000 × 10,000"),
        (png_header(100_000, 100_000), "million"),
        (png_header(2, 2), "nothing to see|damaged"),
        (as_png(np.zeros((4, 300, 3), np.uint8)), "nothing to see"),
        (b"", "it is empty"),
        (b"\x89PNG\r\n\x1a\n" + b"\xff" * 500, "damaged|not a picture"),
    ],
)
def test_an_invalid_image_is_refused_in_a_sentence(raw: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        IMAGES.read(raw)
    assert "\n" not in str(error.value)


def test_a_decompression_bomb_is_refused_before_it_is_decoded() -> None:
    """A hundred megapixels of zeros, in a file of some hundred kilobytes."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bomb = io.BytesIO()
    Image.new("1", (10_000, 10_000)).save(bomb, "PNG")
    after_encoding = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="million"):
        IMAGES.read(bomb.getvalue())
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - max(before, after_encoding) < 20_000  # kilobytes; unpacked it would be 300 MB


@given(
    raw=st.binary(max_size=300), at=st.integers(0, 2000), kind=st.sampled_from(["PNG", "JPEG", "GIF", "WEBP", "BMP"])
)
@settings(max_examples=60)
def test_a_damaged_image_is_decoded_or_refused_in_a_sentence(raw: bytes, at: int, kind: str) -> None:
    whole = bytearray(image_bytes(kind))
    whole[at % len(whole) : at % len(whole) + len(raw)] = raw
    try:
        assert IMAGES.read(bytes(whole)).shape == (3, 32, 32)
    except ValueError as error:
        assert "\n" not in str(error)


def test_missing_files_folders_and_large_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no such file"):
        open_media(tmp_path / "none.png")
    with pytest.raises(ValueError, match="this is not a file"):
        open_media(tmp_path)
    large = tmp_path / "large.png"
    with large.open("wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(ValueError, match="65 MB"):
        open_media(large)


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


def test_every_recording_has_mean_zero_and_variance_one() -> None:
    found = AUDIO.read(audio_bytes()).astype(np.float64)
    assert np.abs(found.mean(0)).max() < 0.01
    assert np.abs(found.std(0) - 1).max() < 0.05
    silent = AUDIO.read(np.zeros(8000, np.float32))
    assert np.isfinite(silent.astype(np.float32)).all()


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


def test_mel_filters_are_overlapping_triangles() -> None:
    bank = mel_filters(8000, 256, 16)
    assert bank.shape == (129, 16)
    assert (bank >= 0).all()
    assert (bank <= 1).all()
    assert ((bank > 0).sum(1) <= 2).all()  # of each frequency, at most two bands
    peaks = bank.argmax(0)
    assert (peaks.diff() > 0).all()


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


def test_batches_are_scaled_to_about_zero_and_have_masks() -> None:
    pictures, mask = IMAGES.collate([IMAGES.read(sample_image(seed)) for seed in range(3)])
    assert pictures.shape == (3, 3, 32, 32)
    assert mask.all()
    assert -1 <= pictures.min() < 0 < pictures.max() <= 1
    short, long = AUDIO.read(np.zeros(4000, np.float32)), AUDIO.read(audio_bytes())
    frames, mask = AUDIO.collate([short.reshape(-1), long.reshape(-1)])
    assert mask.sum(1).tolist() == [len(short), len(long)]
    assert not frames[0, len(short) :].any()


@pytest.mark.parametrize(("old", "new"), [(5003, 8000), (44_101, 8000), (383_999, 8000), (1009, 48_000)])
def test_resampling_between_coprime_rates_needs_little_memory(old: int, new: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tone = torch.sin(2 * torch.pi * 200 * torch.arange(2 * old, dtype=torch.float64) / old).float()
    found = resample(tone, old, new)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # in kilobytes
    assert abs(len(found) - 2 * new) <= 2
    expected = torch.sin(2 * torch.pi * 200 * torch.arange(len(found), dtype=torch.float64) / new)
    assert (found - expected)[new // 10 : -new // 10].abs().max() < 0.05


def test_a_jpeg_with_many_scans_is_refused_before_it_is_decoded() -> None:
    file = io.BytesIO()
    Image.new("RGB", (6000, 6000), (200, 30, 30)).save(file, "JPEG", progressive=True)
    raw = file.getvalue()
    last = raw.rindex(b"\xff\xda")
    bomb = raw[:-2] + raw[last:-2] * 400 + raw[-2:]
    assert IMAGES.read(raw).shape == (3, 32, 32)
    with pytest.raises(ValueError, match="passes, which takes too long to read"):
        IMAGES.read(bomb)


def test_an_image_in_memory_is_oriented_and_checked_like_its_file() -> None:
    file = io.BytesIO()
    rotated = sample_image()
    exif = rotated.getexif()
    exif[0x0112] = 6
    rotated.save(file, "JPEG", exif=exif)
    raw = file.getvalue()
    assert np.array_equal(IMAGES.read(Image.open(io.BytesIO(raw))), IMAGES.read(raw))
    with pytest.raises(ValueError, match="damaged or cut short"):
        IMAGES.read(Image.open(io.BytesIO(raw[: len(raw) * 9 // 10])))


def test_sixteen_bit_grayscale_with_a_transparent_value_is_not_composited() -> None:
    file = io.BytesIO()
    ramp = np.linspace(0, 65_535, 32 * 32).astype(np.uint16).reshape(32, 32)
    Image.fromarray(ramp).save(file, "PNG", transparency=0)
    found = GRAY.read(file.getvalue())[0]
    assert found[0].mean() < 10
    assert found[-1].mean() > 245


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
