# Only where the config asks for shards: without them, the stages write the whole files themselves.
if plan.merged_stems:

    rule merge_shards:
        input:
            lambda wildcards: plan.shard_files(wildcards.stem),
        output:
            f"{RESULTS}/{{stem}}.parquet",
        log:
            "logs/merge_shards/{stem}.log",
        wildcard_constraints:
            stem=plan.merged_stems,
        conda:
            CPU_ENVIRONMENT
        params:
            schema=lambda wildcards: wildcards.stem.partition("/")[0],
            code=code_digest("merge"),
        shell:
            "cpbalance --log {log} merge --schema {params.schema} --shards {input}"
            " --output {output}"
