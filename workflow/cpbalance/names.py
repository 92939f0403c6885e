"""Names of what can be chosen, without importing what they name."""

COST_NAMES = ("quadratic", "causal_pairs", "full_pairs", "flops", "h100-fa3")
KERNEL_NAMES = ("fa3", "fa4", "fa2", "torch_varlen", "torch_cpu")
# Before a kernel's name: the cost that its calibration gives.
CALIBRATED = "calibrated:"
PACKING_NAMES = ("concat_split",)
TABLE_NAMES = (
    "metrics",
    "comparison",
    "slopes",
    "rank_costs",
    "length_curves",
    "calibration",
    "calibration_fit",
)
# Figure -> the tables that it is drawn from.
FIGURE_TABLES = {
    "imbalance": ("metrics",),
    "rank_costs": ("rank_costs",),
    "cost_histograms": ("rank_costs",),
    "variance": ("metrics", "slopes"),
    "stragglers": ("metrics",),
    "length_distributions": ("length_curves",),
    "calibration_fit": ("calibration_fit",),
    "calibration_imbalance": ("calibration",),
}
# Drawn only where a kernel is timed and calibrated.
CALIBRATION_FIGURES = ("calibration_fit", "calibration_imbalance")
