"""Packages that only some functions need."""

from __future__ import annotations

import importlib
from types import ModuleType


class MissingPackageError(ImportError):
    """A function needs a Python package that is not installed; the text says how to install it."""


def needed(module: str, what: str) -> ModuleType:
    """Imports `module`, which `what` needs (a noun phrase in the plural).

    Raises MissingPackageError if its package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingPackageError(
            f"{what} need the package {package}, which is not installed: "
            f"`apt install python3-{package}` or `pip install {package}`",
            name=package,
        ) from error
