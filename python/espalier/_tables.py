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

    def to_pandas(self):
        """A pandas.DataFrame. Needs pandas (Debian's python3-pandas)."""
        import pandas

        return pandas.DataFrame(self.rows, columns=self.columns)

    def _repr_html_(self):
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(_text_of(row.get(name)))}</td>" for name in self.columns) + "</tr>"
                       for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text_of(value):
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
