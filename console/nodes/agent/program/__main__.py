"""The entry of the packed program."""

import sys
from importlib import import_module

sys.exit(import_module("labguard.main").main(sys.argv[1:]))
