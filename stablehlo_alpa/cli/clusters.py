"""``stablehlo-alpa clusters``."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from stablehlo_alpa.cluster import ClusterSpec, cluster_names

CLUSTERS_SCHEMA = "stablehlo-alpa/clusters/1"


def clusters(
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Lists the clusters that --cluster knows; a number behind a colon says how many hosts."""
    found = {name: ClusterSpec.preset(name) for name in cluster_names()}
    if as_json:
        rows = [{"name": name, **_record(cluster)} for name, cluster in found.items()]
        typer.echo(json.dumps({"schema": CLUSTERS_SCHEMA, "clusters": rows}, indent=2))
        return
    table = Table(
        title="clusters: NAME:HOSTS, of TPUs NAME:SHAPE (tpu-v5p:4x4x4)",
        caption="TFLOP/s in 16 bits; GB/s of a device to others of its host, of a host to others",
    )
    table.add_column("name", no_wrap=True)
    table.add_column("device", no_wrap=True)
    for head in ("devices", "GiB", "TFLOP/s", "link", "net"):
        table.add_column(head, justify="right", no_wrap=True)
    for name, cluster in found.items():
        record = _record(cluster)
        table.add_row(
            name,
            cluster.device.name,
            str(cluster.num_devices),
            f"{cluster.device.memory_bytes / 2**30:.4g}",
            f"{float(record['half_flops']) / 1e12:.4g}",
            f"{float(record['device_bytes_per_s']) / 1e9:.4g}",
            f"{float(record['network_bytes_per_s']) / 1e9:.4g}",
        )
    Console().print(table)


def _record(cluster: ClusterSpec) -> dict[str, str | int | float]:
    """One machine of a name; of racks the whole rack."""
    return {
        "device": cluster.device.name,
        "hosts": cluster.num_hosts,
        "devices_per_host": cluster.devices_per_host,
        "memory_bytes": cluster.device.memory_bytes,
        "half_flops": max(cluster.device.flops.get(kind, 0.0) for kind in ("bf16", "f16")),
        "device_bytes_per_s": cluster.device_link.bandwidth,
        "network_bytes_per_s": cluster.host_network.bandwidth,
    }
