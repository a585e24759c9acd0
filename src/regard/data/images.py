"""Pictures from files: checked by their header, turned as their camera was held, scaled into a square."""

import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.data.media import Pictures

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")  # whose readers are well kept; others are not even tried
MOST_PIXELS = 40_000_000
GREY = 128
SCAN = b"\xff\xda"  # begins each pass over a JPEG, of which a progressive one has about ten
FEW_SCANS = 20
MOST_SCANNED = 1_000_000_000  # pixels times passes: about a second
SHORTEST = 4  # pixels
NARROWEST = 50  # times longer than wide: no picture that a square could show

Image.MAX_IMAGE_PIXELS = MOST_PIXELS


def squared(given: Any, medium: "Pictures") -> NDArray[np.uint8]:
    """[C, S, S] of a file's bytes, a Pillow image, or an array [H, W] or [H, W, C] of bytes. Raises RegardError."""
    settings = medium.settings
    if isinstance(given, np.ndarray):
        if given.dtype != np.uint8 or given.ndim not in (2, 3) or (given.ndim == 3 and given.shape[2] not in (1, 3, 4)):
            raise RegardError(
                f"an array {given.shape} of {given.dtype} is not a picture: bytes [H, W] or [H, W, 3] are."
            )
        picture = Image.fromarray(given[..., 0] if given.ndim == 3 and given.shape[2] == 1 else given)
    else:
        picture = _loaded(given) if isinstance(given, io.BytesIO) else _turned(given)
    if min(picture.size) < SHORTEST or max(picture.size) > NARROWEST * min(picture.size):
        raise RegardError(f"a picture of {picture.width} × {picture.height} pixels has nothing to see.")
    mode = "RGB" if settings.colour else "L"
    if picture.mode.startswith("I;16") or picture.mode == "I":  # 16 bits a pixel
        picture = Image.fromarray((np.asarray(picture, np.float64) / 257).clip(0, 255).astype(np.uint8))
    elif picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        over = picture.convert("RGBA")
        white = Image.new("RGBA", over.size, (255, 255, 255, 255))
        picture = Image.alpha_composite(white, over)
    picture = picture.convert(mode)
    if max(picture.size) != settings.size or min(picture.size) != settings.size:
        scale = settings.size / max(picture.size)
        size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
        picture = picture.resize(size, Image.Resampling.BOX if scale < 0.5 else Image.Resampling.BILINEAR)
        canvas = Image.new(mode, (settings.size, settings.size), GREY if mode == "L" else (GREY,) * 3)
        canvas.paste(picture, ((settings.size - size[0]) // 2, (settings.size - size[1]) // 2))
        picture = canvas
    pixels = np.asarray(picture, np.uint8)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1) if settings.colour else pixels[None])


def _loaded(raw: io.BytesIO) -> Image.Image:
    """A picture whose size was seen before it was unpacked."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            picture = Image.open(raw, formats=FORMATS)
            width, height = picture.size
            if width * height > MOST_PIXELS:
                raise RegardError(_too_large(width, height))
            if picture.format == "JPEG":
                scans = raw.getbuffer().tobytes().count(SCAN)
                if scans > FEW_SCANS and scans * width * height > MOST_SCANNED:
                    raise RegardError(f"the picture is written in {scans:,} passes, which takes too long to read.")
                picture.draft(None, (2048, 2048))  # unpacked at a fraction of its size, where it is far larger
            return _turned(picture)
    except UnidentifiedImageError:
        raise RegardError(f"this is not a picture that can be read; there are {', '.join(FORMATS)}.") from None
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise RegardError(f"the picture has more than {MOST_PIXELS // 10**6} million pixels.") from None
    except ValueError:
        raise
    except Exception as error:
        raise RegardError(f"the picture is damaged or cut short ({str(error)[:80] or type(error).__name__}).") from None


def _turned(picture: Image.Image) -> Image.Image:
    """Unpacked, and as the camera was held; of a film the first picture. Raises RegardError."""
    try:
        picture.load()
        return ImageOps.exif_transpose(picture)
    except (OSError, SyntaxError) as error:
        raise RegardError(f"the picture is damaged or cut short ({str(error)[:80]}).") from None


def _too_large(width: int, height: int) -> str:
    most = MOST_PIXELS // 10**6
    return f"the picture has {width:,} × {height:,} pixels, more than {most} million; make it smaller first."
