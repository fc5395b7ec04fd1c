"""`python -m heedful`: the command line."""

from heedful.cli.main import main

if __name__ == "__main__":
    main()
