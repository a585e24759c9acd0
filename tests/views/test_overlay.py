"""Attention laid over pictures and spectrograms: as a picture, in the terminal, in files, on the page."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser

from regard.inference.media_inputs import MediaInputs
from regard.interpret.captured_attention import Axis, CapturedAttention, SourceMedia
from regard.loading import predictor_of
from regard.views import channel_attention as channels
from regard.views.overlay import in_terminal, write_overlay
from regard.views.page import write_page
from regard.views.storage import load, save
from tests.browser import checked_page, needs_chromium
from tests.media import audio_bytes, image_bytes, media_bundle


@pytest.fixture(scope="module")
def seen() -> CapturedAttention:
    found = predictor_of(media_bundle("images")).attend(image_bytes(), "a red circle")
    weights = np.zeros_like(found.weights["cross"][0])
    pieces = len(found.without_special().merge_words().target)
    assert pieces == 3
    # Down the diagonal, word by word.
    weights[0, np.arange(weights.shape[1]), 9 * np.minimum(np.array(found.target.word_indices), 7)] = 1
    return replace(found, weights={"cross": [weights]}, alignment_weights=weights[0])


@pytest.fixture(scope="module")
def heard() -> CapturedAttention:
    return predictor_of(media_bundle("speech")).attend(audio_bytes(), "one two")


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_picture_has_a_panel_for_each_word(
    seen: CapturedAttention, heard: CapturedAttention, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"x{suffix}"
    shown = seen.without_special().merge_words()
    sound = heard.without_special().merge_words()
    assert write_overlay([("one", shown, shown.matrix()), ("two", sound, sound.matrix())], path) == []
    assert path.stat().st_size > 3000
    if suffix == ".svg":
        text = path.read_text()
        for word in (*shown.target.labels, *sound.target.labels, "seconds"):
            assert word in text


def test_other_endings_are_refused(seen: CapturedAttention, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pictures are written as"):
        write_overlay([("", seen, seen.matrix())], tmp_path / "x.gif")


@pytest.mark.parametrize("shade", [0, 255])
def test_where_it_does_not_look_it_is_grey_be_the_picture_dark_or_light(
    seen: CapturedAttention, tmp_path: Path, shade: int
) -> None:
    shown = seen.without_special().merge_words()
    assert shown.source_media is not None
    shown = replace(
        shown, source_media=replace(shown.source_media, values=np.full_like(shown.source_media.values, shade))
    )
    even = np.full_like(shown.matrix(), 1 / 64)

    def grey(weights: np.ndarray) -> float:
        """The share of the picture that is neither dark nor light."""
        write_overlay([("", shown, weights)], tmp_path / "x.png")
        pixels = np.asarray(Image.open(tmp_path / "x.png").convert("L"), float)
        return float(((pixels > 80) & (pixels < 175)).mean())

    assert grey(shown.matrix()) > grey(even) + 0.2


def test_in_the_terminal_each_word_has_its_grid(seen: CapturedAttention, heard: CapturedAttention) -> None:
    shown = seen.without_special().merge_words()
    lines = in_terminal(shown, shown.matrix(), 100).splitlines()
    assert lines[0].split() == list(shown.target.labels)
    assert len(lines) == 9
    assert lines[1].startswith("|██")
    sound = heard.without_special().merge_words()
    rows = in_terminal(sound, sound.matrix(), 80).splitlines()
    assert [row.split()[0] for row in rows[:-1]] == list(sound.target.labels)
    assert sound.source_media is not None
    assert rows[-1].endswith(f"{sound.source_media.seconds:.1f} s")


def test_of_a_long_recording_the_largest_is_still_told_from_the_rest(heard: CapturedAttention) -> None:
    """Several places share a column; what is no share of a whole, as gradients are not, sums to more than one."""
    row = np.full((1, 720), 0.2, np.float32)
    row[0, 360:370] = 1
    one = heard.target.select([0])
    long = replace(
        heard,
        source=Axis(("",) * 720, (False,) * 720, "frames"),
        target=one,
        before=one,
        weights={},
        alignment_weights=None,
    )
    line = in_terminal(replace(long, alignment_head=None, attribution={"source": row}), row, 100).splitlines()[0][18:]
    assert line == 36 * "░" + "█" + 35 * "░"


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
def test_files_keep_what_is_shown(
    seen: CapturedAttention, heard: CapturedAttention, tmp_path: Path, suffix: str
) -> None:
    for each in (seen, heard):
        path = tmp_path / f"x{suffix}"
        save(each, path)
        again = load(path)
        assert again.source_media is not None
        assert each.source_media is not None
        assert np.array_equal(again.source_media.values, each.source_media.values)
        assert (again.source_media.kind, again.source_media.audio) == (each.source_media.kind, each.source_media.audio)
        assert again.source == each.source


def test_damaged_pictures_in_files_are_told(seen: CapturedAttention, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    save(seen, path)
    record = json.loads(path.read_text())
    for change in ({"shape": [3, 5]}, {"values": "%%%"}, {"kind": "film"}, {"shape": [3, 4, 4]}):
        path.write_text(json.dumps({**record, "shown": {**record["shown"], **change}}))
        with pytest.raises(ValueError, match=r"x\.json"):
            load(path)
    with pytest.raises(ValueError, match="what is shown"):
        SourceMedia("picture", np.zeros((4, 4), np.uint8))


@needs_chromium
def test_the_page_lays_a_words_look_over_the_picture(browser: Browser, seen: CapturedAttention, tmp_path: Path) -> None:
    write_page([("captions", seen)], tmp_path / "x.html")
    with checked_page(browser, (tmp_path / "x.html").as_uri()) as page:
        page.wait_for_selector(".source-overlay canvas.picture")
        words = page.locator("button.word")
        assert words.all_text_contents() == ["a", "red", "circle"]

        def light(row: int, column: int) -> float:
            return page.evaluate(
                """([row, column]) => {
                    const canvas = document.querySelector('.source-overlay canvas');
                    const [w, h] = [canvas.width / 8, canvas.height / 8];
                    const pen = canvas.getContext('2d');
                    const { data } = pen.getImageData((column + .3) * w, (row + .3) * h, w * .4, h * .4);
                    let sum = 0;
                    for (let at = 0; at < data.length; at += 4) sum += data[at] + data[at + 1] + data[at + 2];
                    return sum / (data.length / 4) / 765;
                }""",
                [row, column],
            )

        first = light(0, 0), light(7, 0)
        assert first[0] > first[1] + 0.2
        words.nth(1).click()
        assert light(1, 1) > light(7, 0) + 0.2
        assert "current" in (words.nth(1).get_attribute("class") or "")
        page.get_by_role("button", name="Play").click()
        page.click("[data-view=table]")
        assert page.locator(".numbers tr").count() >= 3


@needs_chromium
def test_a_recording_can_be_played_in_the_page(browser: Browser, heard: CapturedAttention, tmp_path: Path) -> None:
    write_page([("spoken", heard)], tmp_path / "x.html")
    with checked_page(browser, (tmp_path / "x.html").as_uri()) as page:
        page.wait_for_selector(".source-overlay canvas.spectrogram")
        seconds = page.evaluate(
            """() => new Promise((resolve, reject) => {
                const sound = document.querySelector('audio');
                if (sound.readyState >= 1) resolve(sound.duration);
                sound.addEventListener('loadedmetadata', () => resolve(sound.duration));
                sound.addEventListener('error', () => reject(new Error('it cannot be played')));
            })"""
        )
        assert heard.source_media is not None
        assert abs(seconds - heard.source_media.seconds) < 0.15


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_what_channels_let_pass_is_drawn(tmp_path: Path, suffix: str) -> None:
    reads = predictor_of(media_bundle("images"))
    blocks = MediaInputs(reads.run).channel_attention(image_bytes())
    assert [len(block.channels) for block in blocks] == [8, 16]
    assert all(
        block.positions is not None and ((block.positions > 0) & (block.positions < 1)).all() for block in blocks
    )
    path = tmp_path / f"x{suffix}"
    channels.write_channels(blocks, np.zeros((3, 32, 32), np.uint8), path)
    assert path.stat().st_size > 2000
    lines = channels.in_terminal(blocks).splitlines()
    assert lines[0].startswith("block 1: 8 channels")
    with pytest.raises(ValueError, match="residual convolutions"):
        MediaInputs(predictor_of(media_bundle("speech")).run).channel_attention(audio_bytes())
