"""Small self-attentive sentence encoders: trained, exported to ONNX and served."""
