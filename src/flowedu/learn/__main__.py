"""`python -m flowedu.learn COMMAND`: see runner.py."""
import sys

from flowedu.learn.runner import main

sys.exit(main())
