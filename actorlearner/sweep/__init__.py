"""Hyper-parameter search with Optuna: many local runs, and the best configuration of them."""
