"""Strings -> arrays: tokens, trees, ids and padded batches, without torch. The bottom room: it imports no other."""
