"""What holds for every test: no time limit of Hypothesis's, and a cache that nothing else knows.

`pytester`, which the tests of the plugin use, can be asked for at the top alone.
"""

import os
import tempfile

import pytest
from hypothesis import settings

pytest_plugins = ("pytester",)

settings.register_profile("routeproof", deadline=None)
settings.load_profile("routeproof")

# For fixtures of a wider scope than the one below; machines differ, so must what they have kept.
os.environ["ROUTEPROOF_CACHE_DIR"] = tempfile.mkdtemp(prefix="routeproof-cache-")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """Give the test an empty cache of its own; returns where it is."""
    place = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("ROUTEPROOF_CACHE_DIR", str(place))
    return place
