rule render_figures:
    input:
        lambda wildcards: [
            f"{RESULTS}/tables/{table}.parquet"
            for table in FIGURE_TABLES[wildcards.figure]
        ],
    output:
        multiext(f"{RESULTS}/figures/{{figure}}", ".pdf", ".png", ".csv"),
    log:
        "logs/render_figures/{figure}.log",
    wildcard_constraints:
        figure="|".join(FIGURE_TABLES),
    conda:
        CPU_ENVIRONMENT
    params:
        code=lambda wildcards: code_digest(
            "plot", f"cpbalance.figures.{wildcards.figure}"
        ),
    shell:
        "cpbalance --log {log} plot {wildcards.figure} --tables {input} --output {output}"


rule figures:
    """All figures, as PDF and PNG, each with the CSV it was drawn from."""
    input:
        plan.figure_files(),
