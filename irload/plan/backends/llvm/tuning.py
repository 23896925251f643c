"""Numbers on which the choice, the sizes and the order of kernels depend, in one table.

The sizes of caches are columns of `Target`; numbers that follow from them are formulas here. The other numbers are
measured: each states its unit, and the processor if it was not all of Zen 3, Zen 4 and Sapphire Rapids. Numbers that
define an algorithm or its accuracy are in its module.
"""

from __future__ import annotations

from irload.plan.backends.llvm.target import AMX, AVX2

# Threads

SHARED_CYCLES = 5000
"""Minimum cycles of a kernel that threads share: waking up and meeting costs about 1 µs."""
TOGETHER_CYCLES = 300_000
"""Minimum cycles of a table's shared kernels: with fewer, one thread runs all, as waking another takes up to 0.1 ms."""

PATIENT_CYCLES = 1_000_000
"""Cycles for which a thread spins before it sleeps, several times the gap between inferences, 0.3 to 0.5 ms.

Waking it takes another thread 1 to 5 µs, and its first instruction follows after 5 to 50 µs.
"""

REACH = 2
"""How many of the following kernels are searched for weights to prefetch: a copy may precede their reader."""

# Units of work

ROW_BLOCK = AVX2.l1 // 8
"""f32 of a unit of a kernel of rows: half of L1."""
COPIED_BLOCK = AVX2.l1 // 2
"""Bytes of a unit of a copy: half of L1."""
REDUCED_BLOCK = AVX2.l1 // 2
"""f32 of a unit of a reduction across columns: twice L1, as each is read once."""
COLUMN_BLOCK = AVX2.l1 // 8
"""f32 of a unit of a softmax or a normalization across columns, which are read three times: half of L1."""
PACKED_ROWS = 128
"""Rows of a unit of packing, a multiple of the rows of a chunk and of a square."""
NUMPY_PACKED = 1 << 12
"""Elements of weights up to which NumPy packs as fast."""
LEAST_RELAID = 4096
"""Elements of a result that a kernel makes planar: fewer are copied by strides as fast."""
MOST_PHASES = 64
"""Phases of a transposed convolution, each of which is a kernel; with more of them each has little to do."""

# Independent operations, so that none waits for the one before: two start in each cycle and take four

SPAN_CHAINS = 4
"""Partial results of a reduction along a row."""
COLUMN_VECTORS = 4
"""Vectors of columns that one loop of a reduction or a normalization takes."""
SOFTMAX_VECTORS = 2
"""Vectors of columns that one loop of a softmax takes: its exponential has independent operations, too."""
SCORE_ROWS = 4
"""Rows of scores whose maxima are updated in one turn: as many as one comparison takes cycles."""
LONG_EXPRESSION = 24
"""Cycles of an expression from which two vectors per turn keep the processor busy; shorter ones take four."""
SHORT = 8
"""Vectors of a row up to which its size is compiled in: a loop over a few vectors takes up to twice as long."""
HELD_TAPS = 4
"""Taps of a resampling whose offsets and weights are kept in registers; more of them are a loop."""

# Register tiles

UNROLL = 4
"""Elements of the sum that one turn of the innermost loop takes."""
L2_RATE = 24
"""Bytes that a core reads from L2 in a cycle."""
TAIL_GAIN = 1.03
"""The speed-up that justifies a separate function for the last, fewer vectors of a row."""
PANEL = 2
"""Vectors of a panel of a matrix: the same for any number of rows, so that weights are packed once for all shapes."""
MANY_TILES = 4
"""Tiles of a line from which three heights cut it. Shorter lines take longer so than by even heights."""
MANY_COLUMNS, ANY_COLUMNS = 64, 5040
"""Columns from which the tile does not depend on their number, and the number for which it is chosen.

ResNet-50 and MobileNetV2 take as long as with tiles for each number (Zen 3).
"""
RESIDENT_WEIGHTS = AVX2.l2 // 2
"""Bytes of weights that stay in L2 while data, operands and results pass through it."""
SHORT_BLOCK = AVX2.cached
"""Bytes of data, operands and results per block in that case, so that reads and writes of memory alternate.

With twenty times as many, a 1×1 convolution of 3136 × 64 → 256 with a residual takes 10 to 30 % longer.
"""
WIDENED_BLOCK = 2
"""Factor of the data of a block by compressed weights: each block widens all of them. BERT-base, f16: 5 % on Zen 3."""
PADDED_CHANNELS = 8
"""Channels of a group up to which convolutions read a copy with padding, as they read planar data.

Tiles at edges otherwise choose the data or zeros for each output and tap: 3 × 3 × 3 taps of 3 channels take 1.19 ms so,
0.93 with the copy; 16 planar channels 0.093 and 0.065, 16 channels last 0.058 and 0.074 (Zen 3).
"""
LONG_SUM = 1536
"""Elements from which a sum is taken in parts. 2048 for 49 rows are 7 % faster so, 3072 for 64 rows 10 %, 8192 twice.

Measured on Sapphire Rapids.
"""
SUM_PART = 1024
"""The most elements of a part, of which a panel of two vectors is 128 KB; parts of a half are as fast."""
SEPARATE_EPILOGUE = 12
"""Cycles from which an epilogue is a loop over the sums, once stored, so that its code is written once, not for each.

GELU on a tile of 14 × 2 vectors takes LLVM 80 ms otherwise, and a hundredth of the product's time less.
"""

# Products in bf16

