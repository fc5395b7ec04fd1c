"""The errors that the runtime raises deliberately.

HeedfulError
+-- StartupError            the service cannot start
|   +-- BundleError         a bundle is broken: names file and reason
|   +-- ProviderError       no session runs on the requested device
+-- ServiceFault            the running service cannot continue: its process must end
+-- RequestError            a request cannot be answered
    +-- BadInput            the request is wrong; names the field
    |   +-- WrongTask       the model does a different task
    +-- UnknownModel        no such bundle; names the known ones
    +-- TooManyInputs       more inputs than one request may hold
    +-- Overloaded          the queue is full; says when to retry
    +-- Unavailable         not ready, or shutting down
    +-- TimedOut            the request's time limit passed
    +-- InferenceFailed     the parser or the model failed on a valid input
        +-- OutOfMemory     the device has no memory for a single text

Only `app.errors` maps them to HTTP statuses.
"""


class HeedfulError(Exception):
    """Base class. `str(error)` is a message for the user, without paths or a stack."""


class StartupError(HeedfulError):
    pass


class BundleError(StartupError):
    def __init__(self, bundle: str, file: str, reason: str) -> None:
        super().__init__(f"bundle {bundle}: {file}: {reason}")
        self.bundle, self.file, self.reason = bundle, file, reason


class ProviderError(StartupError):
    pass


class ServiceFault(HeedfulError):
    pass


class RequestError(HeedfulError):
    """`param` names the wrong field, if any; `code` is stable, for programs."""

    code = "request_failed"

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code or type(self).code


class BadInput(RequestError):
    code = "invalid_input"


class WrongTask(BadInput):
    code = "wrong_task"


class UnknownModel(RequestError):
    code = "model_not_found"


class TooManyInputs(RequestError):
    code = "too_many_inputs"


class Overloaded(RequestError):
    code = "overloaded"
    retry_after = 1  # second


class Unavailable(RequestError):
    code = "unavailable"


class TimedOut(RequestError):
    code = "timeout"


class InferenceFailed(RequestError):
    code = "inference_failed"


class OutOfMemory(InferenceFailed):
    code = "out_of_memory"
