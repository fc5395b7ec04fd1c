"""The servers that Heedful is compared with, each with its requirements (.txt) in its own environment.

They import nothing of ours but `encoder` and `answering`, and read the environment variables BUNDLE, PORT and WORKERS.
"""
