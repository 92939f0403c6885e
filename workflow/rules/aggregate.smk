rule aggregate_statistics:
    """Statistics of all costs, as tidy tables and the headline."""
    input:
        costs=plan.cost_files(),
        lengths=plan.lengths_files(),
        timings=plan.timing_files(),
        fits=plan.calibration_files("parquet"),
        theory=plan.theory_files(),
        densities=plan.theory_files("theory/density"),
    output:
        plan.aggregate_files(),
    log:
        "logs/aggregate_statistics.log",
    conda:
        CPU_ENVIRONMENT
    params:
        args=plan.aggregate_arguments(),
        code=code_digest("aggregate"),
        folder=subpath(output[0], parent=True),
    shell:
        "cpbalance --log {log} aggregate --costs {input.costs} --lengths {input.lengths}"
        " --timings {input.timings} --fits {input.fits}"
        " --theory {input.theory} --densities {input.densities}"
        " {params.args} --output-dir {params.folder}"


rule tables:
    """Tidy tables: metrics with intervals, comparison with published values, slopes, theory."""
    input:
        plan.table_files(),
