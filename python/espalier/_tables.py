"""Lists of results, as tables."""
import html


class Table(list):
    """Results in a list, which pandas and notebooks show as a table: a row each, columns of plain values.

    >>> from espalier._tables import Table
    >>> Table([{"size": 8, "time": 2e-06}]).columns
    ['size', 'time']
    """

    @property
    def rows(self):
        """The results as dictionaries of plain values."""
        return [each if isinstance(each, dict) else each.to_dict() for each in self]

    @property
    def columns(self):
        """Names of the values, in order of appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def column(self, name):
        """One value of all results; None where a result lacks it.

        >>> from espalier._tables import Table
        >>> Table([{"size": 8}, {"size": 16}]).column("size")
        [8, 16]
        """
        return [row.get(name) for row in self.rows]

    def to_pandas(self, units=False):
        """A pandas.DataFrame. With `units`, columns say theirs: "time (s)", "busbw (B/s)". Needs pandas (Debian's python3-pandas)."""
        import pandas

        frame = pandas.DataFrame(self.rows, columns=self.columns)
        return frame.rename(columns=_with_unit) if units else frame

    def _repr_html_(self):
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(_text_of(row.get(name)))}</td>" for name in self.columns) + "</tr>"
                       for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_UNITS = {"size": "B", "chunk": "B", "bytes": "B", "time": "s", "mean_time": "s", "measured": "s", "simulated": "s", "picoseconds": "ps", "low": "s", "high": "s",
          "busbw": "B/s", "algbw": "B/s"}


def _with_unit(name):
    """The name of a column with the unit of its values.

    >>> from espalier._tables import _with_unit
    >>> [_with_unit(name) for name in ("busbw", "of_bound")]
    ['busbw (B/s)', 'of_bound']
    """
    return f"{name} ({_UNITS[name]})" if name in _UNITS else name


def _text_of(value):
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
