"""Bundle -> answers. ONNX Runtime, numpy and the text package; no torch, no HTTP."""
