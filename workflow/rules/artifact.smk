rule export_artifact:
    """One file that holds the tables, timings and settings of the run."""
    input:
        artifact_files(plan),
    output:
        f"{RESULTS}/{plan.config.experiment}.crate.zip",
    log:
        "logs/export_artifact.log",
    conda:
        CPU_ENVIRONMENT
    params:
        args=export_arguments(plan),
        code=code_digest("artifact"),
        # A commit changes what the artifact says of itself, so it is written again.
        revision=lambda wildcards: revision()[0],
        root=subpath(output[0], parent=True),
    shell:
        "cpbalance --log {log} artifact export --root {params.root} {params.args}"
        " --output {output} {input}"


rule artifact:
    """The artifact of the run: a zip from which every figure can be drawn again."""
    input:
        rules.export_artifact.output,
