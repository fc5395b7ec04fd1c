"""A Ray cluster of three nodes on this machine, for tests: `python -m tests.ray_cluster`.

It prints its address, kills a node for each line that it reads, and ends with its input.
"""

import sys

from ray.cluster_utils import Cluster

STORE = 80 * 1024 * 1024
"""Bytes of a node's object store, about the least that Ray takes."""


def main() -> None:
    shared = {"object_store_memory": STORE, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, **shared})
    workers = [cluster.add_node(num_cpus=1, object_store_memory=STORE) for _ in range(2)]
    cluster.wait_for_nodes()
    print(cluster.address, flush=True)  # noqa: T201  # its caller reads it
    for _ in sys.stdin:
        cluster.remove_node(workers.pop(), allow_graceful=False)
        print("killed", flush=True)  # noqa: T201  # its caller reads it
    cluster.shutdown()


if __name__ == "__main__":
    main()
