"""What the packaging tests share: the checkout and the mapping declared in pyproject.toml."""

import tomllib
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def root(pytestconfig: pytest.Config) -> Path:
    """Return the checkout's top folder."""
    return pytestconfig.rootpath


@pytest.fixture(scope="session")
def setuptools_table(root: Path) -> dict[str, Any]:
    """Return what pyproject.toml tells setuptools."""
    return tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]


@pytest.fixture(scope="session")
def folders(setuptools_table: dict[str, Any]) -> dict[str, str]:
    """Return the folder of each mapped package."""
    return setuptools_table["package-dir"]
