#!/usr/bin/env python3
"""Opens a report in headless Chromium and works it as a reader would: by mouse, by keys, in light and dark, for print.

Usage: report_test.py [--record] ESPALIER REPOSITORY

Every panel's looks are compared with panels.json: how much of each cell of its screenshot is drawn on, and coloured. --record writes
them anew. Exits 3, which is a skip, without Chromium and its driver (scripts/setup --browser).
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from chart_looks import look_at_charts, look_at_networks, look_at_one_size, look_at_print, look_at_touch
from webdriver import Browser, find_programs

COLUMNS, ROWS = 20, 12
# Of what is drawn, how much may be elsewhere. Another font (DejaVu Serif for Sans) moves up to 0.05 of the ink and none of the
# colours; without its nodes the network has 0.19 of its colours elsewhere, without its lines 0.63, without its curves the chart all.
MOST_MOVED = {"ink": 0.2, "colour": 0.15}

CELLS = """
const [png, columns, rows, done] = arguments;
const image = new Image();
image.onload = () => {
  const canvas = document.createElement("canvas");
  canvas.width = image.width;
  canvas.height = image.height;
  const paint = canvas.getContext("2d");
  paint.drawImage(image, 0, 0);
  const pixels = paint.getImageData(0, 0, image.width, image.height).data;
  const ink = new Array(columns * rows).fill(0), colour = new Array(columns * rows).fill(0);
  const paper = pixels.slice(0, 3);
  for (let y = 0, i = 0; y < image.height; ++y) {
    for (let x = 0; x < image.width; ++x, i += 4) {
      const channels = [pixels[i], pixels[i + 1], pixels[i + 2]];
      const cell = Math.floor(y * rows / image.height) * columns + Math.floor(x * columns / image.width);
      if (channels.some((channel, k) => Math.abs(channel - paper[k]) > 40)) ++ink[cell];
      if (Math.max(...channels) - Math.min(...channels) > 60) ++colour[cell];
    }
  }
  const size = image.width * image.height / (columns * rows);
  const parts = (counts) => counts.map((count) => Math.round(1000 * count / size));
  done({ink: parts(ink), colour: parts(colour)});
};
image.src = "data:image/png;base64," + png;
"""

# Every kind of page, with its parts in their order.
PAGES = {"report": ["verdict", "machine", "bandwidth", "timeline", "measured", "assumptions"],
         "scenario": ["verdict", "machine", "ranks", "calls", "timeline", "assumptions"],
         "results": ["verdict", "bandwidth", "timeline", "measured", "documents", "assumptions"]}

# WCAG 2, relative luminance and contrast of the text of a place against the page.
CONTRASTS = """
const channel = (value) => value <= 10.31 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4;
const light = (colour) => {
  const [red, green, blue] = colour.match(/[\\d.]+/g).map(Number);
  return 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
};
const page = light(getComputedStyle(document.body).backgroundColor);
const found = {};
for (const place of ["body", "caption", ".span", "nav a", "footer", "th button", ".chart text"]) {
  const element = document.querySelector(place);
  if (element === null) continue;
  const style = getComputedStyle(element);
  const text = light(place === ".chart text" ? style.fill : style.color);
  found[place] = (Math.max(text, page) + 0.05) / (Math.min(text, page) + 0.05);
}
return found;
"""
# Loads told apart without hue: the lightness (CIE L*) of each step, and whether the idle one is dashed; the markers of curves.
COLOURS = """
const channel = (value) => value <= 10.31 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4;
const lightness = (colour) => {
  const [red, green, blue] = colour.match(/[\\d.]+/g).map(Number);
  const light = 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
  return light > 0.008856 ? 116 * Math.cbrt(light) - 16 : 903.3 * light;
};
const line = document.querySelector(".network [data-links]"), own = line.getAttribute("class");
const styles = [0, 1, 2, 3, 4, 5].map((step) => {
  line.setAttribute("class", "load" + step);
  const style = getComputedStyle(line);
  return [lightness(style.stroke), style.strokeDasharray];
});
line.setAttribute("class", own);
const markers = [...document.querySelectorAll(".legend .curve")].map((curve) => curve.innerHTML).filter((mark) => mark !== "");
return {steps: styles.slice(1).map(([light]) => light), idle: styles[0][1], markers};
"""
# Where the Tab key goes to, until it is through.
FOCUSED = """
const element = document.activeElement;
if (element === document.body) return null;
const style = getComputedStyle(element);
return [element.outerHTML.slice(0, 80), parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== "none"];
"""
FOCUSABLE = """
return [...document.querySelectorAll("a, button, input, [tabindex]")].filter((element) => element.checkVisibility()).length;
"""
UNNAMED = """
const unnamed = [];
const named = (element) => element.ariaLabel || element.textContent.trim() || element.labels?.length;
for (const element of document.querySelectorAll("a, button, input, [role], [tabindex]")) {
  if (!named(element) && element.id !== "span-text") unnamed.push(element.outerHTML.slice(0, 80));
}
for (const svg of document.querySelectorAll("svg")) if (!svg.ariaLabel && svg.ariaHidden !== "true") unnamed.push("svg");
for (const table of document.querySelectorAll("table")) if (!table.caption) unnamed.push("table " + table.dataset.name);
if (!document.documentElement.lang || !document.querySelector("main") || !document.title) unnamed.push("page");
return unnamed;
"""
# What the pointer is told in the middle of the first span of the first lane that has one.
POINTED = """
const view = espalier.timeline, {looks, lanes} = view.spans;
const look = lanes[0].rows.findIndex((row) => row.indices.length > 0), row = lanes[0].rows[look];
const area = view.canvas.getBoundingClientRect(), laneHeight = view.topOf(1) - view.topOf(0);
view.tell({clientX: area.left + view.xOf((row.begins[0] + row.ends[0]) / 2),
           clientY: area.top + view.topOf(0) + (looks[look][2] + looks[look][3] / 2) * laneHeight});
