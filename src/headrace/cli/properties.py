"""Properties files, as Java and therefore ksqlDB write them."""

from __future__ import annotations

from pathlib import Path

import javaproperties

from headrace.model.errors import HeadraceError


def read_properties(path: Path) -> dict[str, str]:
    try:
        return javaproperties.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise HeadraceError(f"Failed to read file: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise HeadraceError(f"Failed to read file: {path}: it is not UTF-8") from None
    except javaproperties.InvalidUEscapeError as error:
        raise HeadraceError(f"Failed to read file: {path}: {error}") from None
