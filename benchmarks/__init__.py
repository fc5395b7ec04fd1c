"""Benchmarks. Most write a record into results/; the product imports nothing from here."""
