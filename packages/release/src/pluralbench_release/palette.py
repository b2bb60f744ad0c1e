"""Colors of the series in figures."""

# Blue, ocher, pink, teal, violet, olive, lilac, plum. All stand out by 3:1 from light and dark paper and bands. Within
# that range of lightness a search put them as far apart as possible for readers with and without color blindness.
COLORS = ("#0072b2", "#bc8000", "#e46078", "#2c9ca0", "#9c24fc", "#68702c", "#947ce8", "#9c5478")
