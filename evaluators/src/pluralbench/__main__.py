"""`python -m pluralbench`."""

from pluralbench.commands.app import main

if __name__ == "__main__":
    main()
