"""The Python API: trains on Pendulum-v1, draws the run, and plays the best policy.

Start it from the root of the repository:
.venv/bin/python -m examples.train_and_play
"""

import numpy as np

import actorlearner


def main() -> None:
    """Takes about a minute on two cores."""
    config = actorlearner.load_config("sac_pendulum", ["learn.train_steps=5000"])
    run = actorlearner.train(config)
    for record in run.evaluations():
        print("train step", record["train_step"], "average return", round(record["average_return"], 1))
    run.plot("pendulum.png")
    policy = run.best_policy()
    print("action", policy(np.array([0.0, 1.0, 0.0], np.float32)))  # cosine, sine, angular velocity
    episodes = actorlearner.evaluate(policy, episodes=10)
    print("mean length of 10 episodes", np.mean([episode.length for episode in episodes]))


if __name__ == "__main__":
    main()
