"""``python -m placeopt`` is the command line."""

from placeopt.cli import main

if __name__ == "__main__":
    main()
