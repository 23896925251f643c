"""Numbers by which kernels are selected and work is cut, as measured on one processor.

How: on two cores of a Xeon with AVX-512, NumPy 2.4 and OpenBLAS 0.3.31 (SkylakeX kernels); sizes of tiles and blocks by
timing the kernel alone, limits between kernels by timing models with one value and another, interleaved. No systematic
search was made. They decide about speed alone: results are right with any of them, which tests prove with much smaller
ones. On another processor `compile_model(..., tune=True)` times kernels instead of trusting them.
"""

from __future__ import annotations

# -- tiles and threads -------------------------------------------------------------------------------------------------

TILE = 1 << 15
"""Elements of a tile: 128 KiB of f32, a few of which stay in the second-level cache. A ufunc call costs 0.5 µs."""

SHARED = 8 * TILE
"""Elements of a tile where threads share a step: they also share the interpreter's lock, which costs 6 µs a call."""

ELEMENTS, PRODUCTS, TAPS = 1 << 18, 1 << 23, 1 << 21
"""What a step must have to do before threads share it: elements to pass over, multiplications in a matmul, or in a sum
over windows. Below that, handing the interpreter's lock over takes longer than the work."""

FEW_ELEMENTS = 1 << 14
"""Elements of a result below which copies, poolings, resamplings and group norms are left to one thread."""

CHECKED = 1 << 20
"""Bytes that a step must touch for the time limit to be checked before it; smaller steps take no time."""

# -- matmul ------------------------------------------------------------------------------------------------------------

WORK = 1_000_000
"""Multiplications up to which OpenBLAS takes operands where they lie; beyond, it copies them first. Its own limit."""

LANES = 16
"""Columns that an AVX-512 register holds. Other numbers of columns are slower by half."""

HEIGHTS = (32, 16, 8, 4)
"""Rows of a block, the best first."""

WIDTHS = (64, 128, 96, 80, 112, 48, 32)
"""Columns of a panel, the best first, where the whole matrix is too wide for one."""

WHOLE = 256
"""Columns up to which a matrix is one panel."""

RESIDENT = 1 << 18
"""Elements of a matrix that stays in the second-level cache while every row is multiplied by it."""

SMALL_M = range(2, 161)
"""Numbers of rows for which weights are streamed, where BLAS reads them in place …"""

SMALL_M_COPIED = range(32, 161)
"""… and where it copies them."""

WAITING = 1 << 16
"""Elements of a transposed result that are held before they are stored, where weights are streamed."""

BLOCK = 4 * TILE
"""Elements of a result that are made before the epilogue runs over them; as many as a tile has where that is more."""

PACK_ROWS, PACK_COLUMNS = 448, 64
"""The block of the last two axes that is packed at once: a transposed matrix as a whole takes ten times longer."""

# -- convolutions ------------------------------------------------------------------------------------------------------

CONV_TILE = 98304
"""Elements of an im2col tile that stays in the cache …"""

POSITIONS = 256
"""… and the fewest positions that a tile should have: BLAS packs the weights anew for each."""

CONV3D_TILE = 1 << 17
"""Elements of an im2col tile of three spatial axes."""

CONV3D_WORK = 1 << 18
"""Multiplications below which a convolution of three spatial axes is left to one thread."""

FEW_CHANNELS = 192
"""Channels up to which it pays to repeat depthwise weights along a row."""

PANEL = 400_000
"""Elements of Winograd's transformed tiles that are worked on at once …"""

TILES = 48
"""… and the fewest tiles that a panel should have: BLAS packs the weights anew for each."""

TRANSFORMED = 1 << 13
"""Filters that Winograd's algorithm transforms at once."""

WINOGRAD_CHANNELS, WINOGRAD_MAP = 32, 12
"""The fewest channels, and the smallest map, for which Winograd's algorithm pays."""

# -- resampling --------------------------------------------------------------------------------------------------------

BAND = 32
"""Rows of a resampled axis made at once: with more of them fewer columns of the matrix could be left out."""

# -- what kernels leave to the operations ------------------------------------------------------------------------------

LARGEST_MATRIX = 1 << 22
"""Elements of a matrix for a resampling, beyond which it is not worth its memory."""

LONGEST_SEQUENCE = 1 << 10
"""Steps of a recurrent network, beyond which the table of calls would be too long."""

LONGEST_WINDOW = 1 << 10
"""Elements of a pooling's window along an axis: the kernel takes each for itself."""
