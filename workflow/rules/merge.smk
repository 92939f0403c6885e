# merge_packs and merge_costs, only where the config asks for shards: without them, the stages
# write the whole files themselves.
for kind, pattern in plan.merged().items():

    rule:
        name:
            f"merge_{kind}"
        input:
            lambda wildcards, kind=kind: plan.shard_files(kind, wildcards.stem),
        output:
            f"{RESULTS}/{{stem}}.parquet",
        log:
            "logs/merge/{stem}.log",
        wildcard_constraints:
            stem=pattern,
        conda:
            CPU_ENVIRONMENT
        params:
            args=f"--schema {kind}",
            code=code_digest("merge"),
        shell:
            "cpbalance --log {log} merge {params.args} --shards {input} --output {output}"
