#!/usr/bin/env python3
"""check_style.py finds what it is to find: small trees with one fault each."""
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_style

FOLDERS = {"schedule", "planners", "engine"}


def namespace_findings(path, namespace):
    """What check_namespaces says of one header in a tree where engine/launch is a library within engine."""
    with tempfile.TemporaryDirectory() as name:
        repository = pathlib.Path(name)
        for place in ("engine/launch/CMakeLists.txt", path):
            (repository / place).parent.mkdir(parents=True, exist_ok=True)
            (repository / place).write_text("", encoding="utf-8")
        (repository / path).write_text(f"#pragma once\nnamespace {namespace} {{\n}}\n", encoding="utf-8")
        return list(check_style.check_namespaces(repository, FOLDERS))


class Namespaces(unittest.TestCase):
    def test_are_those_of_the_folders(self):
        for path, namespace in (("schedule/layout.h", "espalier"), ("schedule/layout.h", "espalier::layouts"),
                                ("planners/ring/ring.h", "espalier::planners"), ("engine/shm/peer.h", "espalier::engine"),
                                ("engine/launch/job.h", "espalier::engine::launch"),
                                ("tests/unit/engine/launch/job_test.cpp", "espalier::engine::launch"),
                                ("engine/communicator/job.h", "espalier"),
                                ("engine/communicator/job.h", "espalier::engine")):
            self.assertEqual(namespace_findings(path, namespace), [], path)

    def test_of_other_folders_are_found(self):
        for path, namespace, own in (("planners/ring/ring.h", "espalier", "espalier::planners"),
                                     ("planners/ring/ring.h", "espalier::planners_too", "espalier::planners"),
                                     ("schedule/layout.h", "espalier::planners", "espalier"),
                                     ("engine/shm/peer.h", "espalier", "espalier::engine"),
                                     ("engine/launch/job.h", "espalier::engine", "espalier::engine::launch"),
                                     ("tests/unit/planners/plan_test.cpp", "espalier", "espalier::planners"),
                                     ("engine/communicator/job.h", "espalier::planners", "espalier::engine")):
            self.assertEqual(namespace_findings(path, namespace), [f"{path}:2: {namespace} is not {own}"])


class TestedBy(unittest.TestCase):
    def findings(self, header, listed=""):
        with tempfile.TemporaryDirectory() as name:
            repository = pathlib.Path(name)
            for place, text in (("schedule/layout.h", header), ("tests/style/headers_without_test.txt", listed),
                                ("tests/unit/layout_test.cpp", "")):
                (repository / place).parent.mkdir(parents=True, exist_ok=True)
                (repository / place).write_text(text, encoding="utf-8")
            return list(check_style.check_tested_by(repository, FOLDERS))

    def test_names_a_test_that_is_there(self):
        self.assertEqual(self.findings("#pragma once\n\n// Tested by: tests/unit/layout_test.cpp\n"), [])
        self.assertEqual(self.findings("#pragma once\n", "schedule/layout.h\n"), [])
        self.assertEqual(len(self.findings("#pragma once\n")), 1)
        self.assertEqual(len(self.findings("#pragma once\n\n// Tested by: tests/unit/gone_test.cpp\n")), 1)
        self.assertEqual(len(self.findings("#pragma once\n\n// Tested by: tests/unit/layout_test.cpp\n", "schedule/layout.h\n")), 1)
        self.assertEqual(len(self.findings("#pragma once\n", "schedule/layout.h\nschedule/gone.h\n")), 1)


class Page(unittest.TestCase):
    """The report's page and its bundle, in a small copy."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.repository = pathlib.Path(folder.name)
        self.page = self.repository / "report/page"
        (self.page / "source").mkdir(parents=True)
        (self.page / "bundle").mkdir()
        shutil.copy(pathlib.Path(__file__).parents[2] / "report/page/source_hash.py", self.page)
        (self.page / "source/main.ts").write_text("main();\n", encoding="utf-8")
        (self.page / "package-lock.json").write_text("{}\n", encoding="utf-8")
        # printf 'package-lock.json 3\n{}\nsource/main.ts 8\nmain();\n' | sha256sum
        (self.page / "bundle/report.js").write_text("/* sources f0d4ca5106cb14747df3deefc49b1b252705042b0a977508899033f277b2b021 */", encoding="utf-8")

    def findings(self):
        return list(check_style.check_page(self.repository))

    def test_a_bundle_is_of_its_sources(self):
        self.assertEqual(self.findings(), [])
        for path, text in (("source/main.ts", "main(1);\n"), ("package-lock.json", "{ }\n"), ("source/new.ts", "")):
            before = (self.page / path).read_text() if (self.page / path).exists() else None
            (self.page / path).write_text(text, encoding="utf-8")
            self.assertEqual(self.findings(), ["report/page/bundle/report.js:1: was made from other sources; run scripts/report-page"], path)
            if before is None:
                (self.page / path).unlink()
            else:
                (self.page / path).write_text(before, encoding="utf-8")

    def test_lengths_and_where_packages_come_from(self):
        (self.page / "source/long.ts").write_text("x" * 161 + "\n" * 501, encoding="utf-8")
        (self.page / "package-lock.json").write_text('{"resolved": ""}\n', encoding="utf-8")
        self.assertEqual([finding.split(": ")[0] for finding in self.findings()],
                         ["report/page/source/long.ts:1", "report/page/source/long.ts:1", "report/page/bundle/report.js:1",
                          "report/page/package-lock.json:1"])


if __name__ == "__main__":
    unittest.main()
