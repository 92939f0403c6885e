rule simulate_costs:
    name:
        "simulate_shard" if plan.sharded else "simulate_costs"
    input:
        f"{RESULTS}/packs/{{lengths}}/{{packing}}/cp{{cp}}{{part}}.parquet",
    output:
        shard_file(
            f"{RESULTS}/costs/{{lengths}}/{{packing}}/{{attention}}/{{cost}}/cp{{cp}}{{part}}.parquet"
        ),
    log:
        "logs/simulate_costs/{lengths}/{packing}/{attention}/{cost}/cp{cp}{part}.log",
    wildcard_constraints:
        cost="|".join(map(re.escape, plan.counted_costs)) or "(?!)",
    cache: True
    conda:
        CPU_ENVIRONMENT
    params:
        args=lambda wildcards: plan.simulate_arguments(
            wildcards.attention, wildcards.cost
        ),
        code=code_digest("simulate"),
    shell:
        "cpbalance --log {log} simulate --packs {input} {params.args} --output {output}"


# Costs that follow from a measurement. Not for the cache, which knows how a file was made and not
# what was measured.
rule simulate_calibrated_costs:
    name:
        "simulate_calibrated_shard" if plan.sharded else "simulate_calibrated_costs"
    input:
        lambda wildcards: plan.cost_inputs(wildcards.attention, wildcards.cost),
        packs=f"{RESULTS}/packs/{{lengths}}/{{packing}}/cp{{cp}}{{part}}.parquet",
    output:
        shard_file(
            f"{RESULTS}/costs/{{lengths}}/{{packing}}/{{attention}}/{{cost}}/cp{{cp}}{{part}}.parquet"
        ),
    log:
        "logs/simulate_costs/{lengths}/{packing}/{attention}/{cost}/cp{cp}{part}.log",
    wildcard_constraints:
        cost="|".join(map(re.escape, plan.calibrated_costs)) or "(?!)",
    conda:
        CPU_ENVIRONMENT
    params:
        args=lambda wildcards: plan.simulate_arguments(
            wildcards.attention, wildcards.cost
        ),
        code=code_digest("simulate"),
    shell:
        "cpbalance --log {log} simulate --packs {input.packs} {params.args} --output {output}"


rule costs:
    """Simulated cost of every pack."""
    input:
        plan.cost_files(),
