"""Heedful in Python: `heedful.load` and what it returns, scikit-learn estimators, the model hub."""
