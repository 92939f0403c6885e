"""The one exception that a user is meant to read."""


class InputError(ValueError):
    """Bad input: one line that names what was given, what is valid and what to do.

    The command line prints it without a traceback and exits with status 2.
    """
