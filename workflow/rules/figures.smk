rule render_figures:
    input:
        figure_tables,
    output:
        [
            report(
                f"{RESULTS}/figures/{{figure}}.{ending}",
                caption="../report/figure.rst",
                category=lambda wildcards: FIGURE_STAGES[wildcards.figure],
                labels={"figure": "{figure}", "PNG": shown, **REPORT_LABELS},
            )
            for ending, shown in (("png", "yes"), ("pdf", "no"))
        ],
        f"{RESULTS}/figures/{{figure}}.csv",
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
