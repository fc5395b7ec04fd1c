"""The page at / with 2,000 texts, in Chromium: seconds to read them, milliseconds a keystroke, long frames, memory.

    python -m benchmarks.page [--models bundles] [--texts 2000] [--chromium /usr/bin/chromium]

The service runs on all cores that this process may use, Chromium too. The texts are sentences of SNLI
(benchmarks/texts.py). Reading them lasts from the drop of the file to the answered question, as a user sees
it; a keystroke from its input event to the change of the results. Long frames are Chromium's long tasks (over
50 ms), from one second after the page was opened until the map has been drawn and pointed at and the question
typed. Memory is that of the tab's JavaScript, and of the tab's process with its worker.
"""

import argparse
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console

from benchmarks.texts import sentences

QUESTION = "a man plays music for people outside"
WATCH = """
window.long = [];
new PerformanceObserver(list => list.getEntries().forEach(one => window.long.push([one.startTime, one.duration])))
    .observe({type: 'longtask', buffered: true});
"""
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
    """URL of a service of its own, which is ready."""
    command = [sys.executable, "-m", "heedful", "serve", "--port", "0", "--models", str(models)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = ""
        for line in process.stderr:
            if listening := re.search(r"listening on (http://\S+)", line):
                url = listening[1]
            if "ready: " in line:
                break
        try:
            yield url
        finally:
            process.terminate()
            process.stderr.close()


def resident(browser: Browser) -> float:
    """MB of the tab's process: what it has for itself and its share of what is shared (PSS)."""
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    sizes = []
    for process in processes:
        if process["type"] == "renderer":
            rollup = Path(f"/proc/{process['id']}/smaps_rollup").read_text()
            sizes.append(int(re.findall(r"^Pss: +(\d+) kB", rollup, re.MULTILINE)[0]) / 1024)
    return max(sizes)


def measure(browser: Browser, page: Page, texts: list[str]) -> dict[str, float]:
    page.add_init_script(WATCH)
    page.goto(page.url)
    page.wait_for_selector(".results mark")
    page.wait_for_timeout(1000)
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
    late = [duration for start, duration in page.evaluate("window.long") if start > 1000]
    keys.sort()
    return {
        "texts": len(texts),
        "indexed, s": indexed,
        "keystroke, median ms": statistics.median(keys),
        "keystroke, 95 % ms": keys[int(0.95 * len(keys))],
        "frames over 50 ms": len(late),
        "longest, ms": max(late, default=0.0),
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
        page.goto(url)
        for name, value in measure(browser, page, sentences(options.texts)).items():
            out.print(f"{name:22} {value:10.2f}")
        browser.close()


if __name__ == "__main__":
    main()
