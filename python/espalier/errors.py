"""What went wrong, as the command line says it."""


class Error(Exception):
    """An error of the libraries.

    Attributes:
        code: "invalid_input", "infeasible", "unsupported", "too_large" or "unavailable".
        message: what is wrong, with the place where there is one.
        help: what to write instead; may be empty.
        rank: of a job that failed, the rank to blame; else None.

    >>> import espalier
    >>> try:
    ...     espalier.bound(espalier.Topology.load("dgx1v"), "allgather")
    ... except espalier.Error as error:
    ...     print(error.code, error.help)
    invalid_input did you mean 'all_gather'?
    """

    def __init__(self, code, message, help="", rank=None):
        help = help.replace("raise --timeout", "raise timeout=")  # The command's option is an argument here.
        super().__init__(f"{message} ({help})" if help else message)
        self.code, self.message, self.help, self.rank = code, message, help, rank

    def __reduce__(self):
        return type(self), (self.code, self.message, self.help, self.rank)
