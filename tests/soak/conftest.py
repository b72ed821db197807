import sys
from pathlib import Path

# The scene and the server's process are those of the end-to-end tests.
sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
