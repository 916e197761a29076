"""Mutation testing: small wrong changes to the library, each of which some test must notice.

``make mutants`` draws changes at random but repeatably, makes each in a copy of the tree, and runs the tests that reach
the changed line until one fails. `changes` says what a change is, `trees` keeps the copies, `forks` runs work in
processes that have the heavy imports behind them, `coverage` records which test reaches which line, `campaign` judges.
"""
