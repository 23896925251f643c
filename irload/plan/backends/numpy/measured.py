"""Measured thresholds for kernel selection and work division.

Measured on two cores of a Xeon with AVX-512, NumPy 2.4 and OpenBLAS 0.3.31 (SkylakeX kernels): sizes of tiles and
blocks by timing a kernel alone, thresholds between kernels by timing models with alternating values. The search was not
systematic. Thresholds affect speed only. Results are correct for any values; tests verify this with much smaller ones.
On another processor, `compile_model(..., tune=True)` times kernels instead.
"""

from __future__ import annotations

# -- tiles and threads -------------------------------------------------------------------------------------------------

TILE = 1 << 15
"""Elements of a tile: 128 KiB of f32, a few of which fit the L2 cache. A ufunc call costs 0.5 µs."""

SHARED_TILE = 8 * TILE
"""Elements of a tile if threads share a step: they contend for the interpreter lock, which costs 6 µs per call."""

ELEMENTS, PRODUCTS, TAPS = 1 << 18, 1 << 23, 1 << 21
"""Minimum work for threads to share a step: elements, multiplications of a matmul, or of a sum over windows.

Below it, passing the interpreter lock takes longer than the work.
"""

FEW_ELEMENTS = 1 << 14
"""Elements of a result below which copies, poolings, resamplings and group norms use one thread."""

CHECKED = 1 << 20
"""Bytes that a step must access for the time limit to be checked before it; smaller steps take negligible time."""

# -- matmul ------------------------------------------------------------------------------------------------------------

WORK = 1_000_000
"""Maximum multiplications of a product whose operands OpenBLAS reads in place; it packs the operands of larger ones."""

LANES = 16
"""Number of f32 in an AVX-512 register. Column counts that are not a multiple of it are slower by half."""

HEIGHTS = (32, 16, 8, 4)
"""Rows of a block, best first."""

WIDTHS = (64, 128, 96, 80, 112, 48, 32)
"""Columns of a panel, best first, if a matrix is too wide for a single panel."""

SINGLE_PANEL_COLUMNS = 256
"""Maximum columns of a matrix that is a single panel."""

RESIDENT = 1 << 18
"""Maximum elements of a matrix that stays in the L2 cache while every row is multiplied by it."""

STREAMED_ROWS = range(2, 161)
"""Row counts for which weights can be streamed.

If BLAS reads operands in place, weights of more than RESIDENT elements are streamed for these counts.
"""

PACKED_STREAMED_ROWS = range(32, 161)
"""Row counts for which weights are streamed if BLAS packs all operands."""

BUFFERED_ELEMENTS = 1 << 16
"""Elements of a transposed result that are buffered before they are stored, in weight streaming."""

BLOCK = 4 * TILE
"""Elements of a result computed before the epilogue is applied; at least the size of a tile."""

PACK_ROWS, PACK_COLUMNS = 448, 64
"""The block of the last two axes that is packed at once: transposing a whole matrix takes ten times longer."""

# -- convolutions ------------------------------------------------------------------------------------------------------

CONV_TILE = 98304
"""Elements of an im2col tile that stays in the cache. A tile has more if it would have fewer than POSITIONS."""
LARGEST_TILE = 1 << 24
"""Maximum elements of the windows of one output row that are copied at once. More elements take several calls."""

POSITIONS = 256
"""Minimum number of positions of an im2col tile, since BLAS packs the weights again for each tile."""

CONV3D_TILE = 1 << 17
"""Elements of an im2col tile with three spatial axes."""

CONV3D_WORK = 1 << 18
"""Multiplications below which a convolution with three spatial axes uses one thread."""

FEW_CHANNELS = 192
"""Maximum channels for which depthwise kernels are faster with weights that are repeated along a row."""

PANEL = 400_000
"""Elements of Winograd's transformed tiles per panel. A panel has more if it would have fewer than TILES tiles."""

TILES = 48
"""Minimum number of tiles of a panel, since BLAS packs the weights again for each panel."""

TRANSFORMED = 1 << 13
"""Filters that Winograd's algorithm transforms at a time."""

WINOGRAD_CHANNELS, WINOGRAD_MAP = 32, 12
"""Minimum number of channels, and minimum map size, for which Winograd's algorithm is faster."""

# -- softmax -----------------------------------------------------------------------------------------------------------

SOFTMAX_COLUMNS, SOFTMAX_BLOCK = 32, 512
"""Minimum columns for a softmax across columns, instead of a transposed copy, and minimum columns of its blocks.

It takes 0.5 to 1.0 of the time of the copy (Zen 3), with 16 columns 0.4 to 1.3. With blocks of 6 to 32 columns it takes
up to 3.5 of it.
"""

# -- resampling --------------------------------------------------------------------------------------------------------

BAND = 32
"""Rows of a resampled axis computed at once. With more rows, fewer zero columns of the matrix are skipped."""

# -- limits of support -------------------------------------------------------------------------------------------------

LARGEST_MATRIX = 1 << 22
"""Maximum elements of a resampling matrix."""

LONGEST_SEQUENCE = 1 << 10
"""Maximum length of a recurrent sequence: each step of the sequence adds calls to the table."""

LONGEST_WINDOW = 1 << 10
"""Maximum length of a pooling window along an axis: the kernel processes its elements one by one."""
