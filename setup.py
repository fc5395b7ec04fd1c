"""The custom operators' C kernels, for several generations of processors; pyproject.toml has everything else."""

from pathlib import Path

from setuptools import Extension, setup

FLAGS = "-std=gnu11 -O3 -Wno-psabi -fno-math-errno -fno-trapping-math -ffinite-math-only -fno-signed-zeros"
BUILDS = {"avx512": ["-march=x86-64-v4"], "avx2": ["-march=x86-64-v3"], "plain": []}
FOLDER = Path("kernels")

setup(
    ext_modules=[
        Extension(
            f"heedful.kernels.{name}",
            sorted(map(str, FOLDER.glob("*.c"))),
            depends=sorted(map(str, FOLDER.glob("*.h"))),
            extra_compile_args=[*FLAGS.split(), *march],
            optional=True,  # an install without a C compiler goes without
        )
        for name, march in BUILDS.items()
    ]
)
