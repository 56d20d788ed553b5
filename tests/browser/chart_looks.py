"""What a reader does to the plots and the network of a report: parts of report_test.py."""
import subprocess

RANGE = "return espalier.charts[0].range;"
SAID = "return document.querySelector('#bandwidth .plots [role=status]').textContent;"
PLOT = "#bandwidth .u-over"
# How many pixels of the first plot, or of the timeline, are drawn at all, and how many in a colour of the page.
DRAWN = """
const [place, property] = arguments;
const canvas = place === "plot" ? espalier.charts[0].plots[0].ctx.canvas : espalier.timeline.canvas, {width, height} = canvas;
const copy = new OffscreenCanvas(width, height).getContext("2d", {willReadFrequently: true});
copy.drawImage(canvas, 0, 0);
const colour = getComputedStyle(document.documentElement).getPropertyValue("--" + property);
const wanted = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)), {data} = copy.getImageData(0, 0, width, height);
let drawn = 0, coloured = 0;
for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 128) {
  ++drawn;
  if (wanted.every((channel, k) => data[i + k] === channel)) ++coloured;
}
return [drawn, coloured];
"""
# The same curve in light, in dark.
CANVASES = (("plot", "c0"), ("timeline", "send"))
TRANSFORM = "return document.querySelector('#machine svg > g:last-child')?.getAttribute('transform') ?? '';"
SHOWN = """
const shown = (selector) => document.querySelector(selector).checkVisibility();
return [shown("#bandwidth .plots"), shown("#bandwidth > .curves > .chart")];
"""


def settle(browser):
    """Until what was asked for is drawn."""
    browser.run_async("const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 0));")


def look_at_charts(browser):
    """Plots zoom by drag, double click, buttons and keys; the cursor and the arrow keys tell values; the legend hides curves."""
    browser.run("document.querySelector('#bandwidth .plot-box').scrollIntoView({block: 'center'});")
    whole = browser.run(RANGE)
    shown = browser.run("return espalier.charts.map(({plots}) => plots.length);")
    if shown[0] != 2 or len(shown) != 2:
        yield f"there are plots of rates, parts of the bound and errors: {shown}"
    browser.drag(PLOT, 200)
    settle(browser)
    dragged = browser.run(RANGE)
    if not whole[0] < dragged[0] < dragged[1] <= whole[1]:
        yield f"dragging over a part shows {dragged} of {whole}"
    ranges = browser.run("return espalier.charts[0].plots.map(({scales}) => [scales.x.min, scales.x.max]);")
    if any(abs(a - b) > 1e-9 for own in ranges for a, b in zip(own, dragged)):
        yield f"of two plots one does not follow: {ranges}, {dragged}"
    browser.double_click(PLOT)
    settle(browser)
    if browser.run(RANGE) != whole:
        yield f"a double click shows {browser.run(RANGE)}, not {whole}"
    if not browser.run(SAID):
        yield "the cursor tells nothing"
    for press, less in ((lambda: browser.click("#bandwidth [data-zoom='2']"), True), (lambda: browser.click("#bandwidth [data-zoom='0']"), False),
                        (lambda: browser.type("#bandwidth .plot-box", "+"), True), (lambda: browser.type("#bandwidth .plot-box", "\ue011"), False)):
        press()
        settle(browser)
        if (browser.run(RANGE) != whole) != less:
            yield f"a button or key shows {browser.run(RANGE)} of {whole}"
    browser.type("#bandwidth .plot-box", "\ue00c")  # Escape: no point.
    settle(browser)
    told = []
    for key in ("\ue014", "\ue014", "\ue012"):
        browser.type("#bandwidth .plot-box", key)
        settle(browser)
        told.append(browser.run(SAID))
    if not told[0].startswith("64 KiB: ") or not told[1].startswith("512 KiB: ring ") or told[2] != told[0] or "% of the bound" not in told[0]:
        yield f"the arrow keys tell {told}"
    drawn, _ = browser.run(DRAWN, "plot", "c1")
    browser.click("#bandwidth .legend li:nth-child(2) button")
    settle(browser)
    fewer, _ = browser.run(DRAWN, "plot", "c1")
    if fewer > drawn - 200 or "tree" in browser.run(SAID) or browser.run("return espalier.charts[0].plots[1].series[2].show"):
        yield f"the legend does not hide a curve: {drawn} pixels, then {fewer}"
    browser.type("#bandwidth .legend li:nth-child(2) button", "\ue007")  # Enter.
    settle(browser)
    pressed = browser.run("return document.querySelector('#bandwidth .legend li:nth-child(2) button').ariaPressed")
    if abs(browser.run(DRAWN, "plot", "c1")[0] - drawn) > 200 or pressed != "true":
        yield "the legend does not show a curve again"


