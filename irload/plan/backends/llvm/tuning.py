"""The thresholds and block sizes by which kernels are selected, blocked and scheduled, in one table.

The sizes of caches are fields of `Target`; numbers that depend on them are formulas here. All other numbers are
measured. Each states its unit, and the processor unless it was measured on all of Zen 3, Zen 4 and Sapphire Rapids.
Numbers that define an algorithm or its accuracy are in the module of the algorithm.
"""

from __future__ import annotations

from irload.plan.backends.llvm.target import AMX, AVX2

# Threads

SHARED_CYCLES = 5000
"""Minimum cycles of a kernel that threads share: starting helpers and waiting for them takes about 1 µs."""
TOGETHER_CYCLES = 300_000
"""Minimum cycles of all shared kernels of a table. Below, one thread runs all: waking another takes up to 0.1 ms."""

PATIENT_CYCLES = 1_000_000
"""Cycles for which a thread spins before it sleeps (0.3 to 0.5 ms): several times the gap between inferences.

Waking a sleeping thread costs another thread 1 to 5 µs, and the sleeping thread continues 5 to 50 µs later.
"""

REACH = 2
"""The number of following kernels that are searched for weights to prefetch: a copy may precede their reader."""

# Units of work

ROW_BLOCK = AVX2.l1 // 8
"""The number of f32 per unit of a kernel of rows: half of L1."""
COPIED_BLOCK = AVX2.l1 // 2
"""Bytes per unit of a copy: half of L1."""
REDUCED_BLOCK = AVX2.l1 // 2
"""The number of f32 per unit of a reduction across columns: twice L1, since each is read once."""
LINES_BLOCK = 256
"""Lines per unit of a kernel with a line per lane: few, since lines may be long, but several vectors."""
COLUMN_BLOCK = AVX2.l1 // 8
"""The number of f32 per unit of a softmax or normalization across columns: half of L1, as each is read three times."""
PACKED_ROWS = 128
"""Rows per unit of packing, a multiple of the rows of a chunk and of a transposed square."""
NUMPY_PACKED = 1 << 12
"""Maximum elements of weights that NumPy packs as fast as a kernel."""
LEAST_RELAID = 4096
"""Minimum elements of a result for which a kernel converts it to planar layout; NumPy copies smaller ones as fast."""
MOST_PHASES = 64
"""Maximum phases of a transposed convolution. Each phase is a kernel; with more phases the kernels are too small."""

# Independent operations, which hide the latency of four cycles: two operations are issued per cycle

SPAN_CHAINS = 4
"""Independent accumulators of a reduction along a row."""
COLUMN_VECTORS = 4
"""Vectors of columns per loop of a reduction or a normalization."""
SOFTMAX_VECTORS = 2
"""Vectors of columns per loop of a softmax: its exponential has independent operations, too."""
SCORE_ROWS = 4
"""Rows of scores whose maxima are updated per iteration: the latency of a comparison in cycles."""
LONG_EXPRESSION = 24
"""Minimum cycles of an expression for which loops have two vectors per iteration instead of four."""
SHORT = 8
"""Maximum vectors of a row whose size is compiled in: a loop over a few vectors takes up to twice as long."""
HELD_TAPS = 4
"""Maximum taps of a resampling whose offsets and weights are kept in registers; more taps are a loop."""

# Permuted blocks

PERMUTED_BYTES = 256
"""Maximum bytes of a block that is permuted in registers: four vectors of AVX-512, eight of AVX2."""
PERMUTED_RUN = 16
"""Minimum bytes of the runs of a block: shorter stores cost as much as copies of single elements."""
COPIED_RUN = 32
"""Minimum bytes of runs that are contiguous in both tensors for which a copy of the runs is as fast."""
PERMUTED_BLOCKS = 64
"""Blocks per unit of a copy of permuted blocks: up to half of L1."""

# Suppression

MANY_BOXES = 2048
"""Minimum number of boxes that are divided into cells. 4096 boxes take a third of the time, 1024 1.7 times (Zen 5)."""
FEW_CELLS = 8
"""Minimum number of cells. A box is compared with three of them, so fewer would hardly reduce the comparisons."""

# TopK

