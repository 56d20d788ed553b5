/** A duration for people, of four digits at most before it is whole seconds: "2.5 us", "10 s". */
export function duration(picoseconds: number): string {
  const units: [string, number][] = [["s", 1e12], ["ms", 1e9], ["us", 1e6], ["ns", 1e3]];
  const [name, size] = units.find(([, size]) => picoseconds >= size) ?? units[units.length - 1];
  const number = picoseconds / size;
  return `${number < 1000 ? Number(number.toPrecision(4)) : Math.round(number)} ${name}`;
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
