"""How often each judge prefers the answer that it sees first (CHEEMS, appendix D.3, figure 15)."""

from collections.abc import Sequence

from pluralbench.reports.figures import Figure, style
from pluralbench.reports.figures.series import RunSeries
from pluralbench.reports.figures.style import dot, heading, point

WIDTH, ROW = 3.6, 0.28  # of the axes and of a judge, in inches


def position(models: Sequence[RunSeries]) -> Figure | None:
    """Draw the position bias of the pairwise judges of one benchmark; None if there are none."""
    shares = [(one, point(one.run.estimate("share_of_first", "position"))) for one in models]
    shown = [(one, share) for one, share in shares if share.value is not None]
    if not shown:
        return None
    judges, points = [one for one, _ in shown], [share for _, share in shown]
    figure, (ax,) = style.grid(WIDTH, ROW * len(shown))
    ax.set(xlim=(0, 100), xlabel="Verdicts for the answer shown first (%)")
    style.lines(ax, [one.label for one in judges])
    style.dashed(ax.axvline, 50)
    for row, (one, share) in enumerate(shown):
        dot(ax, row, share, one)
    title = f"{judges[0].run.config.benchmark.title}: position bias, {style.which(judges)}"
    return heading(figure, title, f"Valid verdicts only. Dashed: no preference. {style.whiskers(points)}")