FEW_BEST = 8
"""Maximum number of best elements that are kept in registers, for a vector of lines at a time."""
LONG_RANKED = 128
"""Minimum elements of contiguous lines that are read by vectors along the line."""

# Register tiles

UNROLL = 4
"""Maximum elements of the sum per iteration of the innermost loop, which is unrolled."""
PRODUCTS = 32
"""Vector products per iteration that hide the instructions of the loop.

With 28 products, two elements per iteration are as fast as four, take LLVM less time, and prefetch more weights:
BERT-base in bf16 takes 0.94 of the time (Zen 5). One element prefetches too much, and is 1 % slower. With 12 products
(AVX2), one element takes 1.02 of the time of four. For Winograd's short sums, four are 3 % faster than two.
"""
L2_RATE = 24
"""Bytes that a core reads from L2 per cycle."""
TAIL_GAIN = 1.03
"""The minimum speed-up for which the last vectors of a row, fewer than a tile has, get a separate function."""
PANEL = 2
"""Vectors per panel of a matrix: the same for any number of rows, so that weights are packed once for all shapes."""
WIDEST_ROW = 8
"""Maximum vectors of a tile of one row of an expert: enough for the latency of FMAs."""
MANY_TILES = 4
"""Minimum tiles of a line that is divided into tiles of three heights. Shorter lines are faster with even heights."""
LONG_LINE = 10
"""Maximum tiles per line of outputs for which tiles are never on two lines.

Each row of a tile on two lines has an address that is computed for each tap. With tiles on one line, 3 × 3 × 3 taps of
16 channels on maps of 4 × 16 × 16 take 0.09 ms instead of 0.12 (Zen 5).
"""
LONG_RUN = 64
"""Minimum vectors of products per tap for which tiles may be on two lines: computing addresses takes little time."""
MANY_COLUMNS = 64
"""Minimum columns for which the shape of the tile does not depend on their number.

ResNet-50 and MobileNetV2 take as long as with a separate shape for each number of columns (Zen 3).
"""
ANY_COLUMNS = 5040
"""The number of columns for which the shape of the tile is chosen if there are at least MANY_COLUMNS."""
RESIDENT_WEIGHTS = AVX2.l2 // 2
"""Bytes of weights that stay in L2 while data, operands and results are streamed through it."""
SHORT_BLOCK = AVX2.cached
"""Bytes of data, operands and results per block if all weights are resident, so that reads and writes alternate.

With blocks of twenty times this size, a 1×1 convolution of 3136 × 64 → 256 with a residual takes 10 to 30 % longer.
"""
WIDENING_SUMS = 3 / 4
"""The part of the registers that hold sums in a tile that widens its weights in registers.

By tiles of 12 × 2 vectors, products of 12 rows by weights of 4 to 16 bits take 0.75 to 0.9 of the time of products by
panels widened in scratch memory; by tiles of 14 × 2, products of 14 rows take up to 1.3 times as long (Zen 5).
"""
WIDENED_BLOCK = 2
"""The factor by which blocks with compressed weights are larger, since each block widens all weights.

BERT-base with f16 weights takes 5 % less time (Zen 3).
"""
WIDENED_ROWS = 13
"""Minimum rows for which compressed weights of less than 16 bits are widened to bf16 instead of f32.

A panel is then widened before tiles read it. Prompts of 16 to 512 tokens take 0.55 to 0.75 of the time in f32; for 4
to 12 tokens, tiles that widen the weights in registers are up to twice as fast (Zen 5).
"""
PADDED_CHANNELS = 8
"""Maximum channels of a group for which convolutions read a copy with padding. Planar data are always copied.

Without the copy, tiles at edges select the data or zeros for each output and tap. 3 × 3 × 3 taps of 3 channels take
1.19 ms without the copy and 0.93 ms with it; 16 planar channels 0.093 and 0.065 ms; 16 channels in channels-last layout
0.058 and 0.074 ms (Zen 3).
"""
PADDED_WORDS, PADDED_TAPS = 48, 8
"""Maximum words of a position, and minimum taps per element of the data, for which tiles of one vector read a copy.

With 16 output channels, 3 × 3 × 3 taps of 16 channels at 32³ take 0.69 of the time in f32 and 0.58 in bf16; 5 × 5
taps at 56² take 0.63 and 0.51, at 224² 0.87 and 0.85. From 64 words on, the copy gains nothing, nor does it for tiles
of two vectors (Zen 5).
"""
LONG_SUM = 1536
"""Maximum elements of a sum that is not computed in parts.

In parts, sums of 2048 elements for 49 rows are 7 % faster, of 3072 for 64 rows 10 %, and of 8192 twice as fast
(Sapphire Rapids).
"""
SUM_PART = 1024
"""Maximum elements of a part. A panel of two vectors is then 128 KB; parts of half the size are as fast."""
SEPARATE_EPILOGUE = 12
"""Minimum cycles of an epilogue that is a loop over stored sums, so that its code is emitted only once.

If GELU is emitted for each vector of a tile of 14 × 2 vectors, LLVM compiles the kernel for 80 ms, and the product
takes 1 % less time.
"""

