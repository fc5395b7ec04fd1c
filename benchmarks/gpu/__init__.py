"""What a GPU gives: `make gpu-check`."""
