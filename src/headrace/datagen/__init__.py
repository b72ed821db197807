"""Made-up records for trying things out: `headrace datagen`, which does what ksql-datagen did."""