# Quantized data

LEAST_GROUP, MOST_GROUP = 32, 128
"""Minimum and maximum number of elements of the data that share a scale.

Matmuls take 1.3 times as long with 32 as with 128 (Zen 5). For normally distributed data, the error of the results is
0.5 % of their standard deviation with 32, and 0.65 % with 128.
"""

# Products in bf16

LEAST_GAIN = 1.5
"""Minimum ratio of the peak performance in bf16 to the peak in f32 for which bf16 is selected.

Rounding data and copying them into chunks reduce the gain. By AVX512_BF16, Zen 4 has a ratio of 2 and takes 20 % less
time. Sapphire Rapids has a ratio of 1: ResNet-50 takes 1.4 times as long as in f32, BERT 1.9 times.
"""
LEAST_PRODUCTS = 1 << 18
"""Minimum multiply-adds for tiles: with fewer (3 µs of AVX-512), the copy in bf16 takes longer than tiles save."""
LEAST_INPUTS, LEAST_OUTPUTS = 11, 3
"""Minimum input and output channels of convolutions for which tiles are faster than f32.

With fewer input channels, tiles sum over windows along columns (`few_channels`). 3 × 3 taps from 16 channels to 3 take
0.06 ms instead of 0.09; from 64 to 2 they take as long as f32, from 64 to 1 longer.
"""
LEAST_DEPTH, LEAST_PAIRS = 8, 1 << 16
"""Minimum input channels, and multiply-adds, for which AVX512_BF16 saves a fifth of the time (Zen 4)."""

# Tiles of AMX, on Sapphire Rapids

TILE_DATA = AMX.cached
"""Bytes of data that stay in L2 while weights are streamed through it."""
TILE_PANEL = AMX.l2 * 5 // 8
"""Bytes of a panel that stays in L2 while all data are streamed.

2048 channels of 28 × 28 by 3 × 3 take 13 ms instead of 20.
"""
TILE_AHEAD = AMX.l1 * 4 // 3
"""Maximum bytes of weights that a block prefetches ahead if no other block uses its panel.

Lines prefetched a panel ahead are evicted before they are read: 25088 × 4096 weights take 21 ms instead of 15.
"""
TILE_NEAR = AMX.l1 * 2 // 3
"""Bytes of weights that stay in L1 while data are streamed through it."""
TILE_LATENCY = 52
"""Cycles until the next product can add to a tile of sums."""
TILE_LOAD = 16
"""Cycles to load a tile of weights."""
FEW_OUTPUTS_SHARE = 0.8
"""Maximum ratio of the cycles with vectors along the sum to the cycles with vectors of output channels."""
OUTPUT_SPAN, UNROLLED_RUN = 128, 8
"""Windows of a row per unit of `FewOutputs`, and vectors of a run up to which its loop is unrolled."""

FEW_CHANNELS_SHARE = 0.75
"""Maximum ratio of the cycles in bf16 to the cycles in f32 (at its speed with many channels) for which bf16 is used.

With few channels f32 takes twice as long.
"""
REORDERED = 1024
"""Bytes of each chunk of a copy that a block of tiles reads."""

# Windows, with one channel per lane

