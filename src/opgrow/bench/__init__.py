"""The experiments of `opgrow bench`: measurements on this machine, and studies of models on datasets."""
