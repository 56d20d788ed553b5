#!python
"""The command of the wheel, which lies in the package: found without importing it, so that it starts at once."""
import importlib.util
import os
import sys

found = importlib.util.find_spec("espalier")
command = os.path.join(os.path.dirname(found.origin), "bin", "espalier") if found and found.origin else ""
if not os.access(command, os.X_OK):
    sys.exit("error: the package espalier that this Python finds has no command: it is another project's, or built from sources "
             "(pip install espalier-collectives)")
os.execv(command, ["espalier", *sys.argv[1:]])