WIDEST = 32
"""Maximum taps along a row that are unrolled. Longer rows of convolutions are a loop over parts of equal length."""
WIDE = 5
"""Minimum taps along a row for which one vector of channels at a time is faster (Zen 3)."""
WINDOW_CHAINS = 8
"""Accumulators per block. AVX-512 has registers for twice as many, but the code then takes twice as long to compile.

Twice as many save 30 % of the time of WIDE windows, 20 % of the time of few channels, and nothing otherwise (Zen 5).
"""
MANY_CHANNEL_VECTORS = 4
"""Minimum vectors of channels for which blocks have WINDOW_CHAINS accumulators, even if registers can hold more."""
MANY_CHANNEL_BLOCKS = 4
"""Minimum blocks of channels for which blocks of the tail of the channels have at most FEW_COLUMNS columns.

The tail is then a small part of the work, and code for more columns takes longer to compile.
"""
FEW_COLUMNS = 4
"""Maximum columns per block of the tail of the channels if there are MANY_CHANNEL_BLOCKS."""
FEW_ROWS = 16
"""Rows below which threads also divide the channels."""

# Winograd's algorithm

WINOGRAD_CHANNELS, WINOGRAD_MAP = 16, 8
"""Minimum channels, and minimum height and width of the map, for which it is faster (Zen 3)."""
WINOGRAD_FILLED = 8
"""Minimum average number of outputs on the map per tile, of 16."""
WINOGRAD_TILES = 24
"""Maximum tiles per block, whose sums stay in L2."""
MORE_WINOGRAD_TILES = 64
"""Maximum tiles per block if the weights do not fit into L3.

Maps of 28 × 28 have 49 tiles. Divided into two blocks, they take 50 % longer, since each block reads all weights.
"""
WINOGRAD_PANEL = 2
"""Vectors per panel of weights. Panels of 4, read from memory, take 10 % longer (Granite Rapids)."""
FEW_WINOGRAD_TILES = 6
"""Minimum tiles per thread: with fewer, reading the weights takes longer than multiplying by them."""
LARGE_WINOGRAD_WEIGHTS = 4 << 20
"""Maximum bytes of transformed weights that stay in L3."""
WINOGRAD_ROWS = 8
"""Maximum rows of a register tile."""
MORE_WINOGRAD_ROWS = 12
"""Maximum rows of a register tile with a single vector.

More rows are not faster (Zen 4), and most numbers of tiles can be divided into register tiles of n and n − 1 rows.
"""
WINOGRAD_EMPTY = 1.1
"""Maximum ratio of the rows of all register tiles to the tiles of a block. Above it, register tiles have fewer rows."""

# Normalization

NORMALIZED_COLUMNS = 128
"""Maximum columns of a band of whole cache lines and whole groups: of longer bands there would be too few."""
FEW_GROUPED = 4
"""Vectors of channels per group below which several groups are normalized at once."""

# Attention

SCORES = 3 * AVX2.l2 // 16
"""Maximum bytes of the scores of a block in f32."""
TILE_SCORES = AMX.l2 // 2
"""Maximum bytes of the scores of a block by tiles of AMX."""
ATTENTION_ROWS = 6
"""Maximum rows of a tile in f32.

Six rows by four vectors take as many cycles per product as fourteen by two, and fill blocks of any number of queries.
"""
ATTENTION_COLUMNS = 4096
"""The number of columns for which the width of a tile in f32 is chosen."""
ATTENTION_WIDEST = 8
"""Maximum width of a tile in f32, in vectors."""
WIDEST_KEY = 256
"""Maximum elements of a key that is multiplied in place, by unrolled code."""
LEAST_QUERIES = 4
"""Minimum queries for tiles of AMX: with fewer, they save less than 10 % of the time, as for the next three minima."""
LEAST_KEYS = 16
"""Minimum keys for tiles of AMX."""
LEAST_KEY_WIDTH = 8
"""Minimum elements of a key for tiles of AMX."""
LEAST_ATTENTION = 1 << 18
"""Minimum multiply-adds for tiles of AMX."""

# Recurrent networks

SAMPLES = 16
"""Maximum samples per block: the weights of a panel are read once per step and block."""
LEAST_STATE = 64
"""Minimum elements of the state or the input for bf16: LSTM(64 → 64) takes 0.6 of the time of f32, (32 → 32) 1.2."""
LEAST_RECURRENT = 1 << 18
"""Minimum multiply-adds for bf16: one step of LSTM(128 → 128), with half as many, takes 1.1 of the time of f32."""
