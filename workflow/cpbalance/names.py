"""Names of what can be chosen, without importing what they name."""

COST_NAMES = ("quadratic", "causal_pairs", "full_pairs", "flops")
PACKING_NAMES = ("concat_split",)
