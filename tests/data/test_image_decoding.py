"""Images are decoded correctly, or refused in one sentence before memory is allocated."""

import io
import resource
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from regard.data.media.image import ImageProcessor
from regard.models.settings import ImageSource
from tests.media import audio_bytes, image_bytes, sample_image

IMAGES = ImageProcessor(ImageSource(size=32))
GRAY = ImageProcessor(ImageSource(size=32, color=False))


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
