"""The record of an evaluation: its metrics, its curves and its log line."""

import dataclasses
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

from actorlearner.acting.evaluation_recorder import EvaluationRecorder
from actorlearner.callbacks.callback import Evaluation
from actorlearner.config.schema import Config, EnvironmentConfig, EvaluateConfig
from actorlearner.records.metrics import read_records
from actorlearner.records.run_directory import RunDirectory


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
        recorder = EvaluationRecorder(directory, configured)
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
