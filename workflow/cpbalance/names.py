"""Names of what can be chosen, without importing what they name."""

COST_NAMES = ("quadratic", "causal_pairs", "full_pairs", "flops", "h100-fa3")
KERNEL_NAMES = ("fa3", "fa4", "fa2", "torch_varlen", "torch_cpu")
# Before a kernel's name: the cost that its calibration gives.
CALIBRATED = "calibrated:"
# How the cost of a measured backward pass ends.
BACKWARD_COST = "_backward"
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
# Tables that come with theory, where packs are cut from a stream.
THEORY_TABLE_NAMES = ("theory", "theory_density", "validation", "neighbours")
# The table of the families stage, which needs no lengths.
FAMILY_TABLE = "exponential_normal"
THEORY_LEVELS = ("iid", "renewal", "moments", "distribution")
# Packing policies that theory describes.
THEORY_PACKING = "concat_split"
# Tables that the report shows as pages to search; the others are samples for figures.
PAGE_TABLES = ("metrics", "comparison", "slopes", "calibration")
THEORY_PAGE_TABLES = ("theory", "validation")
# Figure -> the tables that it is drawn from.
FIGURE_TABLES = {
    "imbalance": ("metrics",),
    "rank_costs": ("rank_costs",),
    "cost_histograms": ("rank_costs",),
    "variance": ("metrics", "slopes"),
    "stragglers": ("metrics",),
    "length_distributions": ("length_curves",),
    "theory_validation": ("metrics", "validation"),
    "theory_density": ("rank_costs", "theory_density"),
    "exponential_normal": ("exponential_normal",),
    "law_bends": ("metrics", "theory", "neighbours"),
    "calibration_fit": ("calibration_fit",),
    "calibration_imbalance": ("calibration",),
    "artifact_metrics": ("artifact_metrics",),
}
# Drawn only where a kernel is timed and calibrated.
CALIBRATION_FIGURES = ("calibration_fit", "calibration_imbalance")
# Drawn only where packs are cut as theory assumes.
THEORY_FIGURES = ("theory_validation", "theory_density", "law_bends")
# Drawn only where two artifacts are compared.
COMPARE_FIGURES = ("artifact_metrics",)
# Figure -> the stage whose results it shows, as a category of the report.
FIGURE_STAGES = {
    "imbalance": "Balance of the ranks",
    "rank_costs": "Simulated costs",
    "cost_histograms": "Simulated costs",
    "variance": "Balance of the ranks",
    "stragglers": "Balance of the ranks",
    "length_distributions": "Document lengths",
    "theory_validation": "Theory",
    "theory_density": "Theory",
    "exponential_normal": "Theory",
    "law_bends": "Theory",
    "calibration_fit": "Measured kernels",
    "calibration_imbalance": "Measured kernels",
}
