#!/usr/bin/env python3
"""Runs the Python examples of README.md and of the pages on Python and PyTorch, each as a program of its own."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALONE = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29741"}  # As torchrun would say.


class Documents(unittest.TestCase):
    def test_examples(self):
        for document, least in (("README.md", 1), ("docs/python.md", 1), ("docs/python-planning.md", 1), ("docs/python-running.md", 2), ("docs/torch.md", 1)):
            examples = re.findall(r"^```python\n(.*?)^```", (ROOT / document).read_text(encoding="utf-8"), re.M | re.S)
            self.assertGreaterEqual(len(examples), least, document)
            for example in examples:
                with self.subTest(document=document, example=example), tempfile.TemporaryDirectory() as folder:
                    if "torch" in example and subprocess.run([sys.executable, "-c", "import espalier.torch"],
                                                             capture_output=True).returncode:
                        continue  # PyTorch need not be there.
                    program = pathlib.Path(folder, "example.py")
                    program.write_text(example, encoding="utf-8")
                    done = subprocess.run([sys.executable, program], env={**os.environ, **(ALONE if "torch" in example else {})},
                                          capture_output=True, text=True, timeout=120)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    for said in re.findall(r"^ *print\(.*\)  +# (\[.*\])$", example, re.M):
                        self.assertEqual(done.stdout.strip(), said)


if __name__ == "__main__":
    unittest.main()
