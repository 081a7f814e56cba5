"""The conductor: window, smoke walk, matrix walk, watching, fallback."""
