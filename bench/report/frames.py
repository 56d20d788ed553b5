#!/usr/bin/env python3
"""What a large report costs: made, on disk, first paint, and frames while its timeline pans, in headless Chromium.

Usage: frames.py ESPALIER WORDS...   words of `espalier report`: dgx-a100-x16 all_reduce -a ring -s 16M --profile ideal

Needs scripts/setup --browser. Frames are those of requestAnimationFrame over 150 steps of panning, with the costs of drawing
alone beside them; a frame's pixels are read back, so that nothing of it is left for later.
"""
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/browser"))
from webdriver import Browser, find_programs  # noqa: E402

PAN = """
const [zoom, done] = arguments;
const view = espalier.timeline;
view.zoom(0);
view.zoom(zoom);
const costs = [], times = [], draw = view.draw.bind(view);
view.draw = () => {
  const start = performance.now();
  draw();
  view.paint.getImageData(0, 0, 1, 1);
  costs.push(performance.now() - start);
};
const tick = (time) => {
  times.push(time);
  view.pan((times.length % 120 < 60 ? 1 : -1) / 300);
  if (times.length < 150) {
    requestAnimationFrame(tick);
    return;
  }
  delete view.draw;
  costs.sort((a, b) => a - b);
  done([costs[75], costs[142], 1000 * 149 / (times[149] - times[0])]);
};
requestAnimationFrame(tick);
"""
# Which may be told only after the page was loaded.
FIRST_PAINT = """
const done = arguments[0];
new PerformanceObserver((list) => list.getEntriesByName("first-contentful-paint").forEach(({startTime}) => done(startTime)))
  .observe({type: "paint", buffered: true});
"""


def main():
    if find_programs() is None:
        print("frames: Chromium or chromedriver is missing (scripts/setup --browser)")
        return 3
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "report.html"
        subprocess.run([sys.argv[1], "-q", "report", *sys.argv[2:], "-o", page], check=True, stdout=subprocess.DEVNULL)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        spans = re.search(r'"count":(\d+)', page.read_text(encoding="utf-8"))
        print(f"made in {used.ru_utime + used.ru_stime:.2f} s of processor time, {page.stat().st_size / 1e6:.2f} MB, "
              f"{spans.group(1) if spans else 0} spans")
        with Browser() as browser:
            browser.open(page)
            paint = browser.run_async(FIRST_PAINT)
            print(f"first paint after {paint:.0f} ms")
            for zoom in (1, 4, 30, 300):
                median, most, rate = browser.run_async(PAN, zoom)
                print(f"zoom {zoom:3}: a frame costs {median:.1f} ms (95th percentile {most:.1f}), {rate:.1f} frames per second")
    return 0


if __name__ == "__main__":
    sys.exit(main())
