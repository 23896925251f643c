"""`python -m irrun`."""

import sys

from irrun.main import main

sys.exit(main())
