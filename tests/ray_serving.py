"""deploy/ray_serve.py on a new local Ray, for tests: `python -m tests.ray_serving`.

It prints its URL, kills a replica for each line that it reads, and ends with its input.
"""

import os
import signal
import socket
import sys

import ray
from ray import serve
from ray.serve.context import _get_global_client

from deploy.ray_serve import app


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ray.init("local", num_cpus=4, include_dashboard=False)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    serve.run(app)
    print(f"http://127.0.0.1:{port}", flush=True)  # noqa: T201  # its caller reads it
    for _ in sys.stdin:
        [application] = _get_global_client().get_serve_details()["applications"].values()
        [deployment] = application["deployments"].values()
        os.kill(deployment["replicas"][0]["pid"], signal.SIGKILL)
        print("killed", flush=True)  # noqa: T201  # its caller reads it
    serve.shutdown()
    ray.shutdown()


if __name__ == "__main__":
    main()