LEAST_GAIN = 1.5
"""How many times as many operations in bf16 as in f32 a processor must do per second, so that bf16 is faster.

Rounding data and copying them into chunks take part of the gain. By AVX512_BF16, Zen 4 does twice as many and takes a
fifth less time; Sapphire Rapids does as many, and ResNet-50 takes 1.4 times as long as in f32, BERT 1.9 times.
"""
LEAST_PRODUCTS = 1 << 18
"""Multiply-adds below which a copy in bf16 takes longer than tiles save: 3 µs of AVX-512."""
LEAST_INPUTS, LEAST_OUTPUTS = 11, 3
"""Channels of the data and of the result of convolutions from which tiles are faster.

With fewer channels of the data, tiles sum over windows along columns. 3 × 3 taps from 16 channels to 3 take 0.06 ms,
0.09 in f32; from 64 to 2 they take as long, from 64 to 1 longer.
"""
LEAST_DEPTH, LEAST_PAIRS = 8, 1 << 16
"""By AVX512_BF16: channels of the data, and multiply-adds, from which it saves a fifth of the time (Zen 4)."""

# Tiles of AMX, on Sapphire Rapids

TILE_DATA = AMX.cached
"""Bytes of data that stay in L2 while weights pass through it."""
TILE_PANEL = AMX.l2 * 5 // 8
"""Bytes of a panel that stays there while all data pass: 2048 channels of 28 × 28 by 3 × 3 take 13 ms so, else 20."""
TILE_AHEAD = AMX.l1 * 4 // 3
"""The most bytes that a block prefetches ahead of the weights it reads, if it alone uses a panel.

Lines prefetched a panel ahead are evicted before they are read: 25088 × 4096 weights take 21 ms, else 15.
"""
TILE_NEAR = AMX.l1 * 2 // 3
"""Bytes of weights that stay in L1 while data pass through it."""
TILE_LATENCY, TILE_LOAD = 52, 16
"""Cycles until the next product can add to a tile of sums, and cycles to load a tile of weights."""
FEW_CHANNELS_SHARE = 0.75
"""The largest share of the cycles in f32, at its speed with many channels, for which bf16 is selected.

With few channels f32 takes twice as long.
"""
REORDERED = 1024
"""Bytes of each chunk of a copy that a block reads."""

# Windows, one channel a lane

WIDEST = 32
"""Taps along a row, and windows at its ends, up to which the taps are unrolled."""
WIDE = 5
"""Taps along a row from which one vector of channels at a time is faster (Zen 3)."""
WINDOW_CHAINS = 8
"""Sums computed together. Twice as many compile twice as long."""
FEW_COLUMNS = 2
"""Columns of a block of the last channels after whole vectors: code for more of them takes longer to compile."""
FEW_ROWS = 16
"""Rows below which threads also share the channels."""

# Winograd's algorithm

WINOGRAD_CHANNELS, WINOGRAD_MAP = 16, 8
"""The fewest channels and the smallest map for which it is faster (Zen 3)."""
WINOGRAD_FILLED = 8
"""The fewest outputs on the map per tile of 16, on average."""
WINOGRAD_TILES, MORE_WINOGRAD_TILES = 24, 64
"""The most tiles of a block, whose sums stay in L2; more of them if the weights do not fit into L3.

Maps of 28 × 28 have 49 tiles: two blocks of these take half as long again, since each reads all weights.
"""
WINOGRAD_PANEL = 2
"""Vectors of a panel of weights: panels of 4 in memory take a tenth longer (Granite Rapids)."""
FEW_WINOGRAD_TILES = 6
"""Tiles of a block for which reading the weights takes no longer than multiplying by them."""
LARGE_WINOGRAD_WEIGHTS = 4 << 20
"""Bytes of transformed weights that hardly fit into L3."""
WINOGRAD_ROWS, MORE_WINOGRAD_ROWS = 8, 12
"""Rows of a register tile, and of one with a single vector.

More of them are not faster (Zen 4), and most numbers of tiles are sums of this number and the one below.
"""

# Normalization
NORMALIZED_COLUMNS = 128
"""Columns up to which a band takes whole cache lines of whole groups; beyond, there would be too few bands."""
FEW_GROUPED = 4
"""Vectors of channels of a group below which several groups are normalized at once."""

# Attention

SCORES, TILE_SCORES = 3 * AVX2.l2 // 16, AMX.l2 // 2
"""Bytes of scores of a block, in f32 and by tiles."""
ATTENTION_ROWS, ATTENTION_COLUMNS, ATTENTION_WIDEST = 6, 4096, 8
"""The most rows of a tile in f32; the columns for which its width is chosen, and the most vectors of that.

Six rows by four vectors take as many cycles a product as fourteen by two, and fill blocks of any number of queries.
"""
LEAST_QUERIES, LEAST_KEYS, LEAST_KEY_WIDTH, LEAST_ATTENTION = 4, 16, 8, 1 << 18
"""Queries, keys, their width, and multiply-adds, below which tiles of AMX save less than a tenth of the time."""

# Recurrent networks

SAMPLES = 16
"""Samples for which the weights of a panel are read once a step."""
LEAST_STATE = 64
"""Elements of the state or of an input from which bf16 is faster: LSTM(64 → 64) takes 0.6 of f32, (32 → 32) 1.2."""
LEAST_RECURRENT = 1 << 18
"""Multiply-adds from which it is: one step of LSTM(128 → 128), which has half as many, takes 1.1."""
