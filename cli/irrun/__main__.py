"""`python -m irrun`."""

import sys

from irrun.start import main

sys.exit(main())
