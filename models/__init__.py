"""Tensors -> tensors, in torch. Each paper has a file, and so has each part that several papers share.

Legend of every shape comment: B sentences in a batch, L tokens in the longest of them, D features
of a token, H attention heads, d features of a head. Row = token. In a mask `allowed[.., q, k]` q is
the token that attends (the paper's *reference*, the query) and k the one attended to.

As an input `heads` (B, L) holds each token's governor on the dependency tree, itself for a root; as a
constructor's keyword it is the number of attention heads. `models.heads` has the classifiers of tasks.
"""
