"""The learner's parts: training under a strategy, publishing, checkpoints and saved policies.

- training_loop: calls training_graph, or iteration_graph for on-policy agents.
- priorities: prioritised replay.
- chief_outputs: publishes, saves and records after each call. outputs is its interface.
- checkpoint, complete_restore, pending_evaluations, policy_export, settled: what it saves.
- learner_metrics, profiler: what it records.
- warm_start: takes the first weights from another run.
- strategy, cluster, group, group_link, group_gathering, group_peer: learners on several machines.
"""
