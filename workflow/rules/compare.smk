# Two artifacts side by side; nothing of this experiment is needed.
rule compare_artifacts:
    """What differs between two artifacts: settings, and statistics with their ratio."""
    input:
        [local_or_storage(artifact) for artifact in plan.config.compare],
    output:
        multiext(f"{RESULTS}/compare/artifact_metrics", ".parquet", ".csv"),
        multiext(f"{RESULTS}/compare/artifact_settings", ".parquet", ".csv"),
        text=f"{RESULTS}/compare/differences.txt",
    log:
        "logs/compare_artifacts.log",
    conda:
        CPU_ENVIRONMENT
    params:
        code=code_digest("artifact", "cpbalance.artifact.compare"),
        folder=subpath(output[0], parent=True),
    shell:
        "cpbalance --log {log} artifact compare {input} --output-dir {params.folder} > {output.text}"


rule compare:
    """Tables and a figure of what differs between two artifacts: --config compare=[A,B]."""
    input:
        rules.compare_artifacts.output,
        multiext(f"{RESULTS}/compare/figures/artifact_metrics", ".pdf", ".png", ".csv"),


use rule render_figures as render_comparison with:
    input:
        f"{RESULTS}/compare/artifact_metrics.parquet",
    output:
        multiext(f"{RESULTS}/compare/figures/{{figure}}", ".pdf", ".png", ".csv"),
    log:
        "logs/render_comparison/{figure}.log",
