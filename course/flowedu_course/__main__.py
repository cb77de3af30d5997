"""Entry point of `python -m flowedu_course COMMAND` (see runner.py)."""
import sys

from flowedu_course.runner import main

sys.exit(main())
