"""Reference kernels that run inside the modelled layouts, region by region."""
