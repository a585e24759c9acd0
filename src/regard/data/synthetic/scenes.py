"""Drawn scenes and their captions: "a red circle left of two blue squares". The larger shapes are named first."""

import hashlib
import random
from typing import NamedTuple

from PIL import Image, ImageDraw

COLORS = {
    "red": (205, 50, 45),
    "green": (60, 150, 70),
    "blue": (45, 90, 190),
    "yellow": (232, 190, 40),
    "purple": (130, 70, 160),
    "black": (40, 40, 44),
}
SHAPES = ("circle", "square", "triangle", "cross")
NUMBERS = ("a", "two", "three")
RELATIONS = ("left of", "right of", "above", "below")
SIZE = 64
TEST_COMBINATIONS = 5  # one combination in five is only in the test set


class Group(NamedTuple):
    """One to three equal shapes."""

    quantity: int
    color: str
    shape: str

    @property
    def text(self) -> str:
        """The group in text."""
        name = self.shape if self.quantity == 1 else self.shape + ("es" if self.shape == "cross" else "s")
        return f"{NUMBERS[self.quantity - 1]} {self.color} {name}"


class Scene(NamedTuple):
    """Two groups, the first of larger shapes, and where it is relative to the second."""

    first: Group
    relation: str
    second: Group

    @property
    def caption(self) -> str:
        """The scene in text."""
        return f"{self.first.text} {self.relation} {self.second.text}"


def draw_scene(scene: Scene, rng: random.Random) -> Image.Image:
    """An image of the scene, with random positions, sizes and shades."""
    ground = tuple(rng.randint(225, 255) for _ in range(3))
    image = Image.new("RGB", (4 * SIZE, 4 * SIZE), ground)
    pen = ImageDraw.Draw(image)
    halves = {
        "left of": ((0, 0, 0.5, 1), (0.5, 0, 1, 1)),
        "right of": ((0.5, 0, 1, 1), (0, 0, 0.5, 1)),
        "above": ((0, 0, 1, 0.5), (0, 0.5, 1, 1)),
        "below": ((0, 0.5, 1, 1), (0, 0, 1, 0.5)),
    }
    sizes = rng.uniform(0.36, 0.42), rng.uniform(0.2, 0.26)
    for group, half, size in zip((scene.first, scene.second), halves[scene.relation], sizes, strict=True):
        _draw_group(pen, group, half, size, rng)
    return image.resize((SIZE, SIZE), Image.Resampling.LANCZOS)


def _draw_group(
    pen: ImageDraw.ImageDraw, group: Group, half: tuple[float, float, float, float], size: float, rng: random.Random
) -> None:
    left, top, right, bottom = (4 * SIZE * edge for edge in half)
    upright = bottom - top > right - left
    for number in range(group.quantity):
        share = (number + 0.5) / group.quantity
        x = left + (right - left) * (0.5 if upright else share)
        y = top + (bottom - top) * (share if upright else 0.5)
        # Sized as for three shapes, so that the size depends on the group and not on its quantity.
        available = max(right - left, bottom - top) / 3
        radius = available * size
        x += rng.uniform(-0.08, 0.08) * available
        y += rng.uniform(-0.08, 0.08) * available
        shade = tuple(max(0, min(255, channel + rng.randint(-18, 18))) for channel in COLORS[group.color])
        _draw_shape(pen, group.shape, x, y, radius, shade)


def _draw_shape(pen: ImageDraw.ImageDraw, shape: str, x: float, y: float, r: float, color: tuple[int, ...]) -> None:
    if shape == "circle":
        pen.ellipse((x - r, y - r, x + r, y + r), fill=color)
    elif shape == "square":
        pen.rectangle((x - 0.9 * r, y - 0.9 * r, x + 0.9 * r, y + 0.9 * r), fill=color)
    elif shape == "triangle":
        pen.polygon(((x, y - r), (x - r, y + 0.8 * r), (x + r, y + 0.8 * r)), fill=color)
    else:
        for a, b in ((1.0, 0.34), (0.34, 1.0)):
            pen.rectangle((x - a * r, y - b * r, x + a * r, y + b * r), fill=color)


def is_test_scene(scene: Scene) -> bool:
    """Whether a scene is only in the test set: a combination that training does not have."""
    return hashlib.sha256(scene.caption.encode()).digest()[0] % TEST_COMBINATIONS == 0


def scenes(count: int, *, split: str, seed: int) -> list[tuple[Scene, Image.Image]]:
    """`count` scenes with their images; those of the test split are combinations that no other split has."""
    rng = random.Random(f"{seed} {split}")
    examples: list[tuple[Scene, Image.Image]] = []
    while len(examples) < count:
        groups = [Group(rng.randint(1, 3), rng.choice(list(COLORS)), rng.choice(SHAPES)) for _ in range(2)]
        scene = Scene(groups[0], rng.choice(RELATIONS), groups[1])
        if is_test_scene(scene) == (split == "test"):
            examples.append((scene, draw_scene(scene, rng)))
    return examples
