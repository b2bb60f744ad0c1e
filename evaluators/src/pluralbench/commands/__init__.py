"""The command `pluralbench`, a file a verb."""
