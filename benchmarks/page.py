"""The page at / with 2,000 texts, in Chromium: seconds to read them, milliseconds a keystroke, long tasks, memory.

    python -m benchmarks.page [--models bundles] [--texts 2000] [--chromium /usr/bin/chromium]

The service runs on all cores that this process may use, Chromium too. The texts are sentences of SNLI
(benchmarks/texts.py). Reading them lasts from the drop of the file to the list of its texts, as a user sees
it; a keystroke from its input event to the change of the results. Tasks are those of the tab's main thread in
Chromium's trace, from one second after the page was opened until the file has been read, the question typed, and
the map drawn and pointed at: how long the longest lasted, and the most that
one had of the processor. Memory is that of the tab's JavaScript, and of the tab's process with its worker.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console

from benchmarks.texts import sentences

QUESTION = "a man plays music for people outside"
DROP = """content => {
    const given = new DataTransfer();
    given.items.add(new File([content], 'many.txt'));
    document.querySelector('#panel-search').dispatchEvent(new DragEvent('drop', {dataTransfer: given, bubbles: true}));
    window.dropped = performance.now();
    return new Promise(done => new MutationObserver((_, self) => {
        if (!/read in/.test(document.querySelector('.finding .timing').textContent)) return;
        self.disconnect();
        done((performance.now() - window.dropped) / 1000);
    }).observe(document.querySelector('.finding .timing'), {childList: true, characterData: true, subtree: true}));
}"""
KEY = """letters => {
    const field = document.querySelector('#query');
    field.value = letters;
    const started = performance.now();
    field.dispatchEvent(new Event('input', {bubbles: true}));
    return new Promise(done => new MutationObserver((_, self) => {
        self.disconnect();
        done(performance.now() - started);
    }).observe(document.querySelector('.results'), {childList: true}));
}"""


@contextmanager
def service(models: Path) -> Iterator[str]:
    """The URL of a new service that is ready."""
    command = [sys.executable, "-m", "heedful", "serve", "--port", "0", "--models", str(models)]
    with tempfile.TemporaryFile("a+") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            text = ""
            while " ready: " not in text:
                assert process.poll() is None, text
                time.sleep(0.2)
                log.seek(0)
                text = log.read()
            yield re.findall(r"listening on (http://\S+)", text)[0]
        finally:
            process.terminate()


def resident(browser: Browser) -> float:
    """MB of the tab's process (PSS: its private memory and its share of shared memory)."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    sizes = []
    for process in processes:
        if process["type"] == "renderer":
            rollup = Path(f"/proc/{process['id']}/smaps_rollup").read_text()
            sizes.append(int(re.findall(r"^Pss: +(\d+) kB", rollup, re.MULTILINE)[0]) / 1024)
    return max(sizes)


def tasks(trace: dict[str, Any]) -> tuple[list[float], list[float]]:
    """Milliseconds that each task of the tab's main thread lasted, and of the processor."""
    names = {
        (event["pid"], event["tid"])
        for event in trace["traceEvents"]
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    run = [
        event
        for event in trace["traceEvents"]
        if event["name"].endswith("RunTask")
        and "dur" in event  # tasks that ended
        and (event["pid"], event["tid"]) in names
    ]
    return [event["dur"] / 1000 for event in run], [event.get("tdur", 0) / 1000 for event in run]


def measure(browser: Browser, page: Page, url: str, texts: list[str]) -> dict[str, float]:
    page.goto(url)
    page.wait_for_selector(".results mark")
    page.wait_for_timeout(1000)
    browser.start_tracing(
        page=page, categories=["toplevel", "disabled-by-default-devtools.timeline"]
    )
    indexed = page.evaluate(DROP, "\n".join(texts))
    page.wait_for_timeout(1500)  # the map is drawn, near-duplicates are counted
    keys = []
    for end in range(1, len(QUESTION) + 1):
        keys.append(page.evaluate(KEY, QUESTION[:end]))
        page.wait_for_timeout(60)
    box = page.locator(".points").bounding_box()
    assert box is not None
    for step in range(100):
        page.mouse.move(
            box["x"] + step * box["width"] / 100, box["y"] + (step * 37 % 100) * box["height"] / 100
        )
    page.wait_for_timeout(1000)
    wall, processor = tasks(json.loads(browser.stop_tracing()))
    keys.sort()
    return {
        "texts": len(texts),
        "indexed, s": indexed,
        "keystroke, median ms": statistics.median(keys),
        "keystroke, 95 % ms": keys[int(0.95 * len(keys))],
        "tasks over 50 ms": sum(duration > 50 for duration in wall),
        "longest, ms": max(wall),
        "of processor, ms": max(processor),
        "heap, MB": page.evaluate("performance.memory.usedJSHeapSize") / 2**20,
        "tab, MB": resident(browser),
    }


def main() -> None:
    out = Console()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=Path, default=Path("bundles"))
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    with service(options.models) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=options.chromium,
            args=["--no-sandbox", "--disable-dev-shm-usage", "--enable-precise-memory-info"],
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        for name, value in measure(browser, page, url, sentences(options.texts)).items():
            out.print(f"{name:22} {value:10.2f}")
        browser.close()


if __name__ == "__main__":
    main()