def look_at_networks(browser):
    """The network zooms by buttons, keys and Ctrl with the wheel, and pans by drag and arrow keys; All shows it as it was."""
    browser.run("document.querySelector('#machine .drawing').scrollIntoView({block: 'center'});")
    known = {browser.run(TRANSFORM)}
    for what, work in (("Zoom in", lambda: browser.click("#machine [data-zoom='2']")), ("a drag", lambda: browser.drag("#machine svg", -60, 20)),
                       ("an arrow key", lambda: browser.type("#machine .drawing", "\ue014")),
                       ("Ctrl with the wheel", lambda: browser.wheel("#machine svg", -240)),
                       ("the key -", lambda: browser.type("#machine .drawing", "-"))):
        work()
        now = browser.run(TRANSFORM)
        if now in known:
            yield f"the network is not moved by {what}: {now}"
        known.add(now)
    browser.use_medium("print")
    if browser.run("return getComputedStyle(document.querySelector('#machine svg > g:last-child')).transform") != "none":
        yield "of a network that is zoomed into only a part is printed"
    browser.use_medium("")
    browser.click("#machine [data-zoom='0']")
    if browser.run(TRANSFORM) != "translate(0,0) scale(1)":
        yield f"All shows the network at {browser.run(TRANSFORM)}"


def look_at_one_size(browser, espalier, repository, folder):
    """With a single size there is an axis around it."""
    page = folder / "one.html"
    subprocess.run([espalier, "-q", "report", "dgx1v", "all_gather", "-a", "ring", "-s", "1M", "--profile", "ideal", "-o", page], cwd=repository,
                   check=True, stdout=subprocess.DEVNULL, timeout=60)
    browser.open(page)
    settle(browser)
    ranges = browser.run("return espalier.charts[0].plots.map(({scales}) => [scales.x.min, scales.x.max]);")
    if ranges != [[19, 21], [19, 21]]:  # Half and twice of 2^20 bytes.
        yield f"a single size is shown in {ranges}"
    yield from browser.messages()


def look_at_touch(browser, page):
    """Two fingers zoom the timeline; one leaves it as it is, so that the page scrolls."""
    browser.command("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    browser.open(page)
    left, top = browser.run("""document.querySelector('.lanes').scrollIntoView({block: 'center'});
      const {left, width, top, height} = document.querySelector('.lanes').getBoundingClientRect();
      return [Math.round(left + width / 2), Math.round(top + height / 2)];""")

    def touch(kind, *xs):
        browser.command("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": left + x, "y": top, "id": i} for i, x in enumerate(xs)])

    seen = "return espalier.timeline.to - espalier.timeline.from;"
    whole = browser.run(seen)
    for fingers, zooms in (((20, 80), False), ((-20, 20), True)):
        ends = (fingers[:1], (fingers[1],)) if not zooms else (fingers, (-120, 120))
        touch("touchStart", *ends[0])
        touch("touchMove", *ends[1])
        touch("touchEnd")
        if (browser.run(seen) < 0.5 * whole) != zooms:
            yield f"with {len(ends[0])} fingers the timeline shows {browser.run(seen)} of {whole}"
    browser.command("Emulation.setTouchEmulationEnabled", enabled=False)
    yield from browser.messages()


def look_at_print(browser):
    """Canvases follow the scheme; print is light, with the drawing instead of the plots, and afterwards all is as it was."""
    def missing(when):
        for place, property in CANVASES:
            if browser.run(DRAWN, place, property)[1] < 100:
                yield f"{when}: the {place} is not drawn in the colours of the page"

    for scheme in ("light", "dark"):
        browser.use_scheme(scheme)
        settle(browser)
        yield from missing(scheme)
    dark = browser.run("return getComputedStyle(document.documentElement).getPropertyValue('--ink')")
    browser.run("dispatchEvent(new Event('beforeprint'));")
    settle(browser)
    yield from missing("print")
    if browser.run("return getComputedStyle(document.documentElement).getPropertyValue('--ink')") == dark:
        yield "print is dark"
    browser.use_medium("print")
    if browser.run(SHOWN) != [False, True]:
        yield "in print plots are not replaced by their drawing"
    if browser.run("return getComputedStyle(document.querySelector('.phase'), '::before').printColorAdjust") != "exact":
        yield "in print the timeline's legend has no colours"
    browser.use_medium("")
    browser.run("dispatchEvent(new Event('afterprint'));")
    settle(browser)
    if browser.run(SHOWN) != [True, False]:
        yield "after printing the plots are gone"
    browser.use_scheme("light")
    yield from browser.messages()
