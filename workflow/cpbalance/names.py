"""Names of what can be chosen, without importing what they name."""

COST_NAMES = ("quadratic", "causal_pairs", "full_pairs", "flops")
PACKING_NAMES = ("concat_split",)
TABLE_NAMES = ("metrics", "comparison", "slopes", "rank_costs", "length_curves")
# Figure -> the tables that it is drawn from.
FIGURE_TABLES = {
    "imbalance": ("metrics",),
    "rank_costs": ("rank_costs",),
    "cost_histograms": ("rank_costs",),
    "variance": ("metrics", "slopes"),
    "stragglers": ("metrics",),
    "length_distributions": ("length_curves",),
}
