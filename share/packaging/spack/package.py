# Copyright the authors of Alpa for Slurm.
# SPDX-License-Identifier: Apache-2.0
"""A recipe for Spack. Into a repository of packages of one's own, and installed from a checkout of the sources:

    mkdir -p REPOSITORY/packages/alpa-slurm && cp share/packaging/spack/package.py REPOSITORY/packages/alpa-slurm/
    spack repo add REPOSITORY
    spack dev-build alpa-slurm@0.1.0

It has been compiled (python -m py_compile) and gone through for names of packages and variants, but not run: see
share/packaging/README.md.
"""

from spack.package import *


class AlpaSlurm(CMakePackage, CudaPackage):
    """Trains large models on a Slurm cluster: profiles the machines, finds how to split the model over them and runs
    exactly that plan, over MPI on CPUs and NCCL on GPUs."""

    maintainers = []
    license("Apache-2.0", checked_by="the authors")

    # Sources are a checkout (spack dev-build, or `spack develop`).
    version("0.1.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("mpi")
    depends_on("hdf5@1.10.8: +mpi+hl")
    depends_on("cbc")
    depends_on("cli11@2.1:", type="build")
    depends_on("fmt@9:")
    depends_on("spdlog@1.10:")
    depends_on("tomlplusplus@3.3:", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("onednn@2.6:2")
    depends_on("jemalloc")
    depends_on("xxhash")
    depends_on("zlib-api")
    depends_on("libpng")
    depends_on("libjpeg-turbo@2.1:")
    depends_on("pcre2@10.40: +jit")
    depends_on("utf8proc")
    depends_on("sentencepiece")
    depends_on("googletest@1.12: +gmock", type="test")

    with when("+cuda"):
        depends_on("cuda@12:")
        depends_on("nccl")

    conflicts("^openmpi", msg="MPICH, or an MPI that is derived from it")
    conflicts("%gcc@:11", msg="C++20 as of GCC 12")
    conflicts("platform=darwin", msg="/proc, and Slurm")

    generator("ninja")

    def cmake_args(self):
        arguments = [
            self.define("CMAKE_BUILD_TYPE", "Release"),
            self.define("CMAKE_UNITY_BUILD", True),
            self.define("CMAKE_DISABLE_PRECOMPILE_HEADERS", True),
            self.define("BUILD_TESTING", self.run_tests),
            self.define("ALPA_WITH_CUDA", "ON" if self.spec.satisfies("+cuda") else "OFF"),
        ]
        if self.spec.satisfies("+cuda") and not self.spec.satisfies("cuda_arch=none"):
            arguments.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return arguments

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def plan_from_prefix(self):
        share = join_path(self.prefix, "share", "alpa", "configs")
        plan = Executable(self.prefix.bin.join("alpa-plan"))
        plan(
            join_path(share, "models", "gpt-demo.toml"),
            "--cluster",
            join_path(share, "clusters", "local-2.toml"),
            "--effort",
            "quick",
            "--out",
            "plan.h5",
        )
