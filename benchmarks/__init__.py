"""Benchmarks. Each writes a record into results/performance; the product imports nothing from here."""
