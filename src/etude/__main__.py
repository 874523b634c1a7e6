"""`python -m etude`: the command line, also where no script was installed."""

from etude.cli.app import main

if __name__ == "__main__":
    main()
