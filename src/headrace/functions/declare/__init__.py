"""The declaration of functions: names, signatures, descriptions, examples."""
