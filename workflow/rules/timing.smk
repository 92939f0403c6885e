rule time_kernels:
    input:
        lambda wildcards: plan.timing_inputs(wildcards.kernel, wildcards.lengths),
    output:
        timing_file(
            f"{RESULTS}/timings/{{kernel}}/{{attention}}/{{lengths}}{{time_part}}.parquet"
        ),
    log:
        "logs/time_kernels/{kernel}/{attention}/{lengths}{time_part}.log",
    # The longest job, so the first.
    priority: 10
    conda:
        TIMING_ENVIRONMENT
    threads: 1
    params:
        args=lambda wildcards: plan.time_arguments(
            wildcards.kernel, wildcards.attention, wildcards.time_part
        ),
        code=code_digest("time"),
    shell:
        "cpbalance --log {log} time --packs {input} {params.args} --output {output}"


rule calibrate_kernels:
    input:
        unpack(
            lambda wildcards: plan.calibration_inputs(
                wildcards.kernel, wildcards.attention
            )
        ),
    output:
        model=f"{RESULTS}/calibration/{{kernel}}/{{attention}}.json",
        fit=f"{RESULTS}/calibration/{{kernel}}/{{attention}}.parquet",
    log:
        "logs/calibrate_kernels/{kernel}/{attention}.log",
    conda:
        CPU_ENVIRONMENT
    params:
        code=code_digest("calibrate"),
    shell:
        "cpbalance --log {log} calibrate --timings {input.timings} --packs {input.packs}"
        " --table {output.fit} --output {output.model}"


rule timings:
    """Measured kernel times, and what was fitted to them."""
    input:
        plan.timing_files(),
        plan.calibration_files("json"),
