rule sample_lengths:
    output:
        f"{RESULTS}/lengths/{{lengths}}.parquet",
    log:
        "logs/sample_lengths/{lengths}.log",
    cache: True
    conda:
        CPU_ENVIRONMENT
    params:
        args=lambda wildcards: plan.sample_arguments(wildcards.lengths),
        code=code_digest("sample"),
    shell:
        "cpbalance --log {log} sample {params.args} --output {output}"


rule lengths:
    """Document lengths of every step."""
    input:
        plan.lengths_files(),
