"""Human ratings of both answers of a pair (paper, section 3.2 and table 1): the plan, the sheets, what came of them."""
