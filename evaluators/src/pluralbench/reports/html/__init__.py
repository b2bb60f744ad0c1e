"""Reports as pages of HTML that open without a server: parts of a page, and the page of some runs."""
