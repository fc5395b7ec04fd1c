"""Pictures of what a model attends to: an answer of /explain -> SVG or HTML; records -> figures."""
