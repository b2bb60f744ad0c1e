"""Why pairs do not pass their audit."""

from pluralbench_runs import UserError


class AuditFailed(UserError):
    """The pairs break a limit that the recipe sets; like a failed check, it exits with 1."""

    exit_status = 1
