"""The models, a file each."""
