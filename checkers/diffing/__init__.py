"""`routeproof diff`: which verdicts change between two sides, and which bounds move."""
