"""`python -m pluralbench`."""

from pluralbench.commands.app import main

main()
