#!python
"""The command of the wheel, which lies in the package: found without importing it, so that it starts at once."""
import importlib.util
import os
import sys

found = importlib.util.find_spec("espalier")
folder = next(iter(found.submodule_search_locations or ()), "") if found else ""
command = os.path.join(folder, "bin", "espalier")
if not os.access(command, os.X_OK):
    sys.exit(f"error: the package espalier that this Python finds ({folder or 'none'}) has no command: it is another project's, or was built from "
             "sources (pip install --force-reinstall espalier-collectives, after pip uninstall espalier where that is installed)")
os.execv(command, ["espalier", *sys.argv[1:]])
