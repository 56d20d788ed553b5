"""The backend's extension module, compiled where it is used: against the PyTorch that is installed, once for each."""
import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import pathlib
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile

import torch

SOURCES = pathlib.Path(__file__).parent / "torch_sources"
NEEDED = ("Debian and Ubuntu: apt-get install g++ python3-dev; g++ 11 or clang++ 14 and newer do, and CXX names one")


def cache_folder():
    """Where what was compiled is kept: XDG_CACHE_HOME, else ~/.cache; a folder of this user's alone where neither is the user's own."""
    root = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "espalier"
    try:
        root.mkdir(mode=0o755, parents=True, exist_ok=True)
        if os.access(root, os.W_OK) and _is_own(root.resolve()):
            return root
    except OSError:
        pass
    own = pathlib.Path(tempfile.gettempdir()) / f"espalier-{os.getuid()}"
    own.mkdir(mode=0o700, exist_ok=True)
    if not _is_own(own):
        raise ImportError(f"{own} may be written by others; set XDG_CACHE_HOME to a folder of your own")
    return own


def _is_own(folder):
    """Whether nobody else can put a library there: what lies in the cache is loaded. A root with another's HOME is somebody else, too."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022


def _sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in (".h", ".cpp"))


def _compiler():
    told = shlex.split(os.environ.get("CXX", ""))
    for command in [told] if told else (["c++"], ["g++"], ["clang++"]):
        if shutil.which(command[0]):
            return command
    what = f"CXX names {told[0]}, which is not there" if told else "no C++ compiler was found"
    raise ImportError(f"espalier.torch is compiled at its first import, and {what} ({NEEDED})")


def _flags():
    """As PyTorch itself was compiled, where that tells: libraries and pybind11's types are shared with it."""
    root = pathlib.Path(torch.__file__).parent
    folders = [root / "include", root / "include" / "torch" / "csrc" / "api" / "include"]
    headers = sysconfig.get_paths()["include"]
    if not (folders[0] / "torch").exists():  # Debian's are the system's own.
        from torch.utils import cpp_extension
        folders = cpp_extension.include_paths()
    if not pathlib.Path(headers, "Python.h").exists():
        raise ImportError(f"espalier.torch is compiled at its first import, and {headers} has no Python.h ({NEEDED})")
    flags = ["-std=c++20", "-O2", "-fPIC", "-shared", "-w", "-DTORCH_EXTENSION_NAME=_torch", "-DUSE_C10D_GLOO",
             f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}", f"-I{headers}"]
    flags += [f"-isystem{folder}" for folder in folders]
    for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI"):
        value = getattr(torch._C, f"_PYBIND11_{name}", None)
        if value is not None:
            flags.append(f'-DPYBIND11_{name}="{value}"')
    libraries = [f"-L{root / 'lib'}", "-lc10", "-ltorch", "-ltorch_cpu", "-ltorch_python"]
    return flags, libraries


def _compile(compiler, sources, made, folder):
    flags, libraries = _flags()
    together = folder / "all.cpp"
    together.write_text("".join(f'#include "{source}"\n' for source in sources if source.suffix == ".cpp"))
    command = compiler + flags + [f"-I{SOURCES}", str(together), "-o", str(folder / made.name)] + libraries
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    if done.returncode != 0:
        log = made.with_suffix(".log")
        log.write_text(shlex.join(command) + "\n" + done.stdout)
        first = next((line for line in done.stdout.splitlines() if "error" in line), "the compiler says nothing")
        raise ImportError(f"espalier.torch could not be compiled for PyTorch {torch.__version__}: {first} (all of it: {log}; {NEEDED})")
    os.replace(folder / made.name, made)


def compiled(folder, name):
    """The extension made of a folder's C++ sources against this PyTorch; compiled by the first process that asks for it."""
    compiler, sources = _compiler(), _sources(folder)
    told = hashlib.sha256()
    for part in (torch.__version__, str(getattr(torch.version, "git_version", "")), torch.__file__, sys.implementation.cache_tag,
                 sysconfig.get_config_var("EXT_SUFFIX") or "", shlex.join(compiler)):
        told.update(part.encode() + b"\0")
    for source in sources:
        told.update(str(source.relative_to(folder)).encode() + b"\0" + source.read_bytes())
    made = cache_folder() / f"{name}-torch{torch.__version__.split('+')[0]}-{told.hexdigest()[:16]}.so"
    if made.exists():
        return made
    with open(made.with_suffix(".lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Freed by the system whatever becomes of the process.
        if not made.exists():
            print(f"espalier.torch: compiling {name} for PyTorch {torch.__version__}, once: about a minute", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(dir=made.parent) as work:
                _compile(compiler, sources, made, pathlib.Path(work))
    return made


def load_backend():
    """The extension module _torch."""
    path = str(compiled(SOURCES, "backend"))
    loader = importlib.machinery.ExtensionFileLoader("espalier._torch", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("espalier._torch", loader))
    loader.exec_module(module)
    sys.modules["espalier._torch"] = module
    return module
