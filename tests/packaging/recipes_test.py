#!/usr/bin/env python3
"""The recipes for Docker and Spack name what there is: paths, presets, options, scripts with their flags, and every library that the
build looks for.

Usage: recipes_test.py REPOSITORY
"""
import ast
import json
import pathlib
import re
import sys

# What the build looks for, and what Spack calls it; None: Spack has it anyway.
IN_SPACK = {"Threads": None, "PkgConfig": "pkgconfig", "fmt": "fmt", "yaml-cpp": "yaml-cpp", "nlohmann_json": "nlohmann-json", "pugixml": "pugixml",
            "OpenSSL": "openssl", "Boost": "boost", "ZLIB": "zlib-api", "Eigen3": "eigen", "CLI/CLI.hpp": "cli11", "tl/expected.hpp": "tl-expected",
            "clp": "clp", "libbliss-cxx": "bliss", "bliss/graph.hh": "bliss", "bliss": "bliss", "libisal": "isa-l", "libibverbs": "rdma-core",
            "mimalloc.h": "mimalloc", "mimalloc": "mimalloc"}
# What Spack's recipe takes beside them: tools, and what the Python package needs.
NOT_LOOKED_FOR = {"cxx", "cmake", "gmp", "python", "py-pybind11", "py-numpy"}


def looked_for(repository):
    """What the build looks for without its tests and benchmarks."""
    text = (repository / "cmake/EspalierDependencies.cmake").read_text(encoding="utf-8")
    text = re.sub(r"^if\(ESPALIER_(?:TESTS|BENCH)\b.*?^endif\(\)", "", text, flags=re.M | re.S)
    text = re.sub(r"#.*", "", text)
    found = set(re.findall(r"find_package\((\S+?)[ )]", text)) | set(re.findall(r"find_path\(\S+ ([^\s)]+)", text))
    found |= set(re.findall(r"find_library\(\S+ ([^\s)]+)", text))
    for words in re.findall(r"pkg_check_modules\(([^)]*)\)", text):
        found.add(words.split()[-1])
    return found


def options_of(repository):
    texts = [(repository / "CMakeLists.txt"), *sorted((repository / "cmake").glob("*.cmake"))]
    return set(re.findall(r"(?:option|set)\((ESPALIER_[A-Z0-9_]+)", "".join(path.read_text(encoding="utf-8") for path in texts)))


def check_spack(repository):
    folder = repository / "packaging/spack"
    if "namespace: espalier" not in (folder / "repo.yaml").read_text(encoding="utf-8"):
        yield "packaging/spack/repo.yaml names no repository"
    tree = ast.parse((folder / "packages/espalier/package.py").read_text(encoding="utf-8"))
    calls = [call for call in ast.walk(tree) if isinstance(call, ast.Call)]
    called = lambda name: [call for call in calls if getattr(call.func, "id", getattr(call.func, "attr", "")) == name]
    depends = {re.match(r"[\w-]+", call.args[0].value).group() for call in called("depends_on")}
    for what in looked_for(repository):
        if what not in IN_SPACK:
            yield f"the build looks for {what}, and this test does not know what Spack calls it"
        elif IN_SPACK[what] is not None and IN_SPACK[what] not in depends:
            yield f"the build looks for {what}, and Spack's recipe does not depend on {IN_SPACK[what]}"
    for package in sorted(depends - set(IN_SPACK.values()) - NOT_LOOKED_FOR):
        yield f"Spack's recipe depends on {package}, which the build does not look for"
    variants = {call.args[0].value for call in called("variant")}
    for call in [*called("depends_on"), *called("extends")]:
        for key in call.keywords:
            if key.arg == "when" and key.value.value.lstrip("+~") not in variants:
                yield f"Spack's recipe has no variant {key.value.value}"
    for call in [*called("define"), *called("define_from_variant")]:
        if call.args[0].value not in options_of(repository):
            yield f"Spack's recipe defines {call.args[0].value}, which is no option"
        if call.func.attr == "define_from_variant" and call.args[1].value not in variants:
            yield f"Spack's recipe has no variant {call.args[1].value}"


def check_docker(repository):
    text = (repository / "packaging/Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    ignored = (repository / ".dockerignore").read_text(encoding="utf-8").split("\n")
    if "build" not in ignored:
        yield ".dockerignore lets what was built here into the image"
    stages = set(re.findall(r"^FROM .* AS (\S+)", text, flags=re.M))
    presets = {preset["name"]: preset for preset in json.loads((repository / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]}
    for words in re.findall(r"^COPY (.*)", text, flags=re.M):
        *flags, sources = [word for word in words.split() if word.startswith("--")], [word for word in words.split() if not word.startswith("--")][:-1]
        if flags[0]:
            stage = flags[0][0].removeprefix("--from=")
            if stage not in stages:
                yield f"Dockerfile: there is no stage {stage}"
            continue
        for source in sources:
            if not (repository / source).exists():
                yield f"Dockerfile: there is no {source}"
    for command in re.findall(r"^RUN (.*)", text, flags=re.M):
        for words in (part.split() for part in command.split("&&")):
            words = [word for word in words if "=" not in word or word.startswith("-")]
            if words[0].startswith("scripts/"):
                script = repository / words[0]
                if not script.exists():
                    yield f"Dockerfile: there is no {words[0]}"
                    continue
                for flag in words[1:]:
                    if flag.startswith("--") and flag not in script.read_text(encoding="utf-8"):
                        yield f"Dockerfile: {words[0]} has no {flag}"
            for preset in re.findall(r"--preset (\S+)", " ".join(words)):
                if preset not in presets:
                    yield f"Dockerfile: there is no preset {preset}"
            for option in re.findall(r"-D(ESPALIER_\w+)", " ".join(words)):
                if option not in options_of(repository):
                    yield f"Dockerfile: {option} is no option"
    built = re.findall(r"/source/(\S+?)/espalier_", text)
    if not built or built[0] not in (repository / "scripts/package").read_text(encoding="utf-8"):
        yield f"Dockerfile: scripts/package does not build into {built}"


def main():
    repository = pathlib.Path(sys.argv[1]).resolve()
    problems = [*check_spack(repository), *check_docker(repository)]
    print("\n".join(problems) or "the recipes name what there is")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
