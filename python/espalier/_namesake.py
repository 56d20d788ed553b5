"""The name espalier on the package index is another project's, of phylogenetic trees: both are installed into one folder."""
import os
import warnings


def warn_of_namesake(packages):
    """Says so where both are: whichever was installed last has overwritten files of the other.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     pathlib.Path(folder, "espalier_collectives-0.1.0.dist-info").mkdir()
    ...     warn_of_namesake(folder)
    ...     alone = len(told)
    ...     pathlib.Path(folder, "espalier-0.3.dist-info").mkdir()
    ...     warn_of_namesake(folder)
    ...     print(alone, len(told))
    0 1
    """
    try:
        names = os.listdir(packages)
    except OSError:
        return
    if any(name.startswith("espalier-") and name.endswith((".dist-info", ".egg-info")) for name in names):
        warnings.warn("another project's package espalier is installed in the same folder, and the two overwrite each other's files: "
                      "pip uninstall espalier, then pip install --force-reinstall espalier-collectives", stacklevel=3)
