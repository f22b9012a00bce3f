"""The one error that is shown to a person: what is wrong, and what to do about it."""


class LabError(Exception):
    """Something the user can put right. The command line prints it without a traceback.

    Args:
        what: one sentence that says what is wrong.
        remedy: one sentence that says what to do.
        code: the exit code of the command; 2 means that it could not run.
    """

    def __init__(self, what: str, remedy: str, code: int = 2) -> None:
        super().__init__(what, remedy, code)
        self.what = what
        self.remedy = remedy
        self.code = code

    def __str__(self) -> str:
        return f"{self.what}\n{self.remedy}"
