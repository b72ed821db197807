"""What every row of a pipeline carries, and how records are decoded."""
