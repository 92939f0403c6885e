# Timings from an artifact, on packs made here: measured on a cluster, drawn on a laptop.
ruleorder: import_timings > time_kernels


rule check_timings:
    """A checked copy of the artifact that the timings come from."""
    input:
        local_or_storage(plan.config.timings_from),
    output:
        f"{RESULTS}/timings.crate.zip",
    log:
        "logs/check_timings.log",
    conda:
        CPU_ENVIRONMENT
    params:
        code=code_digest("artifact"),
    shell:
        "cpbalance --log {log} artifact verify {input} --copy {output}"


rule import_timings:
    """Timings out of the artifact, if they were taken on the packs of this experiment."""
    input:
        artifact=rules.check_timings.output,
        packs=lambda wildcards: plan.timing_inputs(wildcards.kernel, wildcards.lengths),
    output:
        f"{RESULTS}/timings/{{kernel}}/{{attention}}/{{lengths}}.parquet",
    log:
        "logs/import_timings/{kernel}/{attention}/{lengths}.log",
    conda:
        CPU_ENVIRONMENT
    params:
        code=code_digest("artifact"),
    shell:
        "cpbalance --log {log} artifact timings {input.artifact} --packs {input.packs}"
        " --member timings/{wildcards.kernel}/{wildcards.attention}/{wildcards.lengths}.parquet"
        " --output {output}"
