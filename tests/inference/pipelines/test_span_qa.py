"""Extractive question answering, from files to answer spans."""

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
from regard.data.pair_dataset import PairDataset
from regard.data.settings import DataSettings
from regard.data.targets.labels import SpanLabels
from regard.inference.pipelines.span_qa import MAX_ANSWER_TOKENS, _best_span_of_window
from regard.inference.predictor import Predictor
from regard.loading import predictor_from_bundle
from regard.runs.bundle import load_bundle, save_bundle
from regard.special_tokens import BOS, EOS, PAD
from regard.tasks.base import get_task
from regard.training.objective import Objective, batch_loss
from regard.training.run import new_bundle, train
from regard.training.settings import RunSettings, TrainingSettings, run_settings

NAMES, LOCATIONS = ("Mary", "John", "Sandra", "Daniel"), ("kitchen", "garden", "office", "hallway", "bathroom")


def stories(count: int, *, unanswered: bool = False) -> list[dict[str, str]]:
    generator = random.Random(3)
    rows = []
    for _ in range(count):
        names = generator.sample(NAMES, 3)
        locations = generator.sample(LOCATIONS, 3)
        story = " ".join(f"{name} is in the {location}." for name, location in zip(names, locations, strict=True))
        question_index = generator.randrange(3)
        is_unanswered = unanswered and generator.random() < 0.3
        name = next(name for name in NAMES if name not in names) if is_unanswered else names[question_index]
        rows.append(
            {
                "context": story,
                "question": f"Where is {name}?",
                "answer": "" if is_unanswered else locations[question_index],
            }
        )
    return rows


def write_rows(path: Path, rows: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def settings(path: Path, *more: str) -> RunSettings:
    small = ["model.encoder.width=32", "model.decoder.width=32", "model.encoder.heads=2", *more]
    return run_settings(None, {}, small, {"data": {"pairs": [path]}}, task="span_qa")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Corpus, Predictor]:
    folder = tmp_path_factory.mktemp("spans")
    run_config = settings(write_rows(folder / "train.jsonl", stories(60, unanswered=True)))
    corpus = prepare(
        run_config.data, folder / "data", source=run_config.model.source, kind=get_task(run_config.task).data()
    )
    torch.manual_seed(1)
    found = predictor_from_bundle(new_bundle(run_config, corpus, torch.device("cpu")))
    found.run.bundle.model.eval()
    return corpus, found


def test_labels_of_a_batch_are_the_positions_of_its_answers(prepared: tuple[Corpus, Predictor]) -> None:
    corpus, _ = prepared
    assert isinstance(corpus.train, PairDataset)
    assert isinstance(corpus.target_vocabulary, SpanLabels)
    assert corpus.target_vocabulary.unanswered
    numbers = torch.arange(len(corpus.train)).numpy()
    batch = load_batch(corpus, corpus.train, numbers, settings=DataSettings())
    for row, number in enumerate(numbers.tolist()):
        text, answer = corpus.train.texts(number)
        first, last = (int(position) - 1 for position in batch.labels[row])
        assert batch.source[row, 0] == BOS
        if not answer:
            assert (first, last) == (0, 0)
            continue
        answer_tokens = batch.source[row, first : last + 1].tolist()
        assert corpus.source_processor.decode([answer_tokens]) == [answer]
        question = batch.source[row, 1 : batch.source[row].tolist().index(EOS)].tolist()
        assert corpus.source_processor.decode([question]) == [split_question(text)[1]]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("two_passes", [False, True])
def test_the_span_loss_equals_its_formula(
    prepared: tuple[Corpus, Predictor], smoothing: float, two_passes: bool
) -> None:
    corpus, answerer = prepared
    training = TrainingSettings(label_smoothing=smoothing, rdrop_weight=1)
    objective = Objective(answerer.run.bundle.model, training, "span").eval()
    batch = load_batch(corpus, corpus.train, torch.arange(8).numpy())
    found = batch_loss(objective, batch, passes=2 if two_passes else 1)
    model = answerer.run.bundle.model
    expected = entropy = 0.0
    with torch.no_grad():
        for row in range(8):
            tokens = batch.source[row][batch.mask[row]][None]
            features = model.decoder(tokens, model.encode(tokens, tokens != PAD)).features[0]
            logits = (features @ model.output.weight.T + model.output.bias).double()
            for boundary in (0, 1):
                logs = logits[:, EOS + 1 + boundary].log_softmax(0)
                position = int(batch.labels[row, boundary]) - 1
                entropy -= float(logs[position])
                expected -= float((1 - smoothing) * logs[position] + smoothing * logs.mean())
    # Without dropout both passes have the same output.
    assert float(found.total.detach()) == pytest.approx(expected, rel=1e-4)
    assert float(found.cross_entropy) == pytest.approx(entropy, rel=1e-4)


