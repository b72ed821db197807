"""User-defined functions: Python files that the server loads, runs and ships to executors."""

from headrace.functions.extensions.annotations import DeclarationError
from headrace.functions.extensions.declaring import collecting, udaf, udf, udtf
from headrace.functions.extensions.loading import LoadProblem, load_extensions

__all__ = [
    "DeclarationError",
    "LoadProblem",
    "collecting",
    "load_extensions",
    "udaf",
    "udf",
    "udtf",
]
