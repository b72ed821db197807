"""The syntax tree, whole: what may stand in a statement is in `tree`, statements in `statements`.

The tree says what was written, not what it means: names are not looked up and expressions have no
types. Two trees are equal when they say the same, wherever in a text they stood: `position` takes
no part in comparisons. Each class prints itself (`sql`).
"""

from headrace.sql.statements import *  # noqa: F403
from headrace.sql.tree import *  # noqa: F403
