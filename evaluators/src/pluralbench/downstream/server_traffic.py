"""What a server of rewards has answered: numbers for Prometheus, and a line of its log now and then."""

import time
from collections import Counter
from dataclasses import dataclass, field
from threading import Lock

from pluralbench_runs import log_status, plural

LOG_SECONDS = 60.0  # between two lines
OTHER = "other"
"""Page of requests for pages that do not exist."""


@dataclass
class Traffic:
    """Counts requests by page and status, their seconds from the headers to the reply, and scored conversations.

    `open` is the number of requests that are not answered yet.
    """

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    seconds: float = 0.0
    conversations: int = 0
    open: int = 0
    _lock: Lock = field(default_factory=Lock)
    _last: tuple[float, int, int, int] = field(default_factory=lambda: (time.monotonic(), 0, 0, 0))

    def count(self, page: str, status: int, seconds: float) -> None:
        """Count an answered request, and print a line if the last one is old."""
        with self._lock:
            self.requests[page, status] += 1
            self.seconds += seconds
            if time.monotonic() - self._last[0] >= LOG_SECONDS:
                self._print_line()

    def print_line(self) -> None:
        """Print what was answered since the last line, if anything was."""
        with self._lock:
            self._print_line()

    def _print_line(self) -> None:
        began, requests, failed, conversations = self._last
        now = time.monotonic(), self.requests.total(), self._failed(), self.conversations
        self._last = now
        new = now[1] - requests
        if new:
            seconds = max(now[0] - began, 0.001)
            log_status(
                f"{plural(new, 'request')} in {seconds:,.0f} s ({new / seconds:,.1f}/s), {now[2] - failed:,} of them "
                f"refused or failed; {plural(now[3] - conversations, 'conversation')} scored."
            )

    def _failed(self) -> int:
        return sum(count for (_, status), count in self.requests.items() if status >= 400)

    def prometheus(self) -> str:
        """Format the numbers as Prometheus reads them."""
        with self._lock:
            by_page = [
                f'pluralbench_requests_total{{page="{page}",status="{status}"}} {count}'
                for (page, status), count in sorted(self.requests.items())
            ]
            families = {
                ("requests_total", "counter", "Answered requests."): by_page,
                ("request_seconds", "summary", "Seconds from the headers of a request to its reply."): [
                    f"pluralbench_request_seconds_sum {self.seconds}",
                    f"pluralbench_request_seconds_count {self.requests.total()}",
                ],
                ("conversations_total", "counter", "Scored conversations."): [
                    f"pluralbench_conversations_total {self.conversations}"
                ],
                ("requests_open", "gauge", "Requests that are not answered yet."): [
                    f"pluralbench_requests_open {self.open}"
                ],
            }
        lines = []
        for (name, kind, text), samples in families.items():
            lines += [f"# HELP pluralbench_{name} {text}", f"# TYPE pluralbench_{name} {kind}", *samples]
        return "\n".join(lines) + "\n"
