"""Errors of calls. The user can fix all of them, and none loses a recorded answer."""

from pluralbench_runs import UserError


class CallsError(UserError):
    """Base class of this package's errors.

    Attributes:
        resumable: Whether rerunning the same command resumes from the recorded answers.
    """

    resumable = True


class ConnectionFailed(CallsError):
    """The endpoint does not answer, or answers with errors until the retries are used up."""


class AccessDenied(CallsError):
    """The endpoint does not accept the key, or the key is missing."""


class ModelNotServed(CallsError):
    """The endpoint does not have the model, or does not support an option of the request."""


class BatchRejected(ModelNotServed):
    """The endpoint rejected a batch, so none was created."""


class RequestsRejected(CallsError):
    """The endpoint rejects all of the first requests of a run, so they share a problem."""


class UnreadableReplies(CallsError):
    """None of the first replies can be parsed, so the others would not be readable either."""

    resumable = False


class MaxCostReached(CallsError):
    """The next call could exceed the spending ceiling."""


class MissingAnswers(CallsError):
    """A replay needs answers that are not in the ledger."""

    resumable = False


class LedgerError(CallsError):
    """A ledger cannot be read, or has another format version."""


class BatchFileError(CallsError):
    """A file of calls cannot be written, or a file of results cannot be read or belongs to other calls."""

    resumable = False


class CallsPending(CallsError):
    """The missing calls were written to files, and the same command continues with their results.

    This is not a failure. The exit status is EX_TEMPFAIL of sysexits.h, so that a script can recognize it.
    """

    resumable = False
    exit_status = 75


class Interrupted(CallsError):
    """The user pressed Ctrl-C."""

    exit_status = 130


class CannedReplyMissing(UserError):
    """A call has no answer among the sample's hand-written ones. Retrying does not help."""
