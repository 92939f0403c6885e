"""Numbers of others that results are compared with, each with its source.

``article-figures.csv``: (max − min)/mean averaged over steps, as printed on the figures of "Another
View on Context Parallel for LLMs: Balancing Compute" (code: acforvs/theoretical-context-parallel);
``article-model`` is its quadratic cost model (100 steps), ``article-h100`` its FlashAttention-3
times on one H100 (2 steps, non-causal, bf16, 64 query and key-value heads, head dim 128).

``article-simulated.csv``: the same setting simulated for 20,000 steps by an independent
implementation, with standard errors; mean and CV pool all packs of all steps, the rest are means
over steps.

Both hold for 128 devices, 8192 tokens a device, documents capped at 8192 tokens, exponential with
mean 1024 or normal with mean 1024 and standard deviation 256, and a cost of Σ L²/CP.
"""

from importlib.resources import files

import pandas as pd

WORLD_SIZE = 128
TOKENS_PER_GPU = 8192
# The attention layer of the article's H100 times.
LAYER = {"q_heads": 64, "kv_heads": 64, "head_dim": 128, "causal": False}
DISTRIBUTIONS = ("exponential", "normal")
SIMULATED = "article-simulated"


def published_values() -> pd.DataFrame:
    """All published values, tidy.

    Columns: distribution, cp_size, reference, steps, metric, value, standard_error (NaN where the
    source gives none).
    """
    here = files(__name__)
    with (here / "article-figures.csv").open() as file:
        figures = pd.read_csv(file).rename(columns={"imbalance": "value"})
    figures = figures.assign(metric="imbalance", standard_error=float("nan"))
    with (here / "article-simulated.csv").open() as file:
        simulated = pd.read_csv(file)
    parts = [figures]
    for metric in ("mean", "cv", "imbalance", "max_over_mean", "max_over_min"):
        column = "mean_cost_per_token" if metric == "mean" else metric
        scale = TOKENS_PER_GPU if metric == "mean" else 1
        parts.append(
            simulated[["distribution", "cp_size"]].assign(
                reference=SIMULATED,
                steps=20_000,
                metric=metric,
                value=simulated[column] * scale,
                standard_error=simulated[f"{column}_se"] * scale,
            )
        )
    return pd.concat(parts, ignore_index=True)
