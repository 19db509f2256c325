"""GroupQueryAttention executed: a reference kernel per route, inside the recipe's own regions."""