return document.getElementById("span-text").textContent;
"""
CLASSES = "return [...document.querySelectorAll('.network [data-links]')].map((line) => line.getAttribute('class'));"
COLUMN = """
const table = document.querySelector(`table[data-name=${arguments[0]}]`);
return [...table.tBodies[0].rows].map((row) => row.cells[arguments[1]].textContent);
"""
DRAW_COST = """
const view = espalier.timeline;
const costs = [];
for (let i = 0; i < 30; ++i) {
  const start = performance.now();
  view.draw();
  costs.push(performance.now() - start);
}
return costs.sort((a, b) => a - b)[15];
"""


def make_report(espalier, repository, folder):
    """A report with every panel, the same on every machine: what was "measured" is a simulation of other rates."""
    common = ["dgx1v", "all_gather", "--profile", "ideal"]
    measured, trace = folder / "measured.json", folder / "trace.json"

    def run(*words):
        done = subprocess.run([espalier, "-q", *words], cwd=repository, check=True, stdout=subprocess.PIPE, timeout=60)
        return done.stdout

    measured.write_bytes(run("--json", "simulate", *common, "-a", "ring", "-b", "64K", "-e", "4M", "-f", "8", "--slow", "gpu0-gpu3=0.8"))
    run("simulate", *common, "-a", "ring", "-s", "4M", "--slow", "gpu0-gpu3=0.8", "--trace", trace)
    run("simulate", *common, "-a", "ring", "-s", "4M", "--trace", folder / "whole.json")
    run("report", *common, "-a", "ring,tree", "-b", "64K", "-e", "4M", "-f", "8", "-o", folder / "report.html", "--measured", measured,
        "--measured", trace)
    return folder / "report.html"


def look_at_tables(browser):
    browser.click("table[data-name=times] th:nth-child(4) button")
    ascending = [float(cell) for cell in browser.run(COLUMN, "times", 3)]
    browser.type("table[data-name=times] th:nth-child(4) button", "\ue007")  # The Enter key.
    descending = [float(cell) for cell in browser.run(COLUMN, "times", 3)]
    if ascending != sorted(ascending) or descending != sorted(descending, reverse=True) or len(set(ascending)) < 2:
        yield f"the table is not sorted: {ascending}, {descending}"
    if browser.run("return document.querySelector('table[data-name=times] th:nth-child(4)').ariaSort") != "descending":
        yield "aria-sort does not follow"
    browser.run("window.kept = []; const make = URL.createObjectURL; "
                "URL.createObjectURL = (blob) => { blob.text().then((text) => kept.push(text)); return make(blob); };")
    browser.click("table[data-name=times] caption button")
    kept = browser.run_async("const done = arguments[0]; setTimeout(() => done(window.kept), 200);")
    if len(kept) != 1 or len(kept[0].strip().split("\r\n")) != len(ascending) + 1:
        yield f"the download is {kept}"


def look_at_loads(browser):
    whole = browser.run(CLASSES)
    browser.type("#slice", "\ue010")  # The End key.
    last = browser.run(CLASSES)
    # At its end a ring has less to send than over the whole run.
    if last == whole or not all(name.startswith("load") for name in last):
        yield f"the slider colours nothing: {last}"
    said = browser.run("return [document.getElementById('slice-text').textContent, document.getElementById('slice').ariaValueText]")
    if " to " not in said[0] or said[0] != said[1]:
        yield f"the slider says {said}"
    browser.type("#slice", "\ue011")  # Home.


def look_at_timeline(browser):
    seen = "return [espalier.timeline.from, espalier.timeline.to];"

    def differ(view, other):  # by more than a pixel would show
        return max(abs(a - b) for a, b in zip(view, other)) > 1e-6 * whole[1]

    browser.run("document.querySelector('.lanes').scrollIntoView({block: 'center'});")
    whole = browser.run(seen)
    browser.click("#timeline [data-zoom='2']")
    zoomed = browser.run(seen)
    if abs(2 * (zoomed[1] - zoomed[0]) - (whole[1] - whole[0])) > 1e-6 * whole[1]:
        yield f"zooming in shows {zoomed} of {whole}"
    browser.drag(".lanes", -120)
    dragged = browser.run(seen)
    if dragged[0] <= zoomed[0]:
        yield f"dragging to the left moves from {zoomed} to {dragged}"
    browser.drag(".lanes", 0, -60)
    if browser.run("return document.querySelector('.lanes').scrollTop") < 30:
        yield "dragging up does not scroll through the lanes"
    browser.run("document.querySelector('.lanes').scrollTop = 0;")
    browser.type(".lanes", "\ue012")  # The left arrow.
    if browser.run(seen)[0] >= dragged[0]:
        yield "the left arrow does not pan"
    browser.type(".lanes", "+")
    if browser.run(seen)[1] - browser.run(seen)[0] >= dragged[1] - dragged[0]:
        yield "+ does not zoom in"
    browser.type(".lanes", "\ue011")
    if differ(browser.run(seen), whole):
        yield "Home does not show all"
    told = browser.run(POINTED)
    if " of transfer " not in told or ", chunk " not in told:
        yield f"the span under the pointer is '{told}'"
    painted = browser.run("const {paint, canvas} = espalier.timeline;"
                          "const bytes = paint.getImageData(0, 0, canvas.width, canvas.height).data;"
                          "let count = 0; for (let i = 3; i < bytes.length; i += 4) count += bytes[i] > 0; return count;")
    if painted < 10000:
        yield f"{painted} pixels of timeline"

    browser.wheel(".lanes", -240)
    if browser.run("return espalier.timeline.to - espalier.timeline.from;") >= whole[1] - whole[0]:
        yield "Ctrl with the wheel does not zoom in"
    browser.type(".lanes", "-")
    browser.type(".lanes", "\ue014")  # The right arrow.
    if browser.run(seen)[0] <= 0:
        yield "the right arrow does not pan"
    browser.click("#timeline [data-zoom='0']")
    if differ(browser.run(seen), whole):
        yield "All does not show all"
    path = browser.run("return espalier.timeline.spans.lanes.reduce((count, lane) => count + lane.path.length, 0)")
    if path < 2:
        yield "no critical path is outlined"


def look_at_drawings(browser):
    """Verdict first; one side of the cut, the bound, the crossovers and the part of the bound are drawn and named."""
    parts = browser.run("return [...document.querySelectorAll('main > section')].map((section) => section.id);")
    links = browser.run("return [...document.querySelectorAll('nav a')].map((link) => link.hash.slice(1));")
    if parts != PAGES["report"] or links != parts[1:]:
        yield f"the parts are {parts}, and the navigation leads to {links}"
    counts = browser.run("""
      const count = (selector) => document.querySelectorAll(selector).length;
      return {side: count(".network .side"), bound: count(".chart .bound"), crossovers: count(".chart .crossover title"),
              charts: count(".chart"), curves: count("#bandwidth .chart .curve")};""")
    # A cut has both sides; rates and parts of the bound are two charts with the same crossovers.
    if not 0 < counts["side"] < 8 or counts["bound"] < 2 or counts["curves"] < 4 or counts["crossovers"] < 1:
        yield f"drawn are {counts}"


def look_at_keys(browser):
    """The Tab key reaches every control, and shows where it is."""
    reached, unseen = set(), set()
    count = browser.run(FOCUSABLE)
    for _ in range(count + 2):  # Once round, from wherever the last click was, by way of the page itself.
        browser.press("\ue004")
        focused = browser.run(FOCUSED)
        if focused is None:
            continue
        reached.add(browser.run("return [...document.querySelectorAll('*')].indexOf(document.activeElement);"))
        if not focused[1]:
            unseen.add(focused[0])
    if len(reached) < count:
        yield f"the Tab key reaches {len(reached)} of {count} controls"
    yield from (f"nothing shows that the focus is on {what}" for what in sorted(unseen))


def look_at_colours(browser):
    """Nothing is told by hue alone: loads get steadily darker (or lighter), the idle one is dashed, curves have markers of their own."""
    for scheme in ("light", "dark"):
        browser.use_scheme(scheme)
        found = browser.run(COLOURS)
        steps = [after - before for before, after in zip(found["steps"], found["steps"][1:])]
        if not (all(step > 5 for step in steps) or all(step < -5 for step in steps)):
            yield f"{scheme}: the lightness of loads goes {[round(step) for step in found['steps']]}"
        if found["idle"] == "none":
            yield f"{scheme}: idle links differ from busy ones by their colour alone"
        if len(set(found["markers"])) < 2 or len(found["markers"]) - len(set(found["markers"])) > 2:
            yield f"curves have the markers {found['markers']}"
    browser.use_scheme("light")


def look_at_scenario(browser, espalier, repository, folder):
    """The page of a scenario: without an error, with names, tasks under the pointer."""
    page = folder / "scenario.html"
    subprocess.run([espalier, "-q", "report", "--scenario", "two-groups", "--profile", "ideal", "-o", page], cwd=repository, check=True,
                   stdout=subprocess.DEVNULL, timeout=60)
    browser.open(page)
    told = browser.run(POINTED)
    if not told.startswith("gpu0") or ": " not in told:
        yield f"of a scenario the pointer is told '{told}'"
    if browser.run("return document.querySelectorAll('.bars rect').length") < 8:
        yield "there are no bars of ranks"
    yield from (f"no name for those who do not see it: {what}" for what in browser.run(UNNAMED))
    yield from browser.messages()


def look_at_results(browser, espalier, folder):
    """The page of result files alone: without an error, with names, a timeline to zoom, tables to sort, no slider of loads."""
    page = folder / "results.html"
    subprocess.run([espalier, "-q", "report", folder / "measured.json", folder / "trace.json", folder / "whole.json", "-o", page], check=True,
                   stdout=subprocess.DEVNULL, timeout=60)
    browser.open(page)
    if browser.run("return espalier.timeline.spans.lanes.length") == 0:
        yield "results: the timeline has no lanes"
    whole = browser.run("return espalier.timeline.to - espalier.timeline.from;")
    browser.click("#timeline [data-zoom='2']")
    if browser.run("return espalier.timeline.to - espalier.timeline.from;") >= whole:
        yield "results: zooming in shows no less"
    if browser.run("return espalier.charts.length") == 0:
        yield "results: there are no plots"
    if browser.run("return document.getElementById('slice') !== null"):
        yield "results: there is a slider of loads, which are not known"
    browser.click("table[data-name=times] th:nth-child(5) button")
    times = [float(cell) for cell in browser.run(COLUMN, "times", 4)]
    if times != sorted(times) or len(times) < 2:
        yield f"results: the table is not sorted: {times}"
    yield from (f"results: no name for those who do not see it: {what}" for what in browser.run(UNNAMED))
    yield from browser.messages()


def look_at_page(browser):
    if browser.run("return performance.getEntriesByType('resource').length") != 0:
        yield "the page loads something"
    yield from (f"no name for those who do not see it: {what}" for what in browser.run(UNNAMED))
    for scheme in ("light", "dark"):
        browser.use_scheme(scheme)
        for place, contrast in browser.run(CONTRASTS).items():
            if contrast < 4.5:
                yield f"{scheme}: {place} has a contrast of {contrast:.1f}"
    browser.use_medium("print")
    if browser.run("return getComputedStyle(document.querySelector('nav')).display") != "none":
        yield "the navigation is printed"
    cut = browser.run("""return [...document.querySelectorAll(".table, .drawing")]
      .filter((box) => getComputedStyle(box).overflow !== "visible" || getComputedStyle(box).maxHeight !== "none").length;""")
    if cut != 0:
        yield f"{cut} tables or drawings are cut off in print"
    if not browser.print().startswith("JVBERi0"):  # %PDF-
        yield "the page does not print"
    browser.use_medium("")
    yield from browser.messages()


def look_of_panels(browser, folder):
    """The looks of every panel of every kind of page, in light and in dark."""
    pictures = {}
    for kind, panels in PAGES.items():
        for scheme in ("light", "dark"):
            browser.open(folder / f"{kind}.html")
            browser.use_scheme(scheme)
            for panel in panels:
                pictures[f"{kind} {panel} {scheme}"] = browser.screenshot("#" + panel)
    browser.open("about:blank")
    return {name: browser.run_async(CELLS, png, COLUMNS, ROWS) for name, png in pictures.items()}


def moved(seen, known):
    """The part of what is drawn that is elsewhere: 0 where all is as it was, 1 where nothing is."""
    return sum(abs(a - b) for a, b in zip(seen, known)) / max(1, sum(seen) + sum(known))


def compare_panels(seen, path):
    known = json.loads(path.read_text(encoding="utf-8"))
    if known.keys() != seen.keys():
        yield f"panels are {sorted(seen)}"
        return
    for name, looks in seen.items():
        for kind, most in MOST_MOVED.items():
            part = moved(looks[kind], known[name][kind])
            if part > most:
                yield f"{name}: does not look as it did ({100 * part:.0f} % of its {kind} is elsewhere)"


def main():
    words = sys.argv[1:]
    record = words[0] == "--record"
    espalier, repository = (pathlib.Path(word).resolve() for word in words[1 if record else 0:])
    if find_programs() is None:
        print("skipped: Chromium or chromedriver is missing (scripts/setup --browser)")
        return 3
    panels = repository / "tests/browser/panels.json"
    problems = []
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        page = make_report(espalier, repository, pathlib.Path(folder))
        browser.open(page)
        for look in (look_at_drawings, look_at_tables, look_at_loads, look_at_timeline, look_at_charts, look_at_networks,
                     look_at_keys, look_at_colours, look_at_page, look_at_print):
            problems += look(browser)
        cost = browser.run(DRAW_COST)
        paint = browser.run("return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
        problems += look_at_touch(browser, page)
        problems += look_at_one_size(browser, espalier, repository, pathlib.Path(folder))
        problems += look_at_scenario(browser, espalier, repository, pathlib.Path(folder))
        problems += look_at_results(browser, espalier, pathlib.Path(folder))
        seen = look_of_panels(browser, pathlib.Path(folder))
    if record:
        lines = (f'"{name}": {json.dumps(looks)}' for name, looks in seen.items())
        panels.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    problems += compare_panels(seen, panels)
    print("\n".join(problems) or f"works; {cost:.1f} ms a frame, first paint after {paint:.0f} ms")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
