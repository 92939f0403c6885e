rule render_paper_figures:
    """A figure as PDF in the width of one column or of two."""
    input:
        figure_tables,
    output:
        f"{RESULTS}/paper/{{figure}}-{{width}}.pdf",
    log:
        "logs/render_paper_figures/{figure}-{width}.log",
    wildcard_constraints:
        figure="|".join(FIGURE_TABLES),
        width="column|page",
    conda:
        CPU_ENVIRONMENT
    params:
        code=lambda wildcards: code_digest(
            "plot", f"cpbalance.figures.{wildcards.figure}"
        ),
    shell:
        "cpbalance --log {log} plot {wildcards.figure} --width {wildcards.width}"
        " --tables {input} --output {output}"


rule render_latex:
    """Numbers as macros and tables with booktabs, for a paper to input."""
    input:
        expand(
            f"{RESULTS}/tables/{{table}}.parquet",
            table=("metrics", "slopes", "comparison"),
        ),
    output:
        expand(
            f"{RESULTS}/paper/{{name}}.tex",
            name=("numbers", "imbalance", "exponents", "published"),
        ),
    log:
        "logs/render_latex.log",
    conda:
        CPU_ENVIRONMENT
    params:
        code=code_digest("paper"),
        folder=subpath(output[0], parent=True),
    shell:
        "cpbalance --log {log} paper --tables {input} --output-dir {params.folder}"


rule paper:
    """What a paper includes: figures in both widths, LaTeX tables, macros of all numbers."""
    input:
        rules.render_latex.output,
        expand(
            rules.render_paper_figures.output,
            figure=plan.figures,
            width=("column", "page"),
        ),
