"""The custom operators' C kernels, for several generations of processors; pyproject.toml has everything else."""

from pathlib import Path

from setuptools import Extension, setup

FLAGS = "-std=gnu11 -O3 -Wno-psabi -fno-math-errno -fno-trapping-math -ffinite-math-only -fno-signed-zeros"
BUILDS = {"avx512": ["-march=x86-64-v4"], "avx2": ["-march=x86-64-v3"], "plain": []}
FOLDER = Path("kernels")
CALLED = {"json.c", "python.c", "units.c"}
"""What Python calls. It is a separate library, because only this needs Python's headers."""


def extension(name: str, sources: list[Path], build: str) -> Extension:
    """One that an install without a C compiler goes without."""
    return Extension(
        f"heedful.kernels.{name}",
        sorted(map(str, sources)),
        depends=sorted(map(str, FOLDER.glob("*.h"))),
        extra_compile_args=[*FLAGS.split(), *BUILDS[build]],
        define_macros=[("BUILD", build)],
        optional=True,
    )


called = [FOLDER / name for name in CALLED]
operators = [file for file in FOLDER.glob("*.c") if file.name not in CALLED]
setup(
    ext_modules=[
        *[extension(build, operators, build) for build in BUILDS],
        *[extension(f"python_{build}", called, build) for build in BUILDS],
    ]
)
