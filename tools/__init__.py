"""What serves this repository alone. It is in no wheel, and the product imports nothing from here."""
