"""The stem of series, against plain loops; padding and instance normalization."""

import pytest
import torch
from torch import Tensor

from regard.models.settings import SeriesSource, StemOptions
from regard.models.stems.series import EPSILON, SeriesStem, instance_statistics

B, T, C = 3, 20, 4


def stem(**settings: object) -> SeriesStem:
    torch.manual_seed(0)
    source = SeriesSource.parse({"columns": C, "history": T, "patch_length": 6, "patch_stride": 3, **settings})
    return SeriesStem(source, StemOptions(8, 0.0)).double().eval()


def window(seed: int = 0) -> tuple[Tensor, Tensor]:
    torch.manual_seed(seed)
    return torch.randn(B, T, C, dtype=torch.float64) * 5 + 2, torch.ones(B, T, dtype=torch.bool)


def normalized(x: Tensor, mode: str) -> Tensor:
    if mode == "last":
        return x - x[:, -1:]
    mean = x.mean(1, keepdim=True)
    scale = (x.var(1, unbiased=False, keepdim=True) + EPSILON).sqrt() if mode == "standard" else 1.0
    return x if mode == "none" else (x - mean) / scale


@pytest.mark.parametrize("mode", ["none", "last", "mean", "standard"])
@pytest.mark.parametrize("channels", ["independent", "mixed"])
def test_patches_end_at_the_last_step(mode: str, channels: str) -> None:
    module, (source, mask) = stem(instance_norm=mode, channels=channels), window()
    found, found_mask = module.read(source, mask)
    assert found_mask.all()
    x = normalized(source, mode)
    starts = [T - 6 - 3 * index for index in range((T - 6) // 3 + 1)][::-1]
    rows = []
    for row in range(B):
        if channels == "independent":
            rows += [torch.stack([module.project(x[row, s : s + 6, c]) for s in starts]) for c in range(C)]
        else:
            rows.append(torch.stack([module.project(x[row, s : s + 6].T.flatten()) for s in starts]))
    torch.testing.assert_close(found, torch.stack(rows))
    assert found.shape[1] == module.source.positions


def test_a_column_is_a_position() -> None:
    module, (source, mask) = stem(unit="column"), window()
    found, _ = module.read(source, mask)
    x = normalized(source, "standard")
    torch.testing.assert_close(found, torch.stack([module.project(x[..., c]) for c in range(C)], 1))


@pytest.mark.parametrize(
    "settings", [{}, {"channels": "mixed"}, {"unit": "column"}, {"patch_length": 1, "patch_stride": 1}]
)
@pytest.mark.parametrize("mode", ["none", "last", "mean", "standard"])
def test_padding_at_the_beginning_changes_nothing(settings: dict[str, object], mode: str) -> None:
    module, (source, mask) = stem(instance_norm=mode, **settings), window()
    short = source[:, 8:]
    padded, padded_mask = source.clone(), mask.clone()
    padded[:, :8], padded_mask[:, :8] = 1e6, False
    alone, alone_mask = module.read(short, mask[:, 8:])
    together, together_mask = module.read(padded, padded_mask)
    count = alone.shape[1] if module.source.unit == "column" else int(alone_mask[0].sum())
    torch.testing.assert_close(together[:, :count], alone[:, :count])
    assert together_mask[:, :count].all()
    assert not together_mask[:, count:].any()


def test_a_constant_column_stays_finite_and_statistics_invert() -> None:
    source, mask = window()
    source[:, :, 1] = 7.0
    mean, scale = instance_statistics(source, mask, "standard")
    assert torch.isfinite((source - mean) / scale).all()
    torch.testing.assert_close((source - mean) / scale * scale + mean, source)


@pytest.mark.parametrize("length", [3, 9, 17])
def test_positions_do_not_depend_on_longer_series_in_the_batch(length: int) -> None:
    """An incomplete patch at the beginning is left out, alone and in a batch; a series shorter than a patch is one."""
    source = SeriesSource(columns=2, history=64, patch_length=4, patch_stride=4, channels="mixed")
    stem = SeriesStem(source, StemOptions(8, 0.0, "learned", 32)).double().eval()
    torch.manual_seed(1)
    short, long = torch.randn(1, length, 2).double(), torch.randn(1, 30, 2).double()
    mask = torch.ones(1, length, dtype=torch.bool)
    alone, alone_mask = stem.read(short, mask)
    padded = torch.cat([torch.full((1, 30 - length, 2), 9.0), short], 1)
    both_mask = torch.ones(2, 30, dtype=torch.bool)
    both_mask[0, : 30 - length] = False
    vectors, found = stem.read(torch.cat([padded, long]), both_mask)
    count = alone.shape[1]
    assert alone_mask.all()
    assert found[0].tolist() == [True] * count + [False] * (found.shape[1] - count)
    torch.testing.assert_close(vectors[0, :count], alone[0])
