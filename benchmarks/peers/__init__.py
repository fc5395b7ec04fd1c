"""The servers that Heedful is measured beside, each with its requirements (.txt) in an environment of its own.

They import nothing of ours but `encoder`, and are told by the environment: BUNDLE, PORT, WORKERS.
"""
