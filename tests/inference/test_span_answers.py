"""Answers that stand in a passage, from files to spans."""

import json
import random
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.data.answer_spans import Window, split_question
from regard.data.batch import load_batch
from regard.data.corpus import Corpus, prepare
from regard.data.labels import SpanLabels
from regard.data.pair_dataset import PairDataset
from regard.data.settings import DataSettings
from regard.inference.predictor import Predictor
from regard.inference.span_answers import MAX_ANSWER_TOKENS, _best_span_of_window
from regard.loading import predictor_from_bundle
from regard.runs.bundle import load_bundle, save_bundle
from regard.special_tokens import BEGIN, END, PAD
from regard.tasks.base import get_task
from regard.training.objective import Objective, batch_loss
from regard.training.run import new_bundle, train
from regard.training.settings import RunSettings, TrainingSettings, run_settings

NAMES, PLACES = ("Mary", "John", "Sandra", "Daniel"), ("kitchen", "garden", "office", "hallway", "bathroom")


def stories(count: int, *, unanswered: bool = False) -> list[dict[str, str]]:
    draw = random.Random(3)
    made = []
    for _ in range(count):
        who = draw.sample(NAMES, 3)
        where = draw.sample(PLACES, 3)
        story = " ".join(f"{name} is in the {place}." for name, place in zip(who, where, strict=True))
        asked = draw.randrange(3)
        gone = unanswered and draw.random() < 0.3
        name = next(name for name in NAMES if name not in who) if gone else who[asked]
        made.append({"context": story, "question": f"Where is {name}?", "answer": "" if gone else where[asked]})
    return made


def written(path: Path, rows: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def settings(path: Path, *more: str) -> RunSettings:
    small = ["model.encoder.width=32", "model.decoder.width=32", "model.encoder.heads=2", *more]
    return run_settings(None, {}, small, {"data": {"pairs": [path]}}, task="span_qa")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Corpus, Predictor]:
    folder = tmp_path_factory.mktemp("spans")
    chosen = settings(written(folder / "train.jsonl", stories(60, unanswered=True)))
    corpus = prepare(chosen.data, folder / "data", source=chosen.model.source, kind=get_task(chosen.task).data())
    torch.manual_seed(1)
    found = predictor_from_bundle(new_bundle(chosen, corpus, torch.device("cpu")))
    found.run.bundle.model.eval()
    return corpus, found


def test_a_batch_has_the_places_of_its_answers(made: tuple[Corpus, Predictor]) -> None:
    corpus, _ = made
    assert isinstance(corpus.train, PairDataset)
    assert isinstance(corpus.target_side, SpanLabels)
    assert corpus.target_side.unanswered
    numbers = torch.arange(len(corpus.train)).numpy()
    batch = load_batch(corpus, corpus.train, numbers, settings=DataSettings())
    for row, number in enumerate(numbers.tolist()):
        text, answer = corpus.train.texts(number)
        first, last = (int(place) - 1 for place in batch.labels[row])
        assert batch.source[row, 0] == BEGIN
        if not answer:
            assert (first, last) == (0, 0)
            continue
        said = batch.source[row, first : last + 1].tolist()
        assert corpus.source_side.decode([said]) == [answer]
        question = batch.source[row, 1 : batch.source[row].tolist().index(END)].tolist()
        assert corpus.source_side.decode([question]) == [split_question(text)[1]]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("twice", [False, True])
def test_the_loss_is_that_of_its_formula(made: tuple[Corpus, Predictor], smoothing: float, twice: bool) -> None:
    corpus, answerer = made
    training = TrainingSettings(smoothing=smoothing, rdrop_weight=1)
    objective = Objective(answerer.run.bundle.model, training, "span").eval()
    batch = load_batch(corpus, corpus.train, torch.arange(8).numpy())
    found = batch_loss(objective, batch, passes=2 if twice else 1)
    model = answerer.run.bundle.model
    expected = entropy = 0.0
    with torch.no_grad():
        for row in range(8):
            there = batch.source[row][batch.mask[row]][None]
            features = model.decoder(there, model.encode(there, there != PAD)).features[0]
            logits = (features @ model.output.weight.T + model.output.bias).double()
            for end in (0, 1):
                logs = logits[:, END + 1 + end].log_softmax(0)
                place = int(batch.labels[row, end]) - 1
                entropy -= float(logs[place])
                expected -= float((1 - smoothing) * logs[place] + smoothing * logs.mean())
    # Without dropout two passes are one: they agree.
    assert float(found.total.detach()) == pytest.approx(expected, rel=1e-4)
    assert float(found.cross_entropy) == pytest.approx(entropy, rel=1e-4)


