"""Strings -> arrays: tokens, trees, ids and padded batches, without torch. The bottom package: it imports no other."""
