"""ONNX Runtime's errors have no common base, and no documented place: `text.graph` finds them by their kind."""

import pytest

from heedful.text.errors import GraphError
from heedful.text.graph import ORT_ERRORS, open_session


def test_every_error_of_onnx_runtime_is_a_graph_error() -> None:
    names = {kind.__name__ for kind in ORT_ERRORS}
    assert names >= {
        *("Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NoSuchFile"),
        *("NotImplemented", "RuntimeException", "EPFail", "RuntimeError"),
    }
    with pytest.raises(GraphError, match="INVALID_PROTOBUF"):
        open_session(b"no graph")
