"""Windows of series: which there are, that validation never leaks, scaling, and what is known in advance."""

from pathlib import Path

import numpy as np
import pytest

from regard.data.batch import load_batch
from regard.data.corpus import Corpus, prepare
from regard.data.dataset_kinds.series_windows import SeriesWindows, model_input
from regard.data.series.regular import regular_series
from regard.data.series.table import SeriesColumns, read_series_table
from regard.data.settings import DataSettings
from regard.data.targets.series import SeriesTarget
from regard.errors import RegardError
from regard.models.settings import SeriesSource
from tests.data.series.samples import write_waves

H, T = 6, 24


def corpus(tmp_path: Path, history: int = T, columns: int = 2, **settings: object) -> Corpus:
    data = DataSettings.parse({"pairs": [str(tmp_path / "t.csv")], "series": {"horizon": H}, **settings})
    source = SeriesSource.parse({"columns": columns, "history": history})
    return prepare(data, tmp_path / "data", kind=SeriesWindows(), source=source)


def test_windows_have_a_whole_history_and_validation_is_the_end(tmp_path: Path) -> None:
    write_waves(tmp_path / "t.csv", 200)
    found = corpus(tmp_path)
    held_out = 200 - 30  # 15 %
    assert list(found.train.index) == list(range(T, held_out - H + 1))
    assert list(found.valid.index) == list(range(held_out, 200 - H + 1))
    assert found.train.window(0).shape == (T, 2)
    assert found.train.future(0).shape == (H, 2)


def test_training_neither_sees_nor_is_scaled_by_validation_values(tmp_path: Path) -> None:
    path = write_waves(tmp_path / "t.csv", 200)
    lines = path.read_text().splitlines()
    before = corpus(tmp_path)
    path.write_text("\n".join([*lines[:171], *(f"{line.rsplit(',', 2)[0]},1e6,-1e6" for line in lines[171:])]) + "\n")
    after = corpus(tmp_path)
    assert before.target.model == after.target.model
    for number in range(len(before.train)):
        assert np.array_equal(before.train.window(number), after.train.window(number))
        assert np.array_equal(before.train.future(number), after.train.future(number))


def test_windows_are_standardized_rows_of_the_table(tmp_path: Path) -> None:
    write_waves(tmp_path / "t.csv", 200)
    found = corpus(tmp_path)
    target = found.target
    assert isinstance(target, SeriesTarget)
    raw = read_series_table(tmp_path / "t.csv", SeriesColumns()).values
    np.testing.assert_allclose(target.mean, raw[:170].mean(0))
    np.testing.assert_allclose(target.scale, raw[:170].std(0))
    np.testing.assert_allclose(target.restore(found.train.window(3)[..., None])[..., 0], raw[3 : 3 + T], rtol=1e-4)
    np.testing.assert_allclose(
        target.restore(found.train.future(3)[..., None])[..., 0], raw[3 + T : 3 + T + H], rtol=1e-4
    )
    assert (target.season, target.horizon, str(target.step)) == (24, H, "1 hour")
    np.testing.assert_allclose(
        np.array(target.naive_error) * target.scale, np.abs(raw[24:170] - raw[:146]).mean(0), rtol=1e-6
    )


def test_missing_targets_are_not_learned(tmp_path: Path) -> None:
    path = write_waves(tmp_path / "t.csv", 200)
    lines = path.read_text().splitlines()
    lines[40] = lines[40].rsplit(",", 2)[0] + ",,3"
    path.write_text("\n".join(lines))
    found = corpus(tmp_path)
    batch = load_batch(found, found.train, np.array([39 - T - 2]))
    assert batch.values is not None
    assert batch.values[0].isnan().nonzero().tolist() == [[2, 0]]
    assert np.isfinite(batch.source.numpy()).all()
    assert found.notes == ("time column date; forecast a, b", "1 missing values, filled in")


def test_several_series_never_share_a_window(tmp_path: Path) -> None:
    write_waves(tmp_path / "t.csv", 80, series=("x", "y"))
    found = corpus(tmp_path)
    assert len(found.train.series) == 2
    for number, row in enumerate(found.train.index):
        first = 0 if row < 80 else 80
        assert len(found.train.window(number)) == T
        assert first + T <= row <= first + 80 - H
    assert found.train.text(0) == "x, from 2024-01-02 00:00:00"


def test_a_series_shorter_than_its_history_has_shorter_windows(tmp_path: Path) -> None:
    write_waves(tmp_path / "t.csv", 100)
    found = corpus(tmp_path, history=300)
    lengths = {len(found.train.window(number)) for number in range(len(found.train))}
    assert max(lengths) < 100
    batch = load_batch(found, found.train, np.array([0, len(found.train) - 1]))
    assert not batch.mask[0].all()
    assert batch.mask[1].all()


def test_a_series_shorter_than_its_forecast_is_refused(tmp_path: Path) -> None:
    write_waves(tmp_path / "t.csv", 8)
    with pytest.raises(RegardError, match="the longest has 8 rows, and a forecast of 6 needs several times as many"):
        corpus(tmp_path)


def test_columns_known_in_advance_are_those_of_the_forecast_steps(tmp_path: Path) -> None:
    write_waves(tmp_path / "t.csv", 120)
    found = corpus(tmp_path, series={"horizon": H, "targets": ["a"], "known": ["b"]})
    raw = read_series_table(tmp_path / "t.csv", SeriesColumns()).values
    target = found.target
    assert isinstance(target, SeriesTarget)
    window = found.train.window(5) * np.array(target.scale) + np.array(target.mean)
    np.testing.assert_allclose(window[:, 0], raw[5 : 5 + T, 0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(window[:, 1], raw[5 + H : 5 + T + H, 1], rtol=1e-4)


def test_a_file_is_read_for_prediction_as_for_training(tmp_path: Path) -> None:
    write_waves(tmp_path / "t.csv", 200)
    found = corpus(tmp_path, columns=2 + 6, series={"horizon": H, "calendar": True})
    target = found.target
    assert isinstance(target, SeriesTarget)
    from collections import Counter

    (series,) = regular_series(read_series_table(tmp_path / "t.csv", target.columns), target.step, Counter())
    values = model_input(series, target)
    assert values.shape[1] == len(target.mean)
    np.testing.assert_allclose(found.train.window(7), values[7 : 7 + T], rtol=1e-5, atol=1e-6)


def test_a_damaged_target_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "series.json"
    for content in ("", "{}", "[]", '{"targets": 3}'):
        path.write_text(content)
        with pytest.raises(RegardError, match=r"series\.json: it cannot be read"):
            SeriesTarget.load(path)
    write_waves(tmp_path / "t.csv", 200)
    good = corpus(tmp_path).target.model.decode()
    for old, new in (('"horizon": 6', '"horizon": 0'), ('"step_seconds": 3600', '"step_seconds": 0')):
        path.write_text(good.replace(old, new))
        with pytest.raises(RegardError, match="it is damaged"):
            SeriesTarget.load(path)
