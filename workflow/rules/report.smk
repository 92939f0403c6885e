report: "../report/workflow.rst"


rule render_pages:
    """Tables as pages that can be searched, for the report."""
    input:
        expand(f"{RESULTS}/tables/{{table}}.parquet", table=PAGE_TABLES),
    output:
        [
            report(
                f"{RESULTS}/pages/{table}.html",
                caption="../report/table.rst",
                category="Tables",
                labels={"table": table, **REPORT_LABELS},
            )
            for table in PAGE_TABLES
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
