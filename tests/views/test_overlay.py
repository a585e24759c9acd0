"""Attention drawn over images and spectrograms: as an image, in the terminal, in files, on the page."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser

from regard.inference.inputs.media import MediaInputs
from regard.interpret.captured_attention import Axis, CapturedAttention, Kind, SourceMedia
from regard.loading import predictor_from_bundle
from regard.views.channel_attention import render_channel_attention, write_channel_attention
from regard.views.html_page import write_page
from regard.views.overlay import Overlay, render_overlay, write_overlay
from regard.views.storage import load, save
from tests.browser import checked_page, needs_chromium
from tests.media import audio_bytes, image_bytes, media_bundle


@pytest.fixture(scope="module")
def image_capture() -> CapturedAttention:
    found = predictor_from_bundle(media_bundle("images")).attend(image_bytes(), "a red circle")
    weights = np.zeros_like(found.weights["cross"][0])
    words = len(found.without_special_tokens().merge_words().target)
    assert words == 3
    # All weight on the diagonal, one word after the other.
    weights[0, np.arange(weights.shape[1]), 9 * np.minimum(np.array(found.target.word_indices), 7)] = 1
    return replace(found, weights={"cross": [weights]}, alignment_weights=weights[0])


@pytest.fixture(scope="module")
def recording_capture() -> CapturedAttention:
    return predictor_from_bundle(media_bundle("speech")).attend(audio_bytes(), "one two")


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_an_overlay_has_a_panel_for_each_word(
    image_capture: CapturedAttention, recording_capture: CapturedAttention, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"x{suffix}"
    image_words = image_capture.without_special_tokens().merge_words()
    spoken_words = recording_capture.without_special_tokens().merge_words()
    assert (
        write_overlay(
            [Overlay("one", image_words, image_words.matrix()), Overlay("two", spoken_words, spoken_words.matrix())],
            path,
        )
        == []
    )
    assert path.stat().st_size > 3000
    if suffix == ".svg":
        text = path.read_text()
        for word in (*image_words.target.labels, *spoken_words.target.labels, "seconds"):
            assert word in text


def test_other_suffixes_are_refused(image_capture: CapturedAttention, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pictures are written as"):
        write_overlay([Overlay("", image_capture, image_capture.matrix())], tmp_path / "x.gif")


@pytest.mark.parametrize("shade", [0, 255])
def test_cells_without_weight_are_gray_on_dark_and_light_images(
    image_capture: CapturedAttention, tmp_path: Path, shade: int
) -> None:
    image_words = image_capture.without_special_tokens().merge_words()
    assert image_words.source_media is not None
    image_words = replace(
        image_words,
        source_media=replace(image_words.source_media, values=np.full_like(image_words.source_media.values, shade)),
    )
    uniform = np.full_like(image_words.matrix(), 1 / 64)

    def gray(weights: np.ndarray) -> float:
        """The fraction of the image that is neither dark nor light."""
        write_overlay([Overlay("", image_words, weights)], tmp_path / "x.png")
        pixels = np.asarray(Image.open(tmp_path / "x.png").convert("L"), float)
        return float(((pixels > 80) & (pixels < 175)).mean())

    assert gray(image_words.matrix()) > gray(uniform) + 0.2


def test_the_terminal_has_a_grid_for_each_word(
    image_capture: CapturedAttention, recording_capture: CapturedAttention
) -> None:
    image_words = image_capture.without_special_tokens().merge_words()
    lines = render_overlay(Overlay("", image_words, image_words.matrix()), 100).splitlines()
    assert lines[0].split() == list(image_words.target.labels)
    assert len(lines) == 9
    assert lines[1].startswith("|██")
    spoken_words = recording_capture.without_special_tokens().merge_words()
    rows = render_overlay(Overlay("", spoken_words, spoken_words.matrix()), 80).splitlines()
    assert [row.split()[0] for row in rows[:-1]] == list(spoken_words.target.labels)
    assert spoken_words.source_media is not None
    assert rows[-1].endswith(f"{spoken_words.source_media.seconds:.1f} s")


def test_the_largest_weight_of_a_long_recording_is_visible_in_the_terminal(
    recording_capture: CapturedAttention,
) -> None:
    """Several positions share a column; attributions, whose rows do not sum to one, may sum to more."""
    row = np.full((1, 720), 0.2, np.float32)
    row[0, 360:370] = 1
    axis = recording_capture.target.select([0])
    long = replace(
        recording_capture,
        source=Axis(("",) * 720, (False,) * 720, "frames"),
        target=axis,
        decoder_input=axis,
        weights={},
        alignment_weights=None,
    )
    long = replace(long, alignment_head=None, attribution={"source": row})
    line = render_overlay(Overlay("", long, row), 100).splitlines()[0][18:]
    assert line == 36 * "░" + "█" + 35 * "░"


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_files_have_the_source_media(
    image_capture: CapturedAttention, recording_capture: CapturedAttention, tmp_path: Path, suffix: str
) -> None:
    for each in (image_capture, recording_capture):
        path = tmp_path / f"x{suffix}"
        save(each, path)
        loaded = load(path)
        assert loaded.source_media is not None
        assert each.source_media is not None
        assert np.array_equal(loaded.source_media.values, each.source_media.values)
        assert (loaded.source_media.kind, loaded.source_media.audio) == (
            each.source_media.kind,
            each.source_media.audio,
        )
        assert loaded.source == each.source


def test_damaged_source_media_is_an_error(image_capture: CapturedAttention, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    save(image_capture, path)
    record = json.loads(path.read_text())
    for change in ({"shape": [3, 5]}, {"values": "%%%"}, {"kind": "film"}, {"shape": [3, 4, 4]}):
        path.write_text(json.dumps({**record, "source_media": {**record["source_media"], **change}}))
        with pytest.raises(ValueError, match=r"x\.json"):
            load(path)
    with pytest.raises(ValueError, match="source_media"):
        SourceMedia("image", np.zeros((4, 4), np.uint8))


@needs_chromium
def test_the_page_draws_the_weights_of_a_word_over_the_image(
    browser: Browser, image_capture: CapturedAttention, tmp_path: Path
) -> None:
    write_page([("captions", image_capture)], tmp_path / "x.html")
    with checked_page(browser, (tmp_path / "x.html").as_uri()) as page:
        page.wait_for_selector(".source-overlay canvas.image")
        words = page.locator("button.word")
        assert words.all_text_contents() == ["a", "red", "circle"]

        def brightness(row: int, column: int) -> float:
            return page.evaluate(
                """([row, column]) => {
                    const canvas = document.querySelector('.source-overlay canvas');
                    const [w, h] = [canvas.width / 8, canvas.height / 8];
                    const context = canvas.getContext('2d');
                    const { data } = context.getImageData((column + .3) * w, (row + .3) * h, w * .4, h * .4);
                    let sum = 0;
                    for (let at = 0; at < data.length; at += 4) sum += data[at] + data[at + 1] + data[at + 2];
                    return sum / (data.length / 4) / 765;
                }""",
                [row, column],
            )

        first = brightness(0, 0), brightness(7, 0)
        assert first[0] > first[1] + 0.2
        words.nth(1).click()
        assert brightness(1, 1) > brightness(7, 0) + 0.2
        assert "current" in (words.nth(1).get_attribute("class") or "")
        page.get_by_role("button", name="Play").click()
        page.click("[data-view=table]")
        assert page.locator(".numbers tr").count() >= 3


@needs_chromium
def test_a_recording_can_be_played_on_the_page(
    browser: Browser, recording_capture: CapturedAttention, tmp_path: Path
) -> None:
    write_page([("spoken", recording_capture)], tmp_path / "x.html")
    with checked_page(browser, (tmp_path / "x.html").as_uri()) as page:
        page.wait_for_selector(".source-overlay canvas.spectrogram")
        seconds = page.evaluate(
            """() => new Promise((resolve, reject) => {
                const audio = document.querySelector('audio');
                if (audio.readyState >= 1) resolve(audio.duration);
                audio.addEventListener('loadedmetadata', () => resolve(audio.duration));
                audio.addEventListener('error', () => reject(new Error('it cannot be played')));
            })"""
        )
        assert recording_capture.source_media is not None
        assert abs(seconds - recording_capture.source_media.seconds) < 0.15


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_channel_attention_is_drawn(tmp_path: Path, suffix: str) -> None:
    predictor = predictor_from_bundle(media_bundle("images"))
    blocks = MediaInputs(predictor.run).channel_attention(image_bytes())
    assert [len(block.channels) for block in blocks] == [8, 16]
    assert all(
        block.positions is not None and ((block.positions > 0) & (block.positions < 1)).all() for block in blocks
    )
    path = tmp_path / f"x{suffix}"
    write_channel_attention(blocks, np.zeros((3, 32, 32), np.uint8), path)
    assert path.stat().st_size > 2000
    lines = render_channel_attention(blocks).splitlines()
    assert lines[0].startswith("block 1: 8 channels")
    with pytest.raises(ValueError, match="residual convolutions"):
        MediaInputs(predictor_from_bundle(media_bundle("speech")).run).channel_attention(audio_bytes())


def series_capture(unit: str, rows: int, positions: int, kind: str = "cross") -> CapturedAttention:
    """Attention over two columns of 40 steps."""
    rng = np.random.default_rng(1)
    media = SourceMedia("series", rng.integers(0, 255, (40, 2)).astype(np.uint8))
    source = Axis(tuple(f"p{at}" for at in range(positions)), (False,) * positions, unit)
    target = Axis(tuple(f"+{at + 1}" for at in range(rows)), (False,) * rows, "steps")
    weights = rng.dirichlet(np.ones(positions), (1, rows if kind == "cross" else positions)).astype(np.float32)
    return CapturedAttention(source, target, target, {kind: [weights]}, source_media=media)  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("unit", "positions", "kind"), [("steps", 40, "cross"), ("patches", 9, "encoder"), ("columns", 2, "encoder")]
)
def test_series_are_drawn_with_every_kind_of_position(unit: str, positions: int, kind: Kind, tmp_path: Path) -> None:
    captured = series_capture(unit, 6, positions, kind)
    assert kind in (captured.source_media or pytest.fail("no source")).drawn_kinds
    overlay = Overlay("a day ahead", captured, captured.matrix(kind), kind)
    for suffix in (".png", ".svg", ".pdf"):
        write_overlay([overlay], tmp_path / f"x{suffix}")
        assert (tmp_path / f"x{suffix}").stat().st_size > 3000
    lines = render_overlay(overlay).splitlines()
    assert [line.split()[0] for line in lines[:-1]] == overlay.labels
    assert lines[-1].split()[0] == "p0"
    assert lines[-1].split()[-1] == f"p{positions - 1}"


def test_many_steps_ahead_are_grouped_in_the_terminal() -> None:
    captured = series_capture("steps", 96, 40)
    lines = render_overlay(Overlay("", captured, captured.matrix())).splitlines()
    assert len(lines) == 25
    assert lines[0].strip().startswith("+1 to +4")
