"""The exception for what a user can fix."""


class RegardError(ValueError):
    """A mistake in a file, an option, an argument or a request, described in one sentence that says what to do.

    The command line prints the sentence without a traceback, the service answers with it. Any other exception is a bug.
    """
