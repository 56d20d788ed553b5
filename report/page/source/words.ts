/** A duration for people. */
export function duration(picoseconds: number): string {
  const ns = picoseconds / 1000;
  if (ns < 1e3) return ns.toPrecision(3) + " ns";
  return ns < 1e6 ? (ns / 1e3).toPrecision(4) + " us" : (ns / 1e6).toPrecision(4) + " ms";
}

/** A message size for people: a whole number of the largest binary unit where it is one, else with one place: "1 GiB", "430.5 MiB". */
export function sizeText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0, number = bytes;
  while (number >= 1024 && unit + 1 < units.length) {
    number /= 1024;
    ++unit;
  }
  return `${Number.isInteger(number) ? number : number.toFixed(1)} ${units[unit]}`;
}

/** Rows as CSV. Source: RFC 4180. */
export function csvOf(rows: string[][]): string {
  const field = (text: string) => /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  return rows.map((row) => row.map(field).join(",") + "\r\n").join("");
}