@given(
    seed=st.integers(0, 1000),
    count=st.integers(1, 45),
    before=st.integers(2, 5),
    empty=st.sets(st.integers(0, 44), max_size=3),
)
def test_the_best_span_has_the_highest_score_of_all_spans(seed: int, count: int, before: int, empty: set[int]) -> None:
    offsets = [(at, at if at in empty and count > len(empty) else at + 1) for at in range(count)]
    if all(start == end for start, end in offsets):
        return
    window = Window([], before, offsets)
    scores = torch.randn(before + count + 1, EOS + 3, generator=torch.Generator().manual_seed(seed))
    found = _best_span_of_window(window, 0, scores)
    possible = [
        (float(scores[a, EOS + 1].double() + scores[b, EOS + 2].double()), a, b)
        for a in range(before, before + count)
        for b in range(a, min(a + MAX_ANSWER_TOKENS, before + count))
        if all(offsets[at - before][0] < offsets[at - before][1] for at in (a, b))
    ]
    assert (found.score, found.first, found.last) == max(possible)


def test_answers_are_spans_of_their_passages_and_batch_invariant(prepared: tuple[Corpus, Predictor]) -> None:
    _, answerer = prepared
    texts = [f"{row['context']}\t{row['question']}" for row in stories(20)]
    together = answerer.translate(texts)
    for text, result in zip(texts, together, strict=True):
        single = answerer.translate(text)
        assert single.text == result.text
        assert single.score == pytest.approx(result.score, abs=1e-4)
        assert result.text in text.split("\t")[0]
        passage, question = text.split("\t")
        answer = answerer.answer(passage, question)
        assert answer.text == result.text
        assert passage[answer.start : answer.end] == answer.text


def test_long_passages_are_split_into_windows(prepared: tuple[Corpus, Predictor]) -> None:
    _, answerer = prepared
    long_passage = " ".join(row["context"] for row in stories(80))
    result = answerer.translate(f"{long_passage}\tWhere is Mary?")
    assert not result.error
    assert result.text in long_passage
    assert len(result.source_tokens) <= answerer.run.max_source_tokens


@pytest.mark.parametrize(
    ("text", "word"), [("no question", "question"), ("", "empty"), ("\twhat?", "empty"), ("\ud800 a\tb", "UTF-8")]
)
def test_invalid_inputs_are_reported(prepared: tuple[Corpus, Predictor], text: str, word: str) -> None:
    assert word in prepared[1].translate(text).error


def test_self_attention_is_captured(prepared: tuple[Corpus, Predictor]) -> None:
    captured = prepared[1].attend("Mary is in the garden.\tWhere is Mary?")
    assert set(captured.weights) == {"encoder"}
    with pytest.raises(ValueError, match="spans"):
        prepared[1].attend("Mary is in the garden.\tWhere?", "garden")


def test_a_saved_run_predicts_the_same_answers(prepared: tuple[Corpus, Predictor], tmp_path: Path) -> None:
    bundle = prepared[1].run.bundle
    save_bundle(tmp_path, bundle)
    loaded = load_bundle(tmp_path)
    assert isinstance(loaded.target_vocabulary, SpanLabels)
    assert loaded.target_vocabulary.unanswered
    text = "Mary is in the garden. John is in the office.\tWhere is Mary?"
    assert predictor_from_bundle(loaded).translate(text).text == prepared[1].translate(text).text


@pytest.mark.slow
def test_a_model_learns_to_answer(tmp_path: Path) -> None:
    run_config = settings(
        write_rows(tmp_path / "train.jsonl", stories(600, unanswered=True)),
        "training.steps=400",
        "training.batch_tokens=1024",
        "training.learning_rate=0.004",
        "training.warmup_steps=20",
    )
    run = tmp_path / "run"
    run.mkdir()
    trained = train(run_config, run, quiet=True)
    answerer = predictor_from_bundle(trained.bundle)
    trained.bundle.model.eval()
    rows = stories(60, unanswered=True)
    results = answerer.translate([f"{row['context']}\t{row['question']}" for row in rows])
    correct = sum(result.text.rstrip(".") == row["answer"] for result, row in zip(results, rows, strict=True))
    assert correct >= 45
    assert any(not result.text for result in results)
