"""Other services' clients, unmodified, against Heedful: `python -m tools.clients` writes docs/clients.md.

Each program in `programs/` runs in an environment that has its package, and imports nothing of ours.
It gets the service's URL and prints, as JSON, {what it did: what came of it}; it ends with an error where
the client fails. Names that several programs have must come out alike: `document` is a long text's vector.
"""
