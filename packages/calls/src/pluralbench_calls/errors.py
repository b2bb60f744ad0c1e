"""Errors of calls. The user can fix all of them, and none loses a recorded answer."""

from pluralbench_runs import UserError


class CallsError(UserError):
    """Base class of this package's errors: the endpoint, its key, its model or the spending limit stops a run.

    `resumable`: rerunning the same command resumes from the recorded answers.
    """

    resumable = True


class PermanentError(CallsError):
    """Replies, a replay or files of calls need a change before the same command can succeed."""

    resumable = False


class RequestFailed(CallsError):
    """A request failed in all tries, and others may succeed."""


class BatchRejected(CallsError):
    """The endpoint rejected a batch, so none was created."""


class LedgerError(CallsError):
    """A ledger cannot be read, or has another format version."""


class CallsPending(CallsError):
    """The missing calls were written to files, and the same command continues with their results.

    This is not a failure. The exit status is EX_TEMPFAIL of sysexits.h, so that a script can recognize it.
    """

    resumable = False
    exit_status = 75


class Interrupted(CallsError):
    """The user pressed Ctrl-C."""

    exit_status = 130
