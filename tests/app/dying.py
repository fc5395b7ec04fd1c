"""`heedful`, but a serving process dies when it has read a request for /die, before it has looked at it."""

import os
import signal

from heedful.app.http.protocol import Protocol
from heedful.app.process import server
from heedful.cli.main import main


class Dying(Protocol):
    def data_received(self, data: bytes) -> None:
        if data.startswith(b"GET /die "):
            os.kill(os.getpid(), signal.SIGKILL)
        super().data_received(data)


if __name__ == "__main__":
    vars(server)["Protocol"] = Dying
    main()
