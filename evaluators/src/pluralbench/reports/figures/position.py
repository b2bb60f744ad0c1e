"""How often each judge prefers the answer that it sees first (CHEEMS, appendix D.3, figure 15)."""

from collections.abc import Sequence

from pluralbench.reports.figures import Figure, style
from pluralbench.reports.figures.series import RunSeries
from pluralbench.reports.figures.style import dot, heading, point

WIDTH, ROW = 3.6, 0.28  # of the axes and of a judge, in inches


def position(models: Sequence[RunSeries]) -> Figure | None:
    """Draw the position bias of the pairwise judges of a benchmark; None if there are none."""
    shares = [(model, point(model.run.estimate("share_of_first"))) for model in models]
    shown = [(model, share) for model, share in shares if share.value is not None]
    if not shown:
        return None
    judges, points = [model for model, _ in shown], [share for _, share in shown]
    figure, (ax,) = style.grid(WIDTH, ROW * len(shown))
    ax.set(xlim=(0, 100), xlabel="Verdicts for the answer shown first (%)")
    style.lines(ax, [model.label for model in judges])
    style.dashed(ax.axvline, 50)
    for row, (model, share) in enumerate(shown):
        dot(ax, row, share, model)
    return heading(
        figure,
        f"Position bias, {style.which(judges)}",
        f"Valid verdicts only. Dashed: no preference. {style.whiskers(points)}",
    )
