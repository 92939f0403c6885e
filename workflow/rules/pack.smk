rule pack_batches:
    name:
        "pack_shard" if plan.sharded else "pack_batches"
    input:
        f"{RESULTS}/lengths/{{lengths}}.parquet",
    output:
        shard_file(f"{RESULTS}/packs/{{lengths}}/{{packing}}/cp{{cp}}{{part}}.parquet"),
    log:
        "logs/pack_batches/{lengths}/{packing}/cp{cp}{part}.log",
    cache: True
    conda:
        CPU_ENVIRONMENT
    params:
        args=lambda wildcards: plan.pack_arguments(
            wildcards.packing, wildcards.cp, wildcards.part
        ),
        code=code_digest("pack"),
    shell:
        "cpbalance --log {log} pack --lengths {input} {params.args} --output {output}"


rule packs:
    """Documents packed into micro-batches, for every CP degree."""
    input:
        plan.pack_files(),
