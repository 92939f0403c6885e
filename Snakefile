include: "workflow/Snakefile"


# The default target of an included file does not count.
rule default:
    """What plain `snakemake` makes: the same as all."""
    default_target: True
    input:
        rules.all.input,
