rule predict_theory:
    """Packs of one source of lengths, predicted without simulating."""
    input:
        plan.theory_inputs(),
    output:
        table=f"{RESULTS}/theory/{{lengths}}.parquet",
        density=f"{RESULTS}/theory/density/{{lengths}}.parquet",
    log:
        "logs/predict_theory/{lengths}.log",
    # Not where costs follow from a measurement: the cache does not know what was measured.
    cache: not plan.theory_inputs()
    conda:
        CPU_ENVIRONMENT
    params:
        args=lambda wildcards: plan.theory_arguments(wildcards.lengths),
        code=code_digest("theory"),
    shell:
        "cpbalance --log {log} theory {params.args}"
        " --output {output.table} --density {output.density}"


rule compare_families:
    """Exponential against normal lengths: formulas and their Monte-Carlo check."""
    output:
        table=plan.family_files()[0],
        csv=plan.family_files()[1],
    log:
        "logs/compare_families.log",
    conda:
        CPU_ENVIRONMENT
    params:
        args=plan.families_arguments(),
        code=code_digest("families"),
    shell:
        "cpbalance --log {log} families {params.args} --output {output.table}"


rule theory:
    """Predictions for all lengths, and the comparison of families."""
    input:
        plan.theory_files(),
        plan.family_files(),
