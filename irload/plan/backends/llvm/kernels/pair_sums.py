"""The products of attention in bf16 by AVX512_BF16, in vector registers; scores and sums of exponentials are f32."""

from __future__ import annotations

from typing import Any, ClassVar

from irload.plan.backends.llvm import bfloat16
from irload.plan.backends.llvm.builder import AnyInt, Pointer, Vec
from irload.plan.backends.llvm.dot import PAIRS, Dot
from irload.plan.backends.llvm.elements import WORD
from irload.plan.backends.llvm.kernels.attention_sums import Block, RoundedSums, store_rounded
from irload.record import record


@record()
class PairSums(RoundedSums):
    """Exponentials replace the scores of their panel in place: each row takes the first half of its memory."""

    dot: ClassVar[Dot] = PAIRS

    def pitch(self, count: Any) -> Any:
        return (count + self.lanes - 1) // self.lanes * (self.lanes * bfloat16.BYTES)

    def copies(self, block: int, keys: int, width: int) -> int:
        return block * self.pitch(width)

    def queries(self, b: Block, strip: AnyInt) -> tuple[Pointer, AnyInt, int]:
        pitch = self.pitch(b.width)
        return b.copies + (b.rows.first(strip) - b.rows.first(0)) * pitch, pitch, WORD

    def finish(self, b: Block) -> None:
        def store(row: AnyInt, turn: AnyInt, scores: Pointer, powers: list[Vec]) -> None:
            store_rounded(b.f, powers, scores)

        b.rows.finish(store)
