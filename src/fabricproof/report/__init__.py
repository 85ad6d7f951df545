"""Renderers: one plain result in, text or data for one kind of reader out."""
