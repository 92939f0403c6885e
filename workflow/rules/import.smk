# Figures from an artifact: its tables take the place of all that computes them.


rule check_artifact:
    """A checked copy of the artifact; nothing else is touched where it fails."""
    input:
        local_or_storage(plan.config.artifact),
    output:
        f"{RESULTS}/imported.crate.zip",
    log:
        "logs/check_artifact.log",
    conda:
        CPU_ENVIRONMENT
    params:
        args=check_arguments(plan),
        code=code_digest("artifact"),
    shell:
        "cpbalance --log {log} artifact verify {input} {params.args} --copy {output}"


rule import_tables:
    """Tables out of the artifact, as the run that made it left them."""
    input:
        rules.check_artifact.output,
    output:
        plan.table_files(),
    log:
        "logs/import_tables.log",
    conda:
        CPU_ENVIRONMENT
    params:
        args=import_arguments(plan),
        code=code_digest("artifact"),
        root=subpath(input[0], parent=True),
    shell:
        "cpbalance --log {log} artifact extract {input} --force --to {params.root} {params.args}"
