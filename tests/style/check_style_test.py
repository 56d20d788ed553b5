#!/usr/bin/env python3
"""check_style.py finds what it is to find: small trees with one fault each."""
import pathlib
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


if __name__ == "__main__":
    unittest.main()