@given(
    seed=st.integers(0, 1000),
    count=st.integers(1, 45),
    before=st.integers(2, 5),
    empty=st.sets(st.integers(0, 44), max_size=3),
)
def test_the_best_span_is_the_best_of_all(seed: int, count: int, before: int, empty: set[int]) -> None:
    offsets = [(at, at if at in empty and count > len(empty) else at + 1) for at in range(count)]
    if all(left == right for left, right in offsets):
        return
    window = Window([], before, offsets)
    scores = torch.randn(before + count + 1, END + 3, generator=torch.Generator().manual_seed(seed))
    found = _best_span_of_window(window, 0, scores)
    possible = [
        (float(scores[a, END + 1].double() + scores[b, END + 2].double()), a, b)
        for a in range(before, before + count)
        for b in range(a, min(a + MAX_ANSWER_TOKENS, before + count))
        if all(offsets[at - before][0] < offsets[at - before][1] for at in (a, b))
    ]
    assert (found.score, found.first, found.last) == max(possible)


def test_answers_are_parts_of_their_passages_in_any_company(made: tuple[Corpus, Predictor]) -> None:
    _, answerer = made
    texts = [f"{row['context']}\t{row['question']}" for row in stories(20)]
    together = answerer.translate(texts)
    for text, result in zip(texts, together, strict=True):
        alone = answerer.translate(text)
        assert alone.text == result.text
        assert alone.score == pytest.approx(result.score, abs=1e-4)
        assert result.text in text.split("\t")[0]
        passage, question = text.split("\t")
        told = answerer.answer(passage, question)
        assert told.text == result.text
        assert passage[told.begin : told.end] == told.text


def test_long_passages_are_read_in_windows(made: tuple[Corpus, Predictor]) -> None:
    _, answerer = made
    long = " ".join(row["context"] for row in stories(80))
    result = answerer.translate(f"{long}\tWhere is Mary?")
    assert not result.error
    assert result.text in long
    assert len(result.source_tokens) <= answerer.run.max_source_tokens


@pytest.mark.parametrize(
    ("text", "word"), [("no question", "question"), ("", "empty"), ("\twhat?", "empty"), ("\ud800 a\tb", "UTF-8")]
)
def test_what_cannot_be_read_is_told(made: tuple[Corpus, Predictor], text: str, word: str) -> None:
    assert word in made[1].translate(text).error


def test_the_words_attention_is_seen(made: tuple[Corpus, Predictor]) -> None:
    seen = made[1].attend("Mary is in the garden.\tWhere is Mary?")
    assert set(seen.weights) == {"encoder"}
    with pytest.raises(ValueError, match="spans"):
        made[1].attend("Mary is in the garden.\tWhere?", "garden")


def test_a_folder_keeps_what_it_says(made: tuple[Corpus, Predictor], tmp_path: Path) -> None:
    bundle = made[1].run.bundle
    save_bundle(tmp_path, bundle)
    again = load_bundle(tmp_path)
    assert isinstance(again.target_side, SpanLabels)
    assert again.target_side.unanswered
    text = "Mary is in the garden. John is in the office.\tWhere is Mary?"
    assert predictor_from_bundle(again).translate(text).text == made[1].translate(text).text


@pytest.mark.slow
def test_it_learns(tmp_path: Path) -> None:
    chosen = settings(
        written(tmp_path / "train.jsonl", stories(600, unanswered=True)),
        "training.steps=400",
        "training.tokens=1024",
        "training.learning_rate=0.004",
        "training.warmup=20",
    )
    run = tmp_path / "run"
    run.mkdir()
    trained = train(chosen, run, quiet=True)
    answerer = predictor_from_bundle(trained.bundle)
    trained.bundle.model.eval()
    rows = stories(60, unanswered=True)
    said = answerer.translate([f"{row['context']}\t{row['question']}" for row in rows])
    right = sum(result.text.rstrip(".") == row["answer"] for result, row in zip(said, rows, strict=True))
    assert right >= 45
    assert any(not result.text for result in said)
