"""`backtest` of a file with an Episode: the replicas under a made-up load, as a test."""

import dataclasses

import typer

from keda_gpu_scaler import check, errors
from keda_gpu_scaler.backtest import episode
from keda_gpu_scaler.backtest.advice import Alternative, Case
from keda_gpu_scaler.backtest.advice import replay as replay_alternative
from keda_gpu_scaler.check.objects import Manifest, Trigger
from keda_gpu_scaler.cli import arguments, backtesting, files
from keda_gpu_scaler.cli.backtest import Options

_GIVEN = "file", "namespace"
"""What a command with an episode takes."""
_POSITIONAL = {"scaled_object": "NAMESPACE/NAME"}


def run(options: Options, text: str) -> bool:
    """Run the episodes of a file; False: it has none. Ends the command if one fails, or is wrong.

    Each of them is about the one ScaledObject in the file, or the one that its metadata name.
    """
    manifests, _ = check.read({options.file: text}, options.namespace)
    episodes = [manifest for manifest in manifests if manifest.kind == episode.KIND]
    if not episodes:
        return False
    for field in dataclasses.fields(options):
        if field.name not in _GIVEN and getattr(options, field.name) != field.default:
            what = "expected none beside an Episode, which says all"
            name = f"--{field.name.replace('_', '-')}"
            raise arguments.wrong(_POSITIONAL.get(field.name, name), what)
    try:
        triggers = files.triggers({options.file: text}, options.namespace)
        files.refuse(f for one in triggers for f in check.refused(one, one.mistakes))
        results = [_failures(manifest, triggers) for manifest in episodes]
    except ValueError as error:
        raise arguments.failure(error, status=2) from error
    for failures in results:
        for failure in failures:
            typer.echo(errors.without_controls(failure), err=True)
    if any(results):
        raise typer.Exit(1)
    return True


def _failures(manifest: Manifest, triggers: list[Trigger]) -> list[str]:
    """Run one episode and return what was not as expected; ValueError: it cannot be run."""
    name = errors.without_controls(manifest.node.text("metadata", "name"))
    file = errors.without_controls(manifest.file)
    place = f"{file}:{manifest.node.position.line}: Episode {name}"
    of_name = [trigger for trigger in triggers if trigger.of.scaled_object.name == name]
    candidates = of_name or triggers
    if len(candidates) != 1 or (spec := candidates[0].spec) is None:
        expected = "the name of the ScaledObject that it is about, with one trigger for this scaler"
        raise ValueError(f"{place}: metadata.name: expected {expected}")
    trigger = candidates[0]
    try:
        parsed = episode.parse(manifest.node.block("spec").plain)
    except ValueError as error:
        raise ValueError(f"{place}: {errors.without_controls(str(error))}") from error
    needs_demand = spec.demand is not None and spec.demand.threshold is not None
    missing = f"Episode {name}: demand: expected it, because the trigger scales by it"
    backtesting.refuse(trigger, spec, {missing: needs_demand and not parsed.work.demands})
    case = Case(
        spec=spec,
        limits=backtesting.limits_of(trigger.of),
        metric_type=backtesting.metric_type_of(trigger),
        start_seconds=parsed.start_seconds,
        node_seconds=parsed.node_seconds,
        loading=parsed.loading,
    )
    outcome = replay_alternative(case, parsed.work, Alternative("", spec.threshold))
    wrong = [f"{place}: {failure}" for failure in episode.failures(parsed, outcome)]
    if not wrong:
        typer.echo(f"{place}: {len(parsed.expectations)} times, replicas as expected")
    return wrong
