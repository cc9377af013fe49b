"""Hyper-parameters, as TensorBoard's plugin reads them."""

from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata, plugin_data_pb2

from actorlearner.agents.configuration import load_config
from actorlearner.config.resolved import declared_values
from actorlearner.records.summaries import METRICS, Summaries, write_hyperparameters


def read(directory: Path, tag: str) -> plugin_data_pb2.HParamsPluginData:
    events = EventAccumulator(str(directory)).Reload()
    content = events.SummaryMetadata(tag).plugin_data.content
    return plugin_data_pb2.HParamsPluginData.FromString(content)


def test_every_key_and_the_results_are_there(tmp_path: Path) -> None:
    config = load_config("sac_pendulum", ["seed=3", "replay.error_buffer=null"])
    summaries = Summaries(tmp_path)
    write_hyperparameters(summaries, config)
    summaries.scalars({METRICS[0]: -150.0}, 1_000)
    assert summaries.flush()
    values = read(tmp_path, metadata.SESSION_START_INFO_TAG).session_start_info.hparams
    assert set(values) == set(declared_values(config))
    assert values["seed"].number_value == 3
    assert values["agent.name"].string_value == "sac"
    assert values["agent.actor_layers"].string_value == "[256, 256]"
    assert values["replay.error_buffer"].string_value == "null"
    experiment = read(tmp_path, metadata.EXPERIMENT_TAG).experiment
    assert [info.name.tag for info in experiment.metric_infos] == list(METRICS)
