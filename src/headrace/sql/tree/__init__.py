"""What stands in statements: one frozen dataclass for each expression, query and clause."""

from headrace.sql.tree.base import *  # noqa: F403
from headrace.sql.tree.clauses import *  # noqa: F403
from headrace.sql.tree.expressions import *  # noqa: F403
from headrace.sql.tree.queries import *  # noqa: F403
