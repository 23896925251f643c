"""Weights verified against a fingerprint: reading returns the contents that were hashed, or raises ReadError."""

from __future__ import annotations

import os
from threading import Lock

import numpy as np

from irload.core.tensor import Array
from irload.read.weights import Weights
from irload.safety.files import open_regular
from irload.safety.fingerprint import BLOCK
from irload.safety.limits import Limits
from irload.safety.opened import WeightsFile
from irload.system.forks import unforked

ALIGNMENT = 64
"""In bytes. A range at a multiple of it is a view of the blocks that are read, or a copy if it takes less than 3/4."""


class SealedWeights(Weights):
    """The weights of a fingerprinted file. Each block that is read must match its hash, else ReadError is raised.

    While the file is open, its descriptor is read; afterwards its path is opened for each read.
    """

    def __init__(self, file: WeightsFile, limits: Limits) -> None:
        super().__init__(file.path, limits)
        self.size = file.seal.size
        self._file = file
        self._reading = Lock()
        """Held during a read, which moves the position of the shared descriptor."""

    def _read(self, offset: int, size: int) -> Array:
        first = offset // BLOCK * BLOCK
        last = min(-(-(offset + size) // BLOCK) * BLOCK, self.size)
        with unforked, self._reading:
            blocks = super()._read(first, last - first)
        if not self._file.seal.holds(first, blocks.data):
            raise self._changed()
        data = blocks[offset - first : offset - first + size]
        is_view = 4 * size >= 3 * blocks.size and (offset - first) % ALIGNMENT == 0
        return data if is_view else np.array(data)

    def _open(self) -> int:
        held = self._file.descriptor
        return os.dup(held) if held is not None else open_regular(self._file.path, "the weights")[0]
