"""Common to all tests: one thread per test, since tests run in parallel, and no hypothesis deadlines."""

import os

# The cache of torch.compile may hold code of earlier versions of our operators.
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import HealthCheck, settings

from regard import native

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from regard.data.tokenizers.tokenizer import SubwordTokenizer
    from regard.runs.bundle import Bundle

torch.set_num_threads(1)
settings.register_profile("default", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(params=["C", "PyTorch"])
def implementation(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a test with the C implementation and with the PyTorch implementation."""
    if request.param == "PyTorch":
        with native.disabled():
            yield request.param
    else:
        if native.library() is None:
            pytest.skip(native.unavailable_reason())
        yield request.param


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Chromium, for the tests of a module."""
    from tests.browser import launch_chromium

    with launch_chromium() as running:
        yield running


@pytest.fixture(scope="session")
def subwords() -> "SubwordTokenizer":
    """A small trained tokenizer."""
    from regard.data.settings import SubwordSettings
    from regard.data.tokenizers.sentencepiece_tokenizer import train_tokenizer
    from tests.bundles import LINES

    return train_tokenizer(LINES, SubwordSettings(), 300)


@pytest.fixture
def bundle(subwords: "SubwordTokenizer") -> "Bundle":
    """A small model with that tokenizer."""
    from tests.bundles import random_bundle

    return random_bundle(subwords, "recurrent", "bahdanau")
