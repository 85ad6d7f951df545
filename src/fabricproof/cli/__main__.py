"""Allow ``python -m fabricproof.cli``."""

from fabricproof.cli.main import main

main()
