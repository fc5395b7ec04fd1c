"""Texts -> vectors: the steps of requests, their order, and their batches."""
