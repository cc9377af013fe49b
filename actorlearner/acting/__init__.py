"""Acting in environments.

Collect actor: collector, collect_metrics, recent_episodes, pace.
Eval actor: episodes, evaluation_recorder, best_policy, best_record, training_videos.
Saved policies: policy_source finds one, saved_policy loads it, rollout_command and video_command play it.
All of them: policy_function calls a policy, filming makes a video of an episode.
"""
