"""Synthetic data: reproducible by seed, with disjoint splits."""

import random

import numpy as np

from regard.data.synthetic.notices import notices
from regard.data.synthetic.scenes import COLORS, Group, Scene, draw_scene, is_test_scene, scenes
from regard.data.synthetic.spoken_digits import RATE, WORDS, digit_strings
from regard.data.synthetic.stories import stories


def test_combinations_of_the_test_scenes_are_held_out() -> None:
    splits = {split: [scene for scene, _ in scenes(60, split=split, seed=1)] for split in ("train", "test")}
    captions = {split: {scene.caption for scene in examples} for split, examples in splits.items()}
    assert not captions["train"] & captions["test"]
    scene = Scene(Group(1, "red", "circle"), "left of", Group(2, "blue", "cross"))
    assert scene.caption == "a red circle left of two blue crosses"
    assert all(is_test_scene(scene) for scene in splits["test"])
    assert [s for s, _ in scenes(5, split="train", seed=3)] == [s for s, _ in scenes(5, split="train", seed=3)]


def test_a_scene_is_drawn_as_described() -> None:
    scene = Scene(Group(1, "red", "square"), "above", Group(1, "blue", "square"))
    pixels = np.asarray(draw_scene(scene, random.Random(0)), int)
    above, below = pixels[16, 32], pixels[48, 32]
    assert abs(above - COLORS["red"]).max() < 30
    assert abs(below - COLORS["blue"]).max() < 30


def test_spoken_digits_are_reproducible_and_well_formed() -> None:
    found = digit_strings(4, split="train", seed=1)
    assert [words for words, _ in found] == [words for words, _ in digit_strings(4, split="train", seed=1)]
    for words, samples in found:
        assert set(words.split()) <= set(WORDS)
        assert 0.3 < len(samples) / RATE < 3
        assert np.isfinite(samples).all()
        assert 0.2 < np.abs(samples).max() <= 1


def test_the_summary_of_a_notice_is_supported_by_its_text() -> None:
    for text, summary in notices(30, split="train", seed=1):
        name = summary.split(" to ")[1].split(" ")[0]
        assert name in text
        for word in summary.split():
            if word.isdigit():
                assert word in text


def test_the_answer_of_a_story_is_supported_by_it() -> None:
    for story, question, answer in stories(200, split="train", seed=1):
        lines = [line.split() for line in story.split(" . ")]
        assert answer in story
        if question.startswith("Where is the"):
            continue
        who = question.split()[2]
        if question.startswith("Where is"):
            places = [
                line[-1].rstrip(" .") if line[-1] != "." else line[-2]
                for line in lines
                if line[0] == who and "to" in line
            ]
            assert places[-1] == answer
