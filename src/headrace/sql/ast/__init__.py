"""The syntax tree: one frozen dataclass for each statement, clause and expression of the language.

The tree says what was written, not what it means: names are not looked up and expressions have no
types. Two trees are equal when they say the same, wherever in a text they stood: `position` takes
no part in comparisons. Each class prints itself (`sql`), and a statement says what it does to the
server: a new one is a class here, a row of the parser's table, and its handler.
"""

from headrace.sql.ast.base import *  # noqa: F403
from headrace.sql.ast.expressions import *  # noqa: F403
from headrace.sql.ast.queries import *  # noqa: F403
from headrace.sql.ast.statements import *  # noqa: F403
