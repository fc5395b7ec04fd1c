"""The sets that `python -m tools suite` and `transfer` score models on."""
