"""Probes as a node runs them, and the checklist that names them."""
