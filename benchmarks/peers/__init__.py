"""The servers that Heedful is compared with, each with its requirements (.txt) in its own environment.

They import nothing of ours but `encoder`, and are told by the environment: BUNDLE, PORT, WORKERS.
"""
