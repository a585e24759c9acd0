"""Spoken digits, synthesized from formants: a source of pulses or noise, filtered by the resonances of the vocal tract.

Source and filter: Fant 1960; formants of vowels: Peterson and Barney 1952, rounded. A simple model:
enough to learn where in a recording each word is.
"""

import random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

RATE = 8_000
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


class Sound(NamedTuple):
    """A speech sound: three formants in hertz, duration, share of noise, and amplitude."""

    formants: tuple[int, int, int]
    seconds: float
    noise: float = 0.0
    amplitude: float = 1.0


I, IH, EH, A, O, U, UH, ER = (  # noqa: E741
    (270, 2290, 3010),
    (390, 1990, 2550),
    (530, 1840, 2480),
    (730, 1090, 2440),
    (570, 840, 2410),
    (300, 870, 2240),
    (640, 1190, 2390),
    (490, 1350, 1690),
)
S, F, TH, Z = (
    Sound((2500, 3300, 3800), 0.10, 1.0, 0.35),
    Sound((1400, 2600, 3500), 0.09, 1.0, 0.15),
    Sound((1700, 2800, 3600), 0.07, 1.0, 0.12),
    Sound((300, 2500, 3400), 0.08, 0.6, 0.4),
)
N, V, W, R = (
    Sound((280, 1700, 2600), 0.08, 0.0, 0.5),
    Sound((300, 1400, 2400), 0.06, 0.3, 0.4),
    Sound((300, 700, 2200), 0.07, 0.0, 0.6),
    Sound((350, 1100, 1550), 0.07, 0.0, 0.6),
)
STOP = Sound((300, 1500, 2500), 0.04, 0.0, 0.0)
BURST = Sound((1500, 3000, 3700), 0.02, 1.0, 0.5)

SOUNDS: dict[str, tuple[Sound, ...]] = {
    "zero": (Z, Sound(I, 0.10), R, Sound(O, 0.14)),
    "one": (W, Sound(UH, 0.15), N),
    "two": (STOP, BURST, Sound(U, 0.20)),
    "three": (TH, R, Sound(I, 0.18)),
    "four": (F, Sound(O, 0.16), Sound(ER, 0.08, 0.0, 0.7)),
    "five": (F, Sound(A, 0.12), Sound(IH, 0.08), V),
    "six": (S, Sound(IH, 0.10), STOP, BURST, S),
    "seven": (S, Sound(EH, 0.10), V, Sound(UH, 0.06), N),
    "eight": (Sound(EH, 0.10), Sound(I, 0.10), STOP, BURST),
    "nine": (N, Sound(A, 0.12), Sound(I, 0.08), N),
}


class Voice(NamedTuple):
    """A speaker."""

    pitch: float  # hertz
    formant_scale: float
    speed: float


def random_voice(rng: random.Random) -> Voice:
    """A random speaker."""
    return Voice(rng.uniform(85, 230), rng.uniform(0.88, 1.15), rng.uniform(0.85, 1.2))


def synthesize(words: list[str], voice: Voice, rng: random.Random) -> NDArray[np.float32]:
    """The words one after the other, with short pauses and some background noise."""
    noise = np.random.default_rng(rng.getrandbits(32))
    segments = [np.zeros(int(RATE * rng.uniform(0.05, 0.12)))]
    for word in words:
        pitch = voice.pitch * rng.uniform(0.92, 1.08)
        sounds = SOUNDS[word]
        segments += [_synthesize_sound(sound, voice, pitch, rng, noise) for sound in sounds]
        segments.append(np.zeros(int(RATE * rng.uniform(0.03, 0.12))))
    signal = np.concatenate(segments)
    signal = np.convolve(signal, np.hanning(5) / np.hanning(5).sum(), "same")  # joints without clicks
    signal = signal / max(1e-6, np.abs(signal).max()) * rng.uniform(0.3, 0.9)
    signal = signal + noise.normal(0, rng.uniform(0.001, 0.006), len(signal))
    return np.asarray(signal, np.float32)


def _synthesize_sound(
    sound: Sound, voice: Voice, pitch: float, rng: random.Random, noise: np.random.Generator
) -> NDArray[np.float64]:
    length = int(RATE * sound.seconds / voice.speed * rng.uniform(0.85, 1.15))
    t = np.arange(length) / RATE
    pitch_contour = pitch * (1 + 0.06 * np.cos(np.pi * np.arange(length) / max(1, length)))
    phase = 2 * np.pi * np.cumsum(pitch_contour) / RATE
    formants = [f * voice.formant_scale * rng.uniform(0.96, 1.04) for f in sound.formants]
    samples = np.zeros(length)
    for harmonic in range(1, int(0.48 * RATE / pitch)):
        samples += (1 - sound.noise) * _resonance(harmonic * pitch, formants) / harmonic**0.5 * np.sin(harmonic * phase)
    if sound.noise:
        spectrum = np.fft.rfft(noise.normal(0, 1, length))
        frequencies = np.fft.rfftfreq(length, 1 / RATE)
        samples += sound.noise * np.fft.irfft(spectrum * _resonance(frequencies, formants), length)
    envelope = np.minimum(1, np.minimum(t, t[::-1]) / 0.012)
    return sound.amplitude * envelope * samples


def _resonance(frequency: Any, formants: list[float]) -> NDArray[np.float64]:
    total = np.zeros_like(np.asarray(frequency, np.float64))
    for number, formant in enumerate(formants):
        width = 60 + 40 * number
        total = total + 0.6**number / (1 + ((frequency - formant) / width) ** 2)
    return total


def digit_strings(count: int, *, split: str, seed: int) -> list[tuple[str, NDArray[np.float32]]]:
    """`count` strings of two to four digits, each by another speaker, with their recordings."""
    rng = random.Random(f"{seed} {split}")
    recordings = []
    for _ in range(count):
        words = [rng.choice(WORDS) for _ in range(rng.randint(2, 4))]
        recordings.append((" ".join(words), synthesize(words, random_voice(rng), rng)))
    return recordings
