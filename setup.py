"""The C kernels of the custom operators, for several generations of processors; pyproject.toml has everything else.

HEEDFUL_KERNELS=0 installs without them: no compiler is needed, and encoding takes up to twice the time.
"""

import os
import platform
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError, CompileError

FLAGS = (
    "-std=gnu11 -O3 -Wno-psabi -fvisibility=hidden "
    "-fno-math-errno -fno-trapping-math -ffinite-math-only -fno-signed-zeros"
)
BUILDS = {"avx512": ["-march=x86-64-v4"], "avx2": ["-march=x86-64-v3"], "plain": []}
FOLDER = Path("kernels")
REMEDY = (
    "heedful's C kernels could not be built, for the reason above. They need GCC 12 or later, or what CC names. "
    "HEEDFUL_KERNELS=0 installs without them; encoding then takes up to twice the time"
)


class Build(build_ext):
    """Its errors say what to do."""

    def run(self) -> None:
        try:
            super().run()
        except (BaseError, CCompilerError) as error:
            raise CompileError(f"{error}\n{REMEDY}") from error


def extension(build: str) -> Extension:
    return Extension(
        f"heedful.kernels.{build}",
        sorted(map(str, FOLDER.glob("*.c"))),
        depends=sorted(map(str, FOLDER.glob("*.h"))),
        extra_compile_args=[*FLAGS.split(), *BUILDS[build]],
    )


def builds() -> list[str]:
    """The names of what is built here; only "plain" on a processor of another family."""
    if os.environ.get("HEEDFUL_KERNELS") == "0":
        return []
    return list(BUILDS) if platform.machine() in ("x86_64", "AMD64") else ["plain"]


setup(cmdclass={"build_ext": Build}, ext_modules=[extension(build) for build in builds()])
