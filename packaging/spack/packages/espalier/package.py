"""Spack's recipe, of the sources that it stands in: spack repo add packaging/spack && spack dev-build espalier@main."""
from spack.package import *


class Espalier(CMakePackage):
    """Plans, predicts, runs and compares collective communication on any network graph."""

    license("Apache-2.0", checked_by="espalier")
    maintainers("espalier")

    version("main", branch="main")

    variant("verbs", default=True, description="Transport over RDMA")
    variant("python", default=False, description="Python package")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("boost@1.74:")
    depends_on("fmt@9:")
    depends_on("yaml-cpp@0.7:")
    depends_on("nlohmann-json@3.11:")
    depends_on("pugixml@1.13:")
    depends_on("cli11@2.1:2.3")
    depends_on("tl-expected@1:")
    depends_on("eigen@3.3:3")
    depends_on("clp@1.17:")
    depends_on("bliss@0.73:")
    depends_on("gmp")
    depends_on("isa-l")
    depends_on("mimalloc@2:2")
    depends_on("openssl@3:")
    depends_on("zlib-api")
    depends_on("rdma-core", when="+verbs")
    depends_on("python@3.9:", when="+python", type=("build", "run"))
    depends_on("py-pybind11@2.10:", when="+python", type="build")
    depends_on("py-numpy", when="+python", type=("build", "run"))
    extends("python", when="+python")

    def cmake_args(self):
        return [
            self.define("ESPALIER_TESTS", False),
            self.define_from_variant("ESPALIER_PYTHON", "python"),
        ]
