"""The steps of a program: complete descriptions of computations, independent of kernels, one file per family.

Shapes and attributes are constants and weights are constant values, so every back end compiles from the same
description. A class also states the properties of its computation that hold on every back end; `Step` lists them.
"""

from __future__ import annotations

from irload.plan.ir.expression import IDENTITY as IDENTITY
from irload.plan.ir.steps.elementwise import ComputeStep as ComputeStep
from irload.plan.ir.steps.elementwise import ElementwiseStep as ElementwiseStep
from irload.plan.ir.steps.elementwise import ExpressionStep as ExpressionStep
from irload.plan.ir.steps.elementwise import WithEpilogue as WithEpilogue
from irload.plan.ir.steps.movement import INDICES as INDICES
from irload.plan.ir.steps.movement import BroadcastStep as BroadcastStep
from irload.plan.ir.steps.movement import ConcatStep as ConcatStep
from irload.plan.ir.steps.movement import GatherStep as GatherStep
from irload.plan.ir.steps.movement import RelayoutStep as RelayoutStep
from irload.plan.ir.steps.movement import ReshapeStep as ReshapeStep
from irload.plan.ir.steps.movement import SliceStep as SliceStep
from irload.plan.ir.steps.movement import TransposeStep as TransposeStep
from irload.plan.ir.steps.movement import ViewStep as ViewStep
from irload.plan.ir.steps.products import AttentionStep as AttentionStep
from irload.plan.ir.steps.products import ConvStep as ConvStep
from irload.plan.ir.steps.products import ConvTransposeStep as ConvTransposeStep
from irload.plan.ir.steps.products import ExpertMatMulStep as ExpertMatMulStep
from irload.plan.ir.steps.products import Integers as Integers
from irload.plan.ir.steps.products import MatMulStep as MatMulStep
from irload.plan.ir.steps.products import ProductStep as ProductStep
from irload.plan.ir.steps.products import RecurrentStep as RecurrentStep
from irload.plan.ir.steps.ranking import ExpertOrderStep as ExpertOrderStep
from irload.plan.ir.steps.ranking import ScatterStep as ScatterStep
from irload.plan.ir.steps.ranking import TopKStep as TopKStep
from irload.plan.ir.steps.rows import CumulativeSumStep as CumulativeSumStep
from irload.plan.ir.steps.rows import GroupNormalizeStep as GroupNormalizeStep
from irload.plan.ir.steps.rows import NormalizeStep as NormalizeStep
from irload.plan.ir.steps.rows import PoolStep as PoolStep
from irload.plan.ir.steps.rows import ReduceStep as ReduceStep
from irload.plan.ir.steps.rows import ResampleStep as ResampleStep
from irload.plan.ir.steps.rows import RotaryEmbeddingStep as RotaryEmbeddingStep
from irload.plan.ir.steps.rows import SampleStep as SampleStep
from irload.plan.ir.steps.rows import SampleSumStep as SampleSumStep
from irload.plan.ir.steps.rows import SoftmaxStep as SoftmaxStep
