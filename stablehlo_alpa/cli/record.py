"""A plan as JSON; the schema is written down in docs/command_line.md."""

from __future__ import annotations

from typing import Any

from stablehlo_alpa.api.methods import Method
from stablehlo_alpa.cli.subject import Sizes, Subject
from stablehlo_alpa.cluster import Cluster, ClusterSpec
from stablehlo_alpa.planning import Plan

PLAN_SCHEMA = "stablehlo-alpa/plan/1"
COMPARISON_SCHEMA = "stablehlo-alpa/comparison/1"


def asked_record(
    subject: Subject, sizes: Sizes, method: Method, cluster: Cluster, cluster_name: str | None
) -> dict[str, Any]:
    """What was asked for, of any plan and of none."""
    case = subject.case
    return {
        "schema": PLAN_SCHEMA,
        "model": {
            "name": subject.name,
            **sizes.given,
            "parameters": case and case.parameters,
            "active_parameters": case and case.active_parameters,
            "flops_per_step": case and case.flops_per_step,
        },
        "cluster": {"name": cluster_name, **cluster_record(cluster)},
        "method": method.brief(),
    }


def cluster_record(cluster: Cluster) -> dict[str, Any]:
    """A cluster; one of unlike parts has them, and no device of its own."""
    if not isinstance(cluster, ClusterSpec):
        return {"parts": [cluster_record(part) for part in cluster.parts]}
    return {
        "device": cluster.device.name,
        "hosts": cluster.num_hosts,
        "devices_per_host": cluster.devices_per_host,
        "memory_bytes": cluster.device.memory_bytes,
    }


def plan_record(asked: dict[str, Any], plan: Plan, planning_s: float) -> dict[str, Any]:
    """A plan that was found.

    Args:
        asked: see `asked_record`.
        plan: the plan.
        planning_s: seconds that planning took.
    """
    peaks, schedule = plan.simulation.peak_bytes, plan.schedule
    stages = [
        {
            "layers": list(stage.layers),
            "devices": list(stage.devices),
            "mesh": dict(stage.mesh.axes),
            "seconds": sum(one.time_s for one in stage.phases if not one.runs_once),
            "peak_bytes": peaks[schedule.mesh_of(number)],
        }
        for number, stage in enumerate(plan.stages)
    ]
    communication = [
        {"kind": one.kind, "axes": list(one.axes), "bytes": one.bytes, "count": one.count}
        for one in plan.communication()
    ]
    flops = asked["model"]["flops_per_step"]
    return {
        **asked,
        "fits": True,
        "reason": None,
        "step_s": plan.step_time_s,
        "flops_per_device_s": flops and flops / plan.step_time_s / plan.cluster.num_devices,
        "peak_bytes": plan.peak_bytes,
        "micro_batches": schedule.num_micro_batches,
        "schedule": schedule.name,
        "gap": plan.gap,
        "stages": stages,
        "communication": communication,
        "remarks": list(plan.remarks),
        "planning_s": planning_s,
    }


def refusal_record(
    asked: dict[str, Any], reason: str, is_too_large: bool, planning_s: float
) -> dict[str, Any]:
    """No plan.

    Args:
        asked: see `asked_record`.
        reason: why.
        is_too_large: it does not fit the devices; else it cannot be planned so.
        planning_s: seconds that planning took.
    """
    fits = False if is_too_large else None
    return {**asked, "fits": fits, "reason": reason, "planning_s": planning_s}
