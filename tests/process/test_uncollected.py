"""The garbage collector while libraries are imported, and after."""

import gc
from collections.abc import Iterator

import pytest

from actorlearner.process.uncollected import uncollected


@pytest.fixture(autouse=True)
def _only_here() -> Iterator[None]:
    """Garbage of other tests is not kept by the freeze, and what they made is looked at again."""
    gc.collect()
    yield
    gc.unfreeze()


def test_the_collector_looks_at_nothing_that_lasts() -> None:
    with uncollected():
        assert not gc.isenabled()
        made: list[object] = []
        assert any(tracked is made for tracked in gc.get_objects())
    assert gc.isenabled()
    assert not any(tracked is made for tracked in gc.get_objects())


def test_the_collector_is_as_before_also_after_an_exception() -> None:
    with pytest.raises(ImportError), uncollected():
        raise ImportError
    assert gc.isenabled()
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
