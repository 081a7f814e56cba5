"""Everything that touches a node."""
