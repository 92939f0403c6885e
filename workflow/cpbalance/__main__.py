"""``python -m cpbalance``: the same as the command ``cpbalance``."""

import sys

from cpbalance.cli import main

sys.exit(main())
