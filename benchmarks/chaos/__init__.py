"""Chaos: a local run whose roles are harmed on purpose, and an account of every transition.

`run_chaos` is the whole measurement; the other modules serve one part of it each:

- Before the run, `experiment` changes the configuration: its environments number their env steps (`numbered`,
  `numbered_environment`). `schedule` draws the harms.
- During the run, `harm` does them, `link` cuts roles off from the replay server, and `watch` observes the
  processes.
- After the run, `findings` collects the outcome: `store` reads every transition out of replay, `account`
  compares them with the env steps, `downtime` measures how long roles were away, and `policies` checks that
  no actor acted with an older policy. `verdict` judges the findings and prints them.
"""
