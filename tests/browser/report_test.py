#!/usr/bin/env python3
"""Opens a report in headless Chromium and works it: no error, tables sort, the slider colours links, the timeline zooms.

Usage: report_test.py ESPALIER REPOSITORY. Exits 3, which is a skip, without Chromium.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Runs behind the page's own script, in its scope, and leaves what it saw in the document.
DRIVER = """
<script>
"use strict";
const seen = {};
const cells = (table, column) => [...table.tBodies[0].rows].map((row) => row.cells[column].textContent);
const classes = () => [...document.querySelectorAll(".network [data-links]")].map((line) => line.getAttribute("class"));
const painted = () => {
  const canvas = document.querySelector(".lanes canvas");
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let count = 0;
  for (let i = 3; i < pixels.length; i += 4) count += pixels[i] > 0;
  return count;
};
setTimeout(() => {
  const times = document.querySelector("table[data-name=times]");
  const buttons = times.tHead.querySelectorAll("button");
  buttons[3].click();
  seen.ascending = cells(times, 3).map(Number);
  buttons[3].click();
  seen.descending = cells(times, 3).map(Number);
  seen.sort = buttons[3].parentElement.ariaSort;
  const slider = document.getElementById("slice");
  seen.whole = classes();
  slider.value = slider.max;
  slider.dispatchEvent(new Event("input"));
  seen.last = classes();
  seen.lastText = document.getElementById("slice-text").textContent;
  view.draw();
  seen.painted = painted();
  const length = () => view.to - view.from;
  seen.all = length();
  document.querySelector("[data-zoom='2']").click();
  seen.zoomed = length();
  const before = view.from;
  document.querySelector(".lanes").dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));
  seen.panned = view.from - before;
  document.querySelector(".lanes").dispatchEvent(new KeyboardEvent("keydown", {key: "Home"}));
  seen.home = length();
  const lane = view.lanes[0].rows.findIndex((row) => row.indices.length > 0);
  const span = view.lanes[0].rows[lane].indices[0];
  const area = view.canvas.getBoundingClientRect();
  view.tell({clientX: area.left + view.xOf((view.begins[span] + view.ends[span]) / 2),
             clientY: area.top + HEAD + (STRIPS[lane][0] + STRIPS[lane][1] / 2) * LANE});
  seen.told = document.getElementById("span-text").textContent;
  const start = performance.now();
  for (let i = 0; i < 20; ++i) view.draw();
  seen.frame = (performance.now() - start) / 20;
  seen.errors = window.seenErrors;
  document.body.dataset.seen = JSON.stringify(seen);
}, 0);
</script>
"""
ERRORS = "<script>window.seenErrors = []; window.onerror = (message) => { window.seenErrors.push(message); };</script>"


def browse(chromium, page):
    """The document as it stands after the scripts ran."""
    with tempfile.TemporaryDirectory() as profile:
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--window-size=1200,2000",
                   "--virtual-time-budget=5000", "--dump-dom", page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout


def problems_of(seen):
    if seen["errors"]:
        yield f"errors: {seen['errors']}"
    if seen["ascending"] != sorted(seen["ascending"]) or seen["descending"] != sorted(seen["descending"], reverse=True):
        yield f"the table is not sorted: {seen['ascending']}, {seen['descending']}"
    if seen["sort"] != "descending":
        yield f"aria-sort is {seen['sort']}"
    # At its end a ring has less to send than over the whole run.
    if seen["last"] == seen["whole"] or not all(name.startswith("load") for name in seen["last"]):
        yield f"the slider colours nothing: {seen['last']}"
    if " to " not in seen["lastText"]:
        yield f"the slider says '{seen['lastText']}'"
    if seen["painted"] < 1000:
        yield f"{seen['painted']} pixels of timeline"
    if abs(seen["zoomed"] * 2 - seen["all"]) > 1e-6 * seen["all"] or seen["panned"] <= 0 or seen["home"] != seen["all"]:
        yield f"zoom and pan: {seen}"
    if not re.match(r"\S+: (send|recv|reduce) of transfer \d+, chunk \d+, from .* for ", seen["told"]):
        yield f"the span under the pointer is '{seen['told']}'"


def main():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("skipped: there is no Chromium")
        return 3
    espalier = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "report.html"
        subprocess.run([espalier, "-q", "report", "dgx1v", "all_gather", "-a", "ring,tree", "-b", "64K", "-e", "4M", "-f", "8",
                        "-o", page], cwd=sys.argv[2], check=True, stdout=subprocess.DEVNULL, timeout=60)
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("<head>", "<head>" + ERRORS).replace("</body>", DRIVER + "</body>"), encoding="utf-8")
        found = re.search(r'data-seen="([^"]*)"', browse(chromium, page))
    if found is None:
        print("the page's script did not come to its end")
        return 1
    seen = json.loads(found.group(1).replace("&quot;", '"').replace("&amp;", "&"))
    problems = list(problems_of(seen))
    print("\n".join(problems) or f"works; {seen['frame']:.1f} ms a frame")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
