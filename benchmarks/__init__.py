"""Measurements that the README and the docs quote.

Each module measures what its name says; `python -m benchmarks NAME` runs it. Only `soak` is a command of its
own. `support` has what the modules share. `chaos` harms a run on purpose, `others` trains with other
libraries, and `evidence` keeps the curves of runs and draws the docs' tables and pictures.
"""
