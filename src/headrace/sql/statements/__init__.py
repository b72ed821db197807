"""Statements: a class for each, with its words, its grammar, its printed form and its effect.

A new one is a class here, declared with the words that it begins with (`begins`), and its handler
in the engine. To import any module of the package is to have all of them in the parser's table.
"""

from headrace.sql.statements.base import *  # noqa: F403
from headrace.sql.statements.connectors import *  # noqa: F403
from headrace.sql.statements.functions import *  # noqa: F403
from headrace.sql.statements.inserts import *  # noqa: F403
from headrace.sql.statements.running_queries import *  # noqa: F403
from headrace.sql.statements.settings import *  # noqa: F403
from headrace.sql.statements.sources import *  # noqa: F403
from headrace.sql.statements.testing import *  # noqa: F403
from headrace.sql.statements.topics import *  # noqa: F403
from headrace.sql.statements.types import *  # noqa: F403
from headrace.sql.statements.variables import *  # noqa: F403
