"""String -> arrays: tokens, word ids, dependency heads, padded batches. numpy and spaCy only."""
