"""What exists twice, in C and in tensor algebra, is tested twice."""

from collections.abc import Iterator

import pytest

from regard import native


@pytest.fixture(params=["C", "PyTorch"])
def form(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "PyTorch":
        with native.switched_off():
            yield request.param
    else:
        if native.library() is None:
            pytest.skip(native.why_not())
        yield request.param
