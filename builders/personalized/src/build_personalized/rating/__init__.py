"""Human ratings of both answers of a pair (paper, section 3.2 and table 1): planning, sheets and results."""
