"""``python -m opgrow`` is the command ``opgrow``."""

from opgrow.cli import main

if __name__ == "__main__":
    main()
