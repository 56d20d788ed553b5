"""Times against the number of ranks, both axes logarithmic: what plot_planning.py and plot_simulation.py draw with.

A line per family, with the exponent of the power of N that fits the family's larger half best (all of a small family).
"""
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 440, 70, 20, 40, 50


def exponent(points):
    """The slope of the least-squares line through the logarithms of the larger half."""
    larger = sorted(points)[len(points) // 2 :] if len(points) > 5 else sorted(points)
    xs = [math.log(n) for n, _ in larger]
    ys = [math.log(max(t, 0.01)) for _, t in larger]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / sum((x - mean_x) ** 2 for x in xs)


def draw(points, families, title):
    """An SVG of `points`, lists of (ranks, milliseconds) by family; `families` maps each to its name and color."""
    ranks = [n for family in points.values() for n, _ in family]
    times = [max(t, 0.01) for family in points.values() for _, t in family]
    low_x, high_x = math.floor(math.log2(min(ranks))), math.ceil(math.log2(max(ranks)))
    low_y, high_y = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def x_of(n):
        return LEFT + (math.log2(n) - low_x) / (high_x - low_x) * (WIDTH - LEFT - RIGHT)

    def y_of(t):
        return HEIGHT - BOTTOM - (math.log10(max(t, 0.01)) - low_y) / (high_y - low_y) * (HEIGHT - TOP - BOTTOM)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{title}</text>',
    ]
    for power in range(low_x, high_x + 1):
        x = x_of(2**power)
        out.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        out.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{2**power}</text>')
    for power in range(low_y, high_y + 1):
        y = y_of(10.0**power)
        label = f"{10 ** power} ms" if 0 <= power < 3 else f"{10 ** (power - 3)} s" if power >= 3 else f"{10.0 ** power:g} ms"
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    out.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 10}" text-anchor="middle">ranks</text>')
    for row, family in enumerate(family for family in families if family in points):
        (name, color), line = families[family], sorted(points[family])
        path = " ".join(f"{x_of(n):.1f},{y_of(t):.1f}" for n, t in line)
        out.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        out += [f'<circle cx="{x_of(n):.1f}" cy="{y_of(t):.1f}" r="3" fill="{color}"/>' for n, t in line]
        y = TOP + 16 + 18 * row
        out.append(f'<rect x="{LEFT + 10}" y="{y - 9}" width="12" height="4" fill="{color}"/>')
        out.append(f'<text x="{LEFT + 28}" y="{y - 3}">{name}: N^{exponent(line):.1f}</text>')
    return "\n".join(out + ["</svg>", ""])


def write(path, points, families, title):
    """Writes the SVG and prints the exponents."""
    if not points:
        sys.exit("nothing to draw: the input has no row of a known family")
    with open(path, "w", encoding="utf-8") as file:
        file.write(draw(points, families, title))
    for family, line in points.items():
        print(f"{families[family][0]}: N^{exponent(line):.2f}")
