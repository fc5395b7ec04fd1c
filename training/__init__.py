"""Tasks, runs and scores: config -> examples -> arrays -> trained checkpoint."""
