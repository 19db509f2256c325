"""What holds for every test: Hypothesis sets no time limit, as machines differ."""

from hypothesis import settings

settings.register_profile("routeproof", deadline=None)
settings.load_profile("routeproof")
