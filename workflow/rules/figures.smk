rule render_figures:
    input:
        expand(f"{RESULTS}/tables/{{table}}.parquet", table=TABLES),
    output:
        multiext(f"{RESULTS}/figures/{{figure}}", ".pdf", ".png", ".csv"),
    params:
        code=code_digest("plot"),
    wildcard_constraints:
        figure="|".join(FIGURES),
    log:
        "logs/render_figures/{figure}.log",
    shell:
        "cpbalance --log {log} plot {wildcards.figure} --tables {input} --output {output}"


rule figures:
    """All figures, as PDF and PNG, each with the CSV it was drawn from."""
    input:
        expand(rules.render_figures.output, figure=FIGURES),
