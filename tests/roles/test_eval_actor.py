"""The eval actor: what it records, and that it ends where evaluation is off."""

import dataclasses
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from actorlearner.callbacks.callback import Evaluation
from actorlearner.config.schema import Config, EnvironmentConfig, EvaluateConfig
from actorlearner.process.stop import Stop
from actorlearner.records.metrics import read_records
from actorlearner.records.run_directory import RunDirectory
from actorlearner.roles import eval_actor


def test_without_evaluation_the_role_ends_at_once(
    small_config: Config, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = dataclasses.replace(small_config, evaluate=EvaluateConfig(interval=None))
    with caplog.at_level("INFO"):
        eval_actor.run(config, RunDirectory(tmp_path), Stop(), replay_address=("nowhere:1",))
    assert caplog.messages == ["evaluation is off (evaluate.interval: null)"]


def test_a_record_has_the_info_and_the_number_of_episodes_that_were_cut_off(
    small_config: Config, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = RunDirectory(tmp_path)
    directory.prepare(small_config)
    evaluation = Evaluation(7, 8, [0.001, 0.002], [3, 4], {"energy": [1.0, 2.0], "absent": [None, None]})
    plain = Evaluation(7, 8, [0.001, 0.002], [3, 4])
    config = dataclasses.replace(
        small_config,
        environment=EnvironmentConfig(info_metrics=["energy", "absent"]),
        evaluate=EvaluateConfig(max_steps=4),
    )
    for each, configured in ((plain, small_config), (evaluation, config)):
        recorder = eval_actor.EvaluationRecorder(directory, configured)
        with caplog.at_level("INFO"):
            recorder.write(each, cut_off=1 if configured is config else 0)
        assert recorder.flush()
    before, after = read_records(directory.metrics("eval"))
    assert not {"info", "average_info", "cut_off"} & before.keys()
    assert after["info"] == {"energy": [1.0, 2.0], "absent": [None, None]}
    assert after["average_info"] == {"energy": 1.5, "absent": None}
    assert after["cut_off"] == 1
    assert caplog.messages[-1] == (
        "train step 7: AverageReturn 0.00150, AverageEpisodeLength 3.5 over 2 episodes, 1 cut off"
    )
    curves = EventAccumulator(str(directory.summaries("eval"))).Reload().Tags()["tensors"]
    assert [curve for curve in curves if "/info/" in curve] == ["eval/info/energy"]
