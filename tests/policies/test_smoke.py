import pluralbench_policies
import pytest


@pytest.mark.smoke
def test_a_policy_is_described_without_torch() -> None:
    assert issubclass(pluralbench_policies.PolicyError, Exception)
