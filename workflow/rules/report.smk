report: "../report/workflow.rst"


rule render_pages:
    """Tables as pages that can be searched, for the report."""
    input:
        expand(f"{RESULTS}/tables/{{table}}.parquet", table=plan.pages),
    output:
        [
            report(
                f"{RESULTS}/pages/{table}.html",
                caption="../report/table.rst",
                category="Tables",
                labels={"table": table, **REPORT_LABELS},
            )
            for table in plan.pages
        ],
    log:
        "logs/render_pages.log",
    conda:
        CPU_ENVIRONMENT
    params:
        code=code_digest("page"),
        folder=subpath(output[0], parent=True),
    shell:
        "cpbalance --log {log} page {input} --output-dir {params.folder}"
