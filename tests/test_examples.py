"""Each program of examples/, run as it is: it prints what its docstring promises."""

import io
import runpy
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path

import httpx
import pytest

from tests.process import PATIENCE, ROOT

pytestmark = pytest.mark.slow
FOLDER = ROOT / "examples"
ALONE = {
    "hybrid_search": ["I forgot my login: To change your password", "E42: Error E42"],
    "cache_guard": [
        "How can I enable logging? Set LOG=1.",
        "How do I disable logging? ask the model",
        "What is for lunch? ask the model",
    ],
    "intent_router": [
        "Monday. -> delivery",
        "last invoice. -> billing",
        "France? -> no team: ask a person",
    ],
    "deduplicate": [
        "duplicate: The door is open. | The door stands open.",
        "kept: The door is open. | The door is closed.",
    ],
    "own_csv": ["two times: billing", "late: delivery"],
    "evidence": ["positive", "against: cold", "for: lovely"],
    "small_index": ["1536 bytes a text, 48 in the index", "A man plays the guitar on a stage."],
    "cold_start": ["positive after ", "ms"],
}
PROGRAMS = {file.stem for file in FOLDER.glob("*.py")}
OF_A_SERVICE = {"openai_client": ["(3, 384) [1.0, "], "drift_alert": ["ms-san-embed: "]}


def printed(name: str, folder: Path, *arguments: str) -> str:
    """What the program prints, run in this process, whose imports it shares."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as shown:
        patch.chdir(folder)
        patch.setenv("HEEDFUL_MODELS", str(ROOT / "bundles"))
        patch.setattr(sys, "argv", [name, *arguments])
        with suppress(SystemExit):  # the status of drift_alert
            runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    return shown.getvalue()


@pytest.mark.parametrize("name", sorted(PROGRAMS - OF_A_SERVICE.keys()))
def test_a_program_prints_what_it_promises(name: str, tmp_path: Path) -> None:
    shown = printed(name, tmp_path)
    assert [said for said in ALONE[name] if said not in shown] == [], shown


@pytest.mark.parametrize("name", OF_A_SERVICE)
def test_a_program_asks_a_running_service(name: str, tmp_path: Path, shipped: str) -> None:
    body = {"inputs": ["It rains.", "Two kids wash their hands."], "model": "ms-san-embed"}
    httpx.post(f"{shipped}/embed", json=body, timeout=PATIENCE).raise_for_status()
    shown = printed(name, tmp_path, shipped)
    assert [said for said in OF_A_SERVICE[name] if said not in shown] == [], shown
