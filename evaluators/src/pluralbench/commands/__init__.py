"""The command `pluralbench`, one module per verb."""
