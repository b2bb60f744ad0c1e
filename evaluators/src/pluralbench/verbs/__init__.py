"""The verbs: signatures and documentation of the public functions, of which the commands are made.

Each function imports its implementation when it is called, so that `--help` needs none of the heavy libraries.
"""
