"""The learner's parts: training under a strategy, publishing, checkpoints and saved policies.

Training: training_loop calls training_graph, or iteration_graph for on-policy agents, with priorities.
After each call: outputs is the interface, and chief_outputs publishes, saves and records, with checkpoint
(complete_restore, pending_evaluations), policy_export, learner_metrics and profiler.
First weights from another run: warm_start.
Groups of learners: strategy, cluster (TF_CONFIG), group, group_link, group_gathering and group_peer.
"""
