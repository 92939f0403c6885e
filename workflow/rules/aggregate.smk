TABLES = ("metrics", "comparison", "slopes", "rank_costs", "length_curves")


rule aggregate_statistics:
    input:
        costs=plan.cost_files(),
        lengths=plan.lengths_files(),
    output:
        expand(f"{RESULTS}/tables/{{table}}.{{format}}", table=TABLES, format=("parquet", "csv")),
        headline=f"{RESULTS}/tables/headline.txt",
    params:
        args=plan.aggregate_arguments(),
        code=code_digest("aggregate"),
        folder=subpath(output.headline, parent=True),
    log:
        "logs/aggregate_statistics.log",
    shell:
        "cpbalance --log {log} aggregate --costs {input.costs} --lengths {input.lengths}"
        " {params.args} --output-dir {params.folder}"


rule tables:
    """Tidy tables: metrics with intervals, comparison with published values, slopes."""
    input:
        rules.aggregate_statistics.output,
