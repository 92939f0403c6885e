"""cpbalance: how context parallelism balances FlashAttention work across data-parallel ranks.

The library knows nothing of Snakemake: functions take arrays and models and return arrays and
tables; files are touched in :mod:`cpbalance.tables`, :mod:`cpbalance.artifact` and
:mod:`cpbalance.cli` only.
"""

__version__ = "0.1.0"
