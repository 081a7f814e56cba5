"""Everything that touches a node. Bytes come in here and leave as safe text, samples and verified streams."""
