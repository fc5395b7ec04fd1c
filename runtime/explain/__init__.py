"""Explanations: attention, ablations, evidence, gradients and curves."""
