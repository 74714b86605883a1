"""The estimators themselves, by families of methods that share parameters."""
