"""The saved page of attention in Chromium: the numbers of the tensors, in every view, by pointer and by keyboard."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, Position

from regard.alignment.alignment_head import AlignmentHead
from regard.interpret.captured_attention import Axis, BeamHypothesis, CapturedAttention, Kind, Weights
from regard.views.html_page import write_page
from regard.views.storage import from_record
from tests.browser import checked_page, needs_chromium
from tests.views.modules import defined_globals
from tests.views.samples import assert_close, random_capture

pytestmark = needs_chromium
CELL = 24  # pixels of a cell of a small matrix
VIEWS = ["matrix", "arcs", "heads", "steps", "table"]


def open_page(browser: Browser, folder: Path, *captures: CapturedAttention, **context: Any):
    write_page([(f"model {number}", captured) for number, captured in enumerate(captures, 1)], folder / "x.html")
    return checked_page(browser, (folder / "x.html").as_uri(), **context)


def table(page: Page) -> np.ndarray:
    page.click("[data-view=table]")
    rows = page.locator(".numbers tr").evaluate_all(
        "rows => rows.slice(1).map(r => [...r.cells].slice(1).filter(c => !c.className).map(c => +c.textContent))"
    )
    return np.array(rows)


def status(page: Page) -> str:
    """The status line, without the isolates around labels."""
    text = page.locator("#status").text_content() or ""
    return text.replace("\u2068", "").replace("\u2069", "")


def first_cell(page: Page, captured: CapturedAttention) -> Position:
    """The middle of the first cell of a matrix. Its cells end 2 pixels before the end of what can be scrolled."""
    extent = page.locator(".scroll-extent").evaluate(
        "box => [parseFloat(box.style.width), parseFloat(box.style.height)]"
    )
    sizes = len(captured.source), len(captured.target)
    x, y = (length - 2 - CELL * count + CELL / 2 for length, count in zip(extent, sizes, strict=True))
    return {"x": x, "y": y}


def test_numbers_are_those_of_the_tensors(browser: Browser, tmp_path: Path) -> None:
    captured = random_capture(11)
    words = captured.without_special_tokens().merge_words()
    with open_page(browser, tmp_path, captured) as page:
        assert_close(table(page), words.alignment_weights, atol=6e-4)
        page.check("#special")
        assert_close(table(page), captured.merge_words().alignment_weights, atol=6e-4)
        page.uncheck("#words")
        for kind in captured.kinds:
            page.select_option("#kind", value=kind)
            for layer in range(2):
                page.select_option("#layer", value=str(layer))
                assert_close(table(page), captured.matrix(kind, layer), atol=6e-4)
                page.select_option("#head", value="1")
                assert_close(table(page), captured.matrix(kind, layer, 1), atol=6e-4)
                page.select_option("#head", value="mean")
            page.select_option("#layer", value="mean")
            assert_close(table(page), captured.matrix(kind), atol=6e-4)
        page.select_option("#kind", value="cross")
        page.select_option("#layer", value="attribution")
        size = np.abs(captured.attribution["source"])
        assert_close(table(page), size / size.max(1, keepdims=True), atol=6e-4)
        page.uncheck("#special")
        page.check("#words")
        of_words = np.abs(words.attribution["source"])  # pieces add up with their signs, then their size is taken
        assert_close(table(page), of_words / of_words.max(1, keepdims=True), atol=6e-4)
        assert page.locator("td.muted").count() == 0, "attribution has no hidden weight"
        page.select_option("#layer", value="0")
        assert_close(table(page), words.matrix("cross", 0), atol=6e-4)


def test_every_view_fits_in_both_themes_and_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    for context in ({"color_scheme": "light"}, {"color_scheme": "dark", "viewport": {"width": 390, "height": 700}}):
        with open_page(browser, tmp_path, random_capture(3), **context) as page:
            for kind in ("cross", "encoder", "decoder"):
                page.select_option("#kind", value=kind)
                for view in VIEWS:
                    page.click(f"[data-view={view}]")
                    assert page.locator(".body > *").count() >= 1
                    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view


def test_pointing_at_a_cell_or_word_reports_its_weights(browser: Browser, tmp_path: Path) -> None:
    captured = random_capture(5)
    words = captured.without_special_tokens().merge_words()
    with open_page(browser, tmp_path, captured) as page:
        page.hover("canvas.matrix", position=first_cell(page, words))
        assert status(page).startswith(
            f"{words.target.labels[0]} → {words.source.labels[0]}: {words.alignment_weights[0, 0]:.3f}"
        )
        page.click("[data-view=arcs]")
        page.hover("text.word >> nth=0")
        assert status(page).startswith(f"{words.source.labels[0]} ←")


def test_every_view_can_be_used_with_the_keyboard(browser: Browser, tmp_path: Path) -> None:
    captured = random_capture(6)
    words = captured.without_special_tokens().merge_words()
    with open_page(browser, tmp_path, captured) as page:
        page.focus("canvas.matrix")
        page.keyboard.press("End")
        page.keyboard.press("End")
        last = f"{words.target.labels[-1]} → {words.source.labels[-1]}: {words.alignment_weights[-1, -1]:.3f}"
        assert status(page).startswith(last)
        page.keyboard.press("Home")
        assert status(page).startswith(f"{words.target.labels[0]} → {words.source.labels[0]}")
        page.focus("[data-view=matrix]")
        for view in [*VIEWS[1:], VIEWS[0]]:
            page.keyboard.press("ArrowRight")
            assert page.locator("[aria-selected=true]").get_attribute("data-view") == view
        page.click("[data-view=heads]")
        page.focus(".head >> nth=4")
        assert "layer 2, head 2: entropy" in status(page)
        page.keyboard.press("Enter")
        assert page.locator("[aria-selected=true]").get_attribute("data-view") == "matrix"
        assert (page.input_value("#layer"), page.input_value("#head")) == ("1", "1")
        page.click("[data-view=steps]")
        page.focus(".steps input")
        page.keyboard.press("End")
        assert page.locator(".current").text_content() == words.target.labels[-1]


def test_search_counts_matching_words(browser: Browser, tmp_path: Path) -> None:
    captured = random_capture(6)
    with open_page(browser, tmp_path, captured) as page:
        page.fill("#find", "t0")
        expected = sum(
            "t0" in label for label in (*captured.source.merge_words().labels, *captured.target.merge_words().labels)
        )
        assert status(page) == f"{expected} found"


def test_images_and_weights_can_be_downloaded(browser: Browser, tmp_path: Path) -> None:
    captured = random_capture(8)
    with open_page(browser, tmp_path, captured) as page:
        for view in ("matrix", "arcs"):
            page.click(f"[data-view={view}]")
            for name, begins in (("png", b"\x89PNG"), ("svg", b"<svg")):
                with page.expect_download() as download:
                    page.click(f"#{name}")
                download.value.save_as(tmp_path / "saved")
                assert (tmp_path / "saved").read_bytes().startswith(begins)
        with page.expect_download() as download:
            page.click("#json")
        download.value.save_as(tmp_path / "saved.json")
    again = from_record(json.loads((tmp_path / "saved.json").read_text()))
    assert (again.source, again.target, again.alignment_head) == (
        captured.source,
        captured.target,
        captured.alignment_head,
    )
    for kind in captured.kinds:
        for one, other in zip(again.weights[kind], captured.weights[kind], strict=True):
            assert_close(one, other, atol=2e-5)


def capture_with_markup() -> CapturedAttention:
    words = [
        "▁</script><script>alert(1)</script>",
        "▁<img src=x onerror=alert(1)>",
        "▁\"'&amp;",
        "▁\u202eevil",
        "▁\ud800",
    ]
    words += ["▁" + "x" * 10_000, "▁<!--script-->", "▁<!--data-->", "▁السلام", "▁我们"]
    special = (*[False] * len(words), True)
    side = Axis((*words, "</s>"), special)
    before = Axis(("<s>", *words), (True, *[False] * len(words)))
    T = len(side)
    weights: dict[Kind, list[Weights]] = {"cross": [np.full((2, T, T), 1 / T, np.float32)]}
    aligned = AlignmentHead(0).select(weights["cross"])
    other = replace(side, labels=(*words[::-1], "</s>"))
    beam = tuple(BeamHypothesis(-0.5, (-0.1,) * T, each, aligned) for each in (side, other))
    attribution = {"source": aligned}
    return CapturedAttention(
        side, side, before, weights, {}, attribution, aligned, alignment_head=AlignmentHead(0), beam=beam
    )


def test_labels_are_never_markup_in_any_view(browser: Browser, tmp_path: Path) -> None:
    """Side by side, too."""
    with open_page(browser, tmp_path, capture_with_markup(), capture_with_markup()) as page:
        page.on("dialog", lambda dialog: pytest.fail(f"a token ran: {dialog.message}"))
        for view in [*VIEWS, "beam"]:
            page.click(f"[data-view={view}]")
            for word in page.locator(".body .word").all()[:12]:
                word.hover()
            assert page.locator("img, main script").count() == 0
        page.click("[data-view=table]")
        texts = page.locator(".numbers th").all_text_contents()
        assert any(text.startswith("</script><script>") for text in texts)
        assert "�evil" in texts
        assert max(map(len, texts)) <= 24
        page.click("[data-view=matrix]")
        with page.expect_download() as download:
            page.click("#svg")
        download.value.save_as(tmp_path / "x.svg")
        assert "<script" not in (tmp_path / "x.svg").read_text()


def test_labels_are_never_markup_over_time(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    write_page(
        [("<img src=x onerror=alert(1)>", capture_with_markup()), ("</script>", capture_with_markup())],
        path,
        over_time=True,
    )
    with checked_page(browser, path.as_uri()) as page:
        page.on("dialog", lambda dialog: pytest.fail(f"a token ran: {dialog.message}"))
        page.focus("#timeline input")
        page.keyboard.press("Home")
        assert page.locator("#timeline output").text_content() == "<img src=x onerror=alert(1)>"
        assert page.locator("img, main script").count() == 0


def test_the_beam_is_a_prefix_tree(browser: Browser, tmp_path: Path) -> None:
    captured = random_capture(9)
    special = (False, False, True)
    targets = [
        Axis(("▁a", "▁b", "</s>"), special),
        Axis(("▁a", "▁c", "</s>"), special),
        Axis(("▁d", "▁b", "</s>"), special),
    ]
    rng = np.random.default_rng(1)
    weights = [rng.dirichlet(np.ones(len(captured.source)), 3).astype(np.float32) for _ in targets]
    scores = [(-0.1, -0.2, -0.3), (-0.1, -1.0, -0.3), (-2.0, -0.2, -0.1)]
    beam = tuple(BeamHypothesis(-0.1 * n, scores[n], targets[n], weights[n]) for n in range(3))
    with open_page(browser, tmp_path, replace(captured, beam=beam)) as page:
        page.click("[data-view=beam]")
        assert page.locator("svg text.word").count() == 8, "common prefixes are drawn once"
        page.focus("svg text.word >> nth=3")
        words = replace(
            captured,
            target=targets[1],
            decoder_input=targets[1],
            weights={},
            attribution={},
            alignment_weights=weights[1],
        ).merge_words()
        row = words.without_special_tokens().alignment_weights[1]
        best = words.source.labels[int(row.argmax())]
        expected = f"·c: probability {np.exp(-1.0):.3f}, from {best} {row.max():.3f}"
        assert status(page) == expected
    with open_page(browser, tmp_path, captured) as page:
        assert not page.locator("[data-view=beam]").is_visible()


def test_two_captures_are_side_by_side(browser: Browser, tmp_path: Path) -> None:
    only = CapturedAttention(
        random_capture(2).source,
        random_capture(2).target,
        random_capture(2).decoder_input,
        {"cross": random_capture(2).weights["cross"][:1]},
    )
    with open_page(browser, tmp_path, random_capture(1), only, viewport={"width": 1300, "height": 800}) as page:
        boxes = [page.locator(".panel").nth(number).bounding_box() for number in range(2)]
        assert boxes[0]["y"] == boxes[1]["y"]
        assert boxes[1]["x"] > boxes[0]["x"]
        page.select_option("#kind", value="encoder")
        assert "no attention of this kind" in page.locator(".panel").nth(1).text_content()


def test_models_of_different_sizes_can_be_compared(browser: Browser, tmp_path: Path) -> None:
    """A panel says what its model lacks; the other model is still shown."""
    large, small = random_capture(1, layers=4, heads=4), random_capture(2, layers=1, heads=1)
    small = replace(small, weights={"cross": small.weights["cross"]}, attribution={})
    with open_page(browser, tmp_path, large, small) as page:
        panels = page.locator(".panel")
        for head in ("3", "mean"):
            page.select_option("#layer", value="0")
            page.select_option("#head", value=head)
            assert ("Heads of this model: 1." in panels.nth(1).text_content()) == (head == "3")
        page.select_option("#layer", value="3")
        assert "Layers of this model: 1." in panels.nth(1).text_content()
        page.click("[data-view=table]")
        assert panels.nth(0).locator(".numbers").count() == 1
        page.select_option("#layer", value="attribution")
        assert "not captured" in panels.nth(1).text_content()
        page.click("[data-view=heads]")
        panels.nth(0).locator(".head >> nth=13").click()
        assert (page.input_value("#layer"), page.input_value("#head")) == ("3", "1")
        page.select_option("#kind", value="encoder")
        assert "no attention of this kind" in panels.nth(1).text_content()
        assert "aligns best" not in panels.nth(1).text_content()


def test_it_opens_with_the_initial_selection(browser: Browser, tmp_path: Path) -> None:
    initial = {"kind": "encoder", "layer": 1, "head": 2, "words": False, "special": True}
    write_page([("model", random_capture(3))], tmp_path / "x.html", initial=initial)
    with checked_page(browser, (tmp_path / "x.html").as_uri()) as page:
        assert_close(table(page), random_capture(3).matrix("encoder", 1, 2), atol=6e-4)
        assert (page.input_value("#kind"), page.input_value("#layer"), page.input_value("#head")) == (
            "encoder",
            "1",
            "2",
        )
        assert (page.is_checked("#words"), page.is_checked("#special")) == (False, True)


def character_capture(text: str) -> CapturedAttention:
    """Attention of a character-level model: a text without blanks is one word."""
    labels, special = (*text, "</s>"), (*[False] * len(text), True)
    axis = Axis(labels, special)
    weights = np.full((1, len(axis), len(axis)), 1 / len(axis), np.float32)
    return CapturedAttention(
        axis,
        axis,
        axis,
        {"cross": [weights], "decoder": [weights]},
        alignment_weights=weights[0],
        alignment_head=AlignmentHead(0),
    )


def test_tokens_are_shown_if_merging_leaves_fewer_than_three_rows(browser: Browser, tmp_path: Path) -> None:
    with open_page(browser, tmp_path, character_capture("abcdef")) as page:
        assert not page.is_checked("#words")
        assert table(page).shape == (6, 6)
        page.check("#words")
        assert table(page).shape == (1, 1)
        page.select_option("#kind", value="decoder")
        assert page.is_checked("#words"), "the user's choice stays"
    with open_page(browser, tmp_path, random_capture(6)) as page:
        assert page.is_checked("#words")
    with open_page(browser, tmp_path, random_capture(6), character_capture("abc")) as page:
        assert not page.is_checked("#words"), "one of the two would be a single row"
    write_page([("", character_capture("abcdef"))], tmp_path / "x.html", initial={"words": True})
    with checked_page(browser, (tmp_path / "x.html").as_uri()) as page:
        assert table(page).shape == (1, 1)


def test_no_name_of_a_module_is_global(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "blank.html").write_text("<!doctype html><title>blank</title>")
    with open_page(browser, tmp_path, random_capture(6)) as page:
        for view in VIEWS:
            page.click(f"[data-view={view}]")
        found = defined_globals(page)
    with checked_page(browser, (tmp_path / "blank.html").as_uri()) as blank:
        assert found == defined_globals(blank)


def test_weight_on_hidden_special_tokens_is_reported_in_every_view(browser: Browser, tmp_path: Path) -> None:
    with open_page(browser, tmp_path, random_capture(6)) as page:
        page.click("[data-view=table]")
        rows = page.locator(".numbers tr").evaluate_all(
            "rows => rows.slice(1).map(r => [...r.cells].slice(1).map(c => +c.textContent))"
        )
        assert_close(np.array(rows).sum(1), np.ones(len(rows)), atol=5e-3)
        page.click("[data-view=steps]")
        assert re.search(r"; 0\.\d+ of its row on hidden special tokens", status(page))
        page.click("[data-view=arcs]")
        page.hover("text.word >> nth=-1")
        assert "of its row on hidden special tokens" in status(page)


def test_tapping_a_cell_reports_its_weight(browser: Browser, tmp_path: Path) -> None:
    captured = random_capture(5)
    words = captured.without_special_tokens().merge_words()
    with open_page(browser, tmp_path, captured, has_touch=True, viewport={"width": 390, "height": 700}) as page:
        page.locator("canvas.matrix").tap(position=first_cell(page, words))
        assert status(page).startswith(f"{words.target.labels[0]} → {words.source.labels[0]}: ")


def test_playing_stops_when_another_view_is_shown(browser: Browser, tmp_path: Path) -> None:
    with open_page(browser, tmp_path, random_capture(8)) as page:
        page.click("[data-view=steps]")
        page.click(".steps button")
        page.check("#special")
        assert page.locator(".steps button").text_content() == "Play"
        page.click(".steps button")
        page.click("[data-view=table]")
        page.wait_for_timeout(900)
        assert status(page) == ""


def test_a_slider_selects_a_capture_over_time(browser: Browser, tmp_path: Path) -> None:
    weights = random_capture(4).alignment_weights
    assert weights is not None
    several = [replace(random_capture(4), alignment_weights=weights * np.float32(0.5**seed)) for seed in range(3)]
    path = tmp_path / "x.html"
    write_page([(f"step {seed}", each) for seed, each in enumerate(several)], path, over_time=True)
    with checked_page(browser, path.as_uri()) as page:
        assert page.locator("#timeline output").text_content() == "step 2"
        assert_close(table(page), several[2].without_special_tokens().merge_words().alignment_weights, atol=6e-4)
        page.focus("#timeline input")
        page.keyboard.press("Home")
        assert page.locator(".panel").count() == 1
        assert_close(table(page), several[0].without_special_tokens().merge_words().alignment_weights, atol=6e-4)


def test_attribution_of_a_model_without_attention_is_shown(browser: Browser, tmp_path: Path) -> None:
    captured = replace(random_capture(2), weights={}, alignment_weights=None, alignment_head=None)
    with open_page(browser, tmp_path, captured, random_capture(3)) as page:
        page.select_option("#layer", value="attribution")
        assert page.locator(".panel").nth(0).locator("canvas.matrix").count() == 1
        page.select_option("#layer", value="mean")
        assert "does not attend" in (page.locator(".panel").nth(0).text_content() or "")
        page.click("[data-view=heads]")
        assert "does not attend" in (page.locator(".panel").nth(0).text_content() or "")
    with open_page(browser, tmp_path, captured) as page:
        assert page.input_value("#layer") == "attribution"
        of_words = np.abs(captured.without_special_tokens().merge_words().attribution["source"])
        assert_close(table(page), of_words / of_words.max(1, keepdims=True), atol=6e-4)
        with page.expect_download() as download:
            page.click("#json")
        download.value.save_as(tmp_path / "saved.json")
    again = from_record(json.loads((tmp_path / "saved.json").read_text()))
    assert_close(again.attribution["source"], captured.attribution["source"], atol=1e-4)


def test_tiny_attribution_is_scaled(browser: Browser, tmp_path: Path) -> None:
    """Gradients are tiny for a word that the model is sure of; the largest of each row is still visible."""
    captured = random_capture(11)
    tiny = {over: values * np.float32(1e-9) for over, values in captured.attribution.items()}
    write_page([("", replace(captured, attribution=tiny))], tmp_path / "x.html", initial={"layer": "attribution"})
    with checked_page(browser, (tmp_path / "x.html").as_uri()) as page:
        of_words = np.abs(captured.without_special_tokens().merge_words().attribution["source"])
        assert_close(table(page), of_words / of_words.max(1, keepdims=True), atol=6e-4)


def test_a_model_without_attention_says_so(browser: Browser, tmp_path: Path) -> None:
    without_attention = CapturedAttention(
        random_capture(2).source, random_capture(2).target, random_capture(2).decoder_input, {}
    )
    with open_page(browser, tmp_path, without_attention) as page:
        assert "does not attend" in page.locator("#panels").text_content()


def test_only_the_largest_weights_of_a_large_capture_are_kept(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.views.html_page.MAX_DENSE_WEIGHTS", 10)
    monkeypatch.setattr("regard.views.html_page.TOP_WEIGHTS", 2)
    captured = random_capture(12)
    with open_page(browser, tmp_path, captured) as page:
        page.check("#special")
        page.uncheck("#words")
        page.select_option("#kind", value="encoder")
        page.select_option("#layer", value="1")
        page.select_option("#head", value="2")
        found, expected = table(page), captured.matrix("encoder", 1, 2)
        kept = expected >= np.sort(expected, 1)[:, -2:-1]
        assert_close(found, np.where(kept, expected, 0), atol=6e-4)


@pytest.mark.parametrize("method", ["merge_words", "without_special_tokens"])
def test_a_capture_that_was_already_merged_is_shown(browser: Browser, tmp_path: Path, method: str) -> None:
    captured = getattr(random_capture(7), method)()
    with open_page(browser, tmp_path, captured) as page:
        for view in VIEWS:
            page.click(f"[data-view={view}]")
        page.check("#special")
        page.select_option("#layer", value="1")
        assert_close(table(page), captured.merge_words().matrix("cross", 1), atol=6e-4)
