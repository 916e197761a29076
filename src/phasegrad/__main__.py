"""``python -m phasegrad``."""

from phasegrad.cli import main

if __name__ == "__main__":
    main()
