"""What a model attends to."""
