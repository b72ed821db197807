"""Local copies of tables, and pull queries over them."""
