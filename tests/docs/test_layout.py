"""CONTRIBUTING's table of packages agrees with import-linter's contracts; docs/layout.md names files that exist."""

import re
import tomllib

from tests.docs.examples import table
from tests.process import ROOT

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
[LAYERS] = [
    [re.split(r" *[|:] *", layer) for layer in one["layers"]]
    for one in CONTRACTS
    if one["type"] == "layers"
]
[FORBIDDEN] = [one for one in CONTRACTS if "torch" in one.get("forbidden_modules", ())]
MODULES = {file.stem for file in (ROOT / "heedful").glob("*.py")}
PACKAGES = [package for layer in LAYERS for package in layer if package not in MODULES]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LAYOUT = (ROOT / "docs/layout.md").read_text(encoding="utf-8")


def test_the_layers_are_the_packages() -> None:
    assert set(PACKAGES) == {
        link.name for link in (ROOT / "heedful").iterdir() if link.is_symlink()
    }


def test_the_table_of_contributing_has_every_package_with_what_it_may_import() -> None:
    rows = {cells[0].strip("`/"): cells[-1] for cells in table(CONTRIBUTING, "Where things are")}
    assert set(rows) == set(PACKAGES)
    for number, layer in enumerate(LAYERS):
        below = {package for lower in LAYERS[number + 1 :] for package in lower}
        for package in set(layer) & set(PACKAGES):
            serves = f"heedful.{package}" in FORBIDDEN["source_modules"]
            forbidden = FORBIDDEN["forbidden_modules"] if serves else []
            allowed = below - {name.removeprefix("heedful.") for name in forbidden}
            assert set(rows[package].split(", ")) - {"none"} == allowed, package


def test_every_file_that_the_two_pages_name_exists() -> None:
    packages = "|".join(PACKAGES)
    for page in (CONTRIBUTING, LAYOUT):
        names = re.findall(rf"(?<![\w/])(?:(?:{packages})/[\w/]+\.py|docs/[\w-]+\.md)", page)
        assert names
        for name in names:
            assert (ROOT / name).exists(), name
