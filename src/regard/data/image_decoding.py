"""Decoding of images: checked by their header, oriented by their EXIF data, scaled into a square."""

import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.data.media.image import ImageProcessor

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")  # whose decoders are well maintained; others are not tried
MAX_PIXELS = 40_000_000
GRAY = 128
SCAN = b"\xff\xda"  # the marker of a JPEG scan; a progressive file has about ten
MAX_UNCHECKED_SCANS = 20
MAX_SCANNED_PIXELS = 1_000_000_000  # pixels times scans: about a second
MIN_SIDE = 4  # pixels
MAX_ASPECT_RATIO = 50  # of the longer side to the shorter one

Image.MAX_IMAGE_PIXELS = MAX_PIXELS


def to_square_array(source: Any, medium: "ImageProcessor") -> NDArray[np.uint8]:
    """[C, S, S] of a file's bytes, a Pillow image, or an array [H, W] or [H, W, C] of bytes. Raises RegardError."""
    settings = medium.settings
    if isinstance(source, np.ndarray):
        if (
            source.dtype != np.uint8
            or source.ndim not in (2, 3)
            or (source.ndim == 3 and source.shape[2] not in (1, 3, 4))
        ):
            raise RegardError(
                f"an array {source.shape} of {source.dtype} is not a picture: bytes [H, W] or [H, W, 3] are."
            )
        image = Image.fromarray(source[..., 0] if source.ndim == 3 and source.shape[2] == 1 else source)
    else:
        image = _decode(source) if isinstance(source, io.BytesIO) else _decode_upright(source)
    if min(image.size) < MIN_SIDE or max(image.size) > MAX_ASPECT_RATIO * min(image.size):
        raise RegardError(f"a picture of {image.width} × {image.height} pixels has nothing to see.")
    mode = "RGB" if settings.color else "L"
    if image.mode.startswith("I;16") or image.mode == "I":  # 16 bits a pixel
        image = Image.fromarray((np.asarray(image, np.float64) / 257).clip(0, 255).astype(np.uint8))
    elif image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        white = Image.new("RGBA", rgba.size, (255, 255, 255, 255))
        image = Image.alpha_composite(white, rgba)
    image = image.convert(mode)
    if max(image.size) != settings.size or min(image.size) != settings.size:
        scale = settings.size / max(image.size)
        size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
        image = image.resize(size, Image.Resampling.BOX if scale < 0.5 else Image.Resampling.BILINEAR)
        canvas = Image.new(mode, (settings.size, settings.size), GRAY if mode == "L" else (GRAY,) * 3)
        canvas.paste(image, ((settings.size - size[0]) // 2, (settings.size - size[1]) // 2))
        image = canvas
    pixels = np.asarray(image, np.uint8)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1) if settings.color else pixels[None])


def _decode(raw: io.BytesIO) -> Image.Image:
    """An image whose size was checked before it was decoded."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(raw, formats=FORMATS)
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise RegardError(_too_large(width, height))
            if image.format == "JPEG":
                scans = raw.getbuffer().tobytes().count(SCAN)
                if scans > MAX_UNCHECKED_SCANS and scans * width * height > MAX_SCANNED_PIXELS:
                    raise RegardError(f"the picture is written in {scans:,} passes, which takes too long to read.")
                image.draft(None, (2048, 2048))  # decoded at a fraction of its size, where it is far larger
            return _decode_upright(image)
    except UnidentifiedImageError:
        raise RegardError(f"this is not a picture that can be read; there are {', '.join(FORMATS)}.") from None
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise RegardError(f"the picture has more than {MAX_PIXELS // 10**6} million pixels.") from None
    except RegardError:
        raise
    except Exception as error:
        raise RegardError(f"the picture is damaged or cut short ({str(error)[:80] or type(error).__name__}).") from None


def _decode_upright(image: Image.Image) -> Image.Image:
    """Decoded, and oriented by its EXIF data; the first frame of an animation. Raises RegardError."""
    try:
        image.load()
        return ImageOps.exif_transpose(image)
    except (OSError, SyntaxError) as error:
        raise RegardError(f"the picture is damaged or cut short ({str(error)[:80]}).") from None


def _too_large(width: int, height: int) -> str:
    limit = MAX_PIXELS // 10**6
    return f"the picture has {width:,} × {height:,} pixels, more than {limit} million; make it smaller first."
