"""`routeproof bound`: the exact maximum of every route, next to what an estimator reserves."""
