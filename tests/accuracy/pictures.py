"""Pictures of predictions against measurements for docs/accuracy.md."""
import math
import pathlib

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
COLORS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#e377c2", "#7f7f7f", "#bcbd22", "#111111"]


def seconds_text(seconds):
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit * 0.999:
            return f"{seconds / unit:g} {name}"
    return f"{seconds:g} s"


def scatter(title, groups, span=2.0, width=760, height=420):
    """Predicted over measured time against the measured one, logarithmic; `groups`: {name: [(measured, predicted)]}, a color each, many points first.
    What is further off than `span` times lies on the edge."""
    left, right, top, bottom = 60, 20, 36, 70
    times = [measured for points in groups.values() for measured, _ in points]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def x_of(seconds):
        return left + (math.log10(seconds) - low) / (high - low) * (width - left - right)

    def y_of(ratio):
        bounded = min(max(math.log(ratio) / math.log(span), -1), 1)
        return top + (1 - bounded) / 2 * (height - top - bottom)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>', f'<text x="{left}" y="20" font-size="14">{title}</text>']
    for power in range(low, high + 1):
        x = x_of(10**power)
        out.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{height - bottom}" stroke="#eee"/>')
        out.append(f'<text x="{x:.1f}" y="{height - bottom + 16}" text-anchor="middle">{seconds_text(10.0**power)}</text>')
    for ratio in (1 / span, 0.8, 0.9, 1, 1.1, 1.25, span):
        y = y_of(ratio)
        out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width - right}" y2="{y:.1f}" stroke="{"#888" if ratio == 1 else "#ddd"}"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{ratio:g}</text>')
    for color, (name, points) in zip(COLORS, sorted(groups.items(), key=lambda group: -len(group[1]))):
        dots = "".join(f"M{x_of(measured):.1f} {y_of(predicted / measured):.1f}h0" for measured, predicted in sorted(points))
        out.append(f'<path d="{dots}" stroke="{color}" stroke-width="4" stroke-linecap="round" stroke-opacity="0.6" fill="none"/>')
    for index, (color, name) in enumerate(zip(COLORS, sorted(groups, key=lambda name: -len(groups[name])))):
        x, y = left + 118 * (index % 6), height - 30 + 16 * (index // 6)
        out.append(f'<circle cx="{x + 4}" cy="{y - 4}" r="3" fill="{color}"/><text x="{x + 12}" y="{y}">{name} ({len(groups[name])})</text>')
    return "\n".join(out + ["</svg>", ""])


def write(name, picture):
    (REPOSITORY / "docs" / name).write_text(picture, encoding="utf-8")


def write_between(mark, text):
    """Puts a table into docs/accuracy.md between its marks."""
    path = REPOSITORY / "docs" / "accuracy.md"
    page = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->"
    before, rest = page.split(begin, 1)
    path.write_text(before + begin + text.rstrip("\n") + "\n" + end + rest.split(end, 1)[1], encoding="utf-8")
