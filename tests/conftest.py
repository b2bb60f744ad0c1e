"""What holds for every test: a property is tried without a deadline, and one that fails says how to see it again."""

import os

from hypothesis import settings

# How long an example takes says how busy the machine is. In CI the same examples are drawn in every run.
settings.register_profile("pluralbench", deadline=None, print_blob=True, derandomize="CI" in os.environ)
settings.load_profile("pluralbench")
