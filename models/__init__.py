"""The modelled systems: each package states its facts and cites where they come from."""
