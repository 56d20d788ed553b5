#!/usr/bin/env python3
"""What a wheel holds, from this build's files: the command, the package, machines, and PyTorch's sources work from a folder elsewhere.

Usage: wheel_test.py REPOSITORY BUILD CMAKE
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest

REPOSITORY, BUILD, CMAKE = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]

THREE_LINES = """
import espalier
machine = espalier.Topology.load("dgx1v-degraded")
plan = espalier.plan(machine, "all_gather", size="256M")
print(espalier.__file__, espalier.simulate(plan, "256M").of_bound > 0.9, espalier.Topology.load("dgx-h100-x4").rank_count)
"""


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.site = pathlib.Path(cls.folder.name, "site")
        subprocess.run([CMAKE, "--install", BUILD, "--component", "wheel", "--prefix", str(cls.site)], check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_in(self, words, *first):
        """Elsewhere, and with nothing of the environment."""
        path = ":".join(map(str, (*first, self.site)))
        done = subprocess.run([sys.executable, *words], cwd=self.folder.name, text=True, capture_output=True, check=False,
                              env={"PATH": "/usr/bin:/bin", "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"})
        return done.returncode, done.stdout, done.stderr

    def test_three_lines(self):
        code, out, errors = self.run_in(["-c", THREE_LINES])
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(out.split(), [str(self.site / "espalier/__init__.py"), "True", "32"])

    def test_the_command(self):
        command = str(self.site / "bin/espalier")
        for words, expected in ((["bound", "dgx1v", "all_gather"], "busbw"), (["schema", "topology"], "$schema"), (["version"], "0.1.0"),
                                (["simulate", "dgx-h100-x4", "all_gather", "-a", "ring", "-s", "1M"], "profile nccl-hopper")):
            code, out, errors = self.run_in([command, *words])
            self.assertEqual((code, errors), (0, ""), words)
            self.assertIn(expected, out)

    def test_holds_every_file_of_the_package(self):
        for folder, place in (("python/espalier", "espalier"), ("python/torch", "espalier/torch_sources/python/torch"), ("configs", "espalier/configs")):
            for path in (REPOSITORY / folder).rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    self.assertTrue((self.site / place / path.relative_to(REPOSITORY / folder)).is_file(), path)

    def test_tells_the_namesake_apart(self):
        """The index's espalier is another project: before ours it has no command; beside ours an import says what to do."""
        other = pathlib.Path(self.folder.name, "other")
        (other / "espalier").mkdir(parents=True)
        (other / "espalier/__init__.py").write_text("")
        code, _, errors = self.run_in([str(self.site / "bin/espalier"), "version"], other)
        self.assertEqual(code, 1)
        self.assertIn("pip uninstall espalier", errors)
        (self.site / "espalier-0.3.dist-info").mkdir()
        try:
            code, _, errors = self.run_in(["-c", "import espalier"])
            self.assertEqual(code, 0)
            self.assertIn("pip uninstall espalier", errors)
        finally:
            (self.site / "espalier-0.3.dist-info").rmdir()

    def test_project_file(self):
        project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
        version = re.search(r"^project\(.* VERSION (\S+)", (REPOSITORY / "CMakeLists.txt").read_text(encoding="utf-8"), re.M).group(1)
        self.assertEqual(project["project"]["version"], version)
        self.assertEqual(project["project"]["dependencies"], ["numpy"])
        self.assertEqual(project["tool"]["scikit-build"]["install"]["components"], ["wheel"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
