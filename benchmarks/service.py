"""The service in this process, without HTTP. Speaks the protocol of benchmarks.workers.

python -m benchmarks.service BUNDLES MODEL
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from heedful.runtime.inputs import Inputs
from heedful.runtime.service import Options, Service

BATCH = 64


async def run(bundles: Path, model: str) -> None:
    service = Service(Options(models=bundles))
    await service.start()
    inference = service.bind("embed", model)
    for line in sys.stdin:  # nothing else happens meanwhile
        texts = json.loads(line)
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for start in range(0, len(texts), BATCH):
                group.create_task(inference.embed(Inputs.from_texts(texts[start : start + BATCH])))
        sys.stdout.write(f"{time.perf_counter() - started}\n")
        sys.stdout.flush()
    await service.stop(0)


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), sys.argv[2]))
