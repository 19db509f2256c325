"""A million Flash routes at a time: NumPy columns against a scalar loop in C, on one core."""
