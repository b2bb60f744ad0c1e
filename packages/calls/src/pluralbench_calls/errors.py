"""Why calls could not be made. All are the user's to mend, and none loses a recorded answer."""

from pluralbench_runs import UserError


class CallsError(UserError):
    """Root of this package's errors. `resumable`: the same command, run again, goes on from what is recorded."""

    resumable = True


class ConnectionFailed(CallsError):
    """The endpoint does not answer, or answers with errors until the retries are spent."""


class AccessDenied(CallsError):
    """The endpoint does not accept the key, or the key is missing."""


class ModelNotServed(CallsError):
    """The endpoint does not know the model or an option of the request."""


class BatchRejected(ModelNotServed):
    """The endpoint does not take a batch, so there is none."""


class RequestsRejected(CallsError):
    """The endpoint rejects each of the first requests of a run, for something that they have in common."""


class MaxCostReached(CallsError):
    """The next call could cost more than what is left under the spending ceiling."""


class MissingAnswers(CallsError):
    """A replay needs answers that the ledger does not hold."""

    resumable = False


class LedgerError(CallsError):
    """A ledger that cannot be read, or that is of another format version."""


class BatchFileError(CallsError):
    """A file of calls that cannot be written, or a file of results that cannot be read or does not belong here."""

    resumable = False


class CallsPending(CallsError):
    """The calls that are still needed are written to files. Nothing is wrong: the same command goes on with results.

    The exit status is EX_TEMPFAIL of sysexits.h, so that a script tells it from a mistake and from work that is done.
    """

    resumable = False
    exit_status = 75


class Interrupted(CallsError):
    """Stopped by Ctrl-C."""

    exit_status = 130


class CannedReplyMissing(UserError):
    """A call to a sample's own texts that nobody wrote an answer for. Asking again would not help."""
