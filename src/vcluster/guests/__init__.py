"""Nodes that are virtual machines, with verbs of their own: image, kernel, start."""
