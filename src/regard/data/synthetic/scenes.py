"""Drawn scenes and what can be said of them: "a red circle left of two blue squares". What is large is named first."""

import hashlib
import random
from typing import NamedTuple

from PIL import Image, ImageDraw

COLOURS = {
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
HELD_OUT = 5  # one of so many combinations is only in the test


class Group(NamedTuple):
    """One or more things alike."""

    many: int
    colour: str
    shape: str

    @property
    def words(self) -> str:
        """As people say it."""
        name = self.shape if self.many == 1 else self.shape + ("es" if self.shape == "cross" else "s")
        return f"{NUMBERS[self.many - 1]} {self.colour} {name}"


class Scene(NamedTuple):
    """Two groups, the first of larger things, and how it lies to the second."""

    first: Group
    relation: str
    second: Group

    @property
    def caption(self) -> str:
        """As people say it."""
        return f"{self.first.words} {self.relation} {self.second.words}"


def drawn(scene: Scene, dice: random.Random) -> Image.Image:
    """A picture of it, with places, sizes and shades of its own."""
    ground = tuple(dice.randint(225, 255) for _ in range(3))
    picture = Image.new("RGB", (4 * SIZE, 4 * SIZE), ground)
    pen = ImageDraw.Draw(picture)
    halves = {
        "left of": ((0, 0, 0.5, 1), (0.5, 0, 1, 1)),
        "right of": ((0.5, 0, 1, 1), (0, 0, 0.5, 1)),
        "above": ((0, 0, 1, 0.5), (0, 0.5, 1, 1)),
        "below": ((0, 0.5, 1, 1), (0, 0, 1, 0.5)),
    }
    sizes = dice.uniform(0.36, 0.42), dice.uniform(0.2, 0.26)
    for group, half, size in zip((scene.first, scene.second), halves[scene.relation], sizes, strict=True):
        _group(pen, group, half, size, dice)
    return picture.resize((SIZE, SIZE), Image.Resampling.LANCZOS)


def _group(
    pen: ImageDraw.ImageDraw, group: Group, half: tuple[float, float, float, float], size: float, dice: random.Random
) -> None:
    left, top, right, bottom = (4 * SIZE * edge for edge in half)
    upright = bottom - top > right - left
    for number in range(group.many):
        share = (number + 0.5) / group.many
        x = left + (right - left) * (0.5 if upright else share)
        y = top + (bottom - top) * (share if upright else 0.5)
        # As large as it would be with three of them: a size says which group is meant, not how many it has.
        room = max(right - left, bottom - top) / 3
        radius = room * size
        x += dice.uniform(-0.08, 0.08) * room
        y += dice.uniform(-0.08, 0.08) * room
        shade = tuple(max(0, min(255, part + dice.randint(-18, 18))) for part in COLOURS[group.colour])
        _shape(pen, group.shape, x, y, radius, shade)


def _shape(pen: ImageDraw.ImageDraw, shape: str, x: float, y: float, r: float, colour: tuple[int, ...]) -> None:
    if shape == "circle":
        pen.ellipse((x - r, y - r, x + r, y + r), fill=colour)
    elif shape == "square":
        pen.rectangle((x - 0.9 * r, y - 0.9 * r, x + 0.9 * r, y + 0.9 * r), fill=colour)
    elif shape == "triangle":
        pen.polygon(((x, y - r), (x - r, y + 0.8 * r), (x + r, y + 0.8 * r)), fill=colour)
    else:
        for a, b in ((1.0, 0.34), (0.34, 1.0)):
            pen.rectangle((x - a * r, y - b * r, x + a * r, y + b * r), fill=colour)


def held_out(scene: Scene) -> bool:
    """Whether a scene is only in the test: a combination that training has not."""
    return hashlib.sha256(scene.caption.encode()).digest()[0] % HELD_OUT == 0


def scenes(count: int, *, part: str, seed: int) -> list[tuple[Scene, Image.Image]]:
    """So many with their pictures; those of the "test" are combinations that no other part has."""
    dice = random.Random(f"{seed} {part}")
    found: list[tuple[Scene, Image.Image]] = []
    while len(found) < count:
        groups = [Group(dice.randint(1, 3), dice.choice(list(COLOURS)), dice.choice(SHAPES)) for _ in range(2)]
        scene = Scene(groups[0], dice.choice(RELATIONS), groups[1])
        if held_out(scene) == (part == "test"):
            found.append((scene, drawn(scene, dice)))
    return found
