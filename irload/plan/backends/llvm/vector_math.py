"""Elementary functions of vectors of f32, each accurate to about the last bit. NaN results in NaN.

Errors are relative errors, compared with f64: the maximum over 2¹⁵ mantissas at every exponent and sign, for normal
results. If e^−x overflows, quotients by it are 0. The polynomials are minimax fits in f64, rounded to f32.
"""

from __future__ import annotations

from collections.abc import Sequence

from irload.plan.backends.llvm.values import Vec
from irload.plan.ir.softmax_threshold import SMALLEST_NORMAL

LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.693145751953125
"""ln 2 in 15 bits: its product with an exponent is exact."""
_LN2_LOW = 1.428606765330187e-06
ROUNDING = 12582912.0
"""1.5 · 2²³: adding it to a number rounds the number to an integer, which is then in the lowest bits of the sum."""
_UNDERFLOW = -104.0
"""Below this e^x is 0. A product that is subnormal or underflows takes a hundred cycles or more."""
_LEAST = -88.0
"""The argument of e^x for which the exponent bits of the power of 2 are 0, so that the result is 0."""
_ONE = 0x3F800000
"""The bits of 1.0."""
_MANTISSA = 0x7FFFFF
_ROOT_HALF = 0x3F3504F3
"""The bits of √½."""

# fmt: off
_EXPM1 = (0.4999999701976776, 0.16666539013385773, 0.04166722297668457, 0.008367180824279785, 0.0013882395578548312)
"""(e^r − 1 − r) / r² for |r| ≤ ½ ln 2: 1.4e-8."""
_EXP2 = (1.0, 0.6931241750717163, 0.24024099111557007, 0.055906426161527634, 0.009582852944731712)
"""2^r for |r| ≤ ½: 3e-6."""
_LOG = (
    0.3333331048488617, -0.25000008940696716, 0.2000216692686081, -0.16668090224266052, 0.1421855390071869,
    -0.12403083592653275, 0.11893511563539505, -0.116943359375, 0.06757572293281555,
)
"""(ln(1 + m) − m + ½ m²) / m³ for √½ ≤ 1 + m ≤ √2: 8e-10."""
_LOG1P = (
    1.0, -0.4999990165233612, 0.3332996368408203, -0.24954134225845337, 0.1967593878507614, -0.15305592119693756,
    0.10603655129671097, -0.05695953220129013, 0.01985146291553974, -0.0032440251670777798,
)
"""ln(1 + u) / u for 0 ≤ u ≤ 1: 5e-9."""
_ERF = (
    1.1283791065216064, -0.3761262595653534, 0.1128358542919159, -0.026853812858462334, 0.005188327748328447,
    -0.0008010193705558777, 7.853861461626366e-05,
)
"""erf(x) / x in x² for |x| ≤ 1: 1e-9."""
_TAIL_ABOVE = (0.5, 0.4382929801940918, 0.18323367834091187, 0.04063273221254349, 0.004116235300898552)
_TAIL_BELOW = (
    1.0, 1.6744709014892578, 1.2024970054626465, 0.4694667458534241, 0.10185760259628296, 0.01031775213778019,
)
"""The quotient of both is ½ erfc(a / √2) · e^(½ a²) for 0 ≤ a ≤ 14.5: 6e-9."""
# fmt: on


def larger(a: Vec, b: Vec) -> Vec:
    """The larger of both; `b` if `a` is NaN."""
    return b.at_least(a)


def smaller(a: Vec, b: Vec) -> Vec:
    """The smaller of both; `b` if `a` is NaN."""
    return b.at_most(a)


def exp(x: Vec) -> Vec:
    """The exponential: error 9e-8. Underflows gradually."""
    return _exp_of_sum(x, None)


def _exp_of_sum(x: Vec, low: Vec | None) -> Vec:
    """e^(x + low), where `low` is below the last bit of x."""
    some = x.compare("uge", _UNDERFLOW)
    power, r = _reduced(x.at_least(_UNDERFLOW).at_most(89.0))
    r = r if low is None else r + low
    halved = (power >> 1) << 23  # 2^power may exceed f32, so it is applied as two factors
    first, second = (halved + _ONE).floats().where(some, 0.0), ((power << 23) - halved + _ONE).floats()
    return (_expm1_of_reduced(r) + 1.0) * first * second


def _exp_beside_one(x: Vec) -> Vec:
    """The exponential as a term of 1 + e^x: tiny results are not exact, and never subnormal."""
    return exp(x.at_least(-80.0))


def exp_of_negative(x: Vec) -> Vec:
    """The exponential for x ≤ 0 (up to a rounding): error 9e-8. 0 below −87.7."""
    return _exp_from(x.at_least(_LEAST))


def exp_or_zero(x: Vec, least: Vec | float) -> Vec:
    """The exponential for x ≤ 0 (up to a rounding): error 9e-8. 0 below `least`, which is above −87.4."""
    return _exp_from(x.where(x.compare("uge", least), _LEAST))


def _exp_from(x: Vec) -> Vec:
    """The exponential for _LEAST ≤ x ≤ 0; 0 for _LEAST."""
    power, r = _reduced(x)
    scale = ((power << 23) + _ONE).floats()
    return _expm1_of_reduced(r).times_plus(scale, scale)


def exp2_of_negative(x: Vec) -> Vec:
    """2^x for x ≤ 0 (up to a rounding), for results that are rounded to bf16: error 3e-6. 0 below −126.5."""
    x = x.at_least(-127.0)
    shifted = x + ROUNDING
    scale = ((shifted.bits() << 23) + _ONE).floats()
    return polynomial(x - (shifted - ROUNDING), _EXP2) * scale


def expm1_of_negative(x: Vec) -> Vec:
    """e^x − 1 for x ≤ 0: error 1.1e-7."""
    power, r = _reduced(x.at_least(-80.0))
    scale = ((power << 23) + _ONE).floats()
    return _expm1_of_reduced(r).times_plus(scale, scale - 1.0)


def _reduced(x: Vec) -> tuple[Vec, Vec]:
    """Argument reduction: n and r of x = n·ln 2 + r with |r| ≤ ½ ln 2. n is in the lowest bits of the first result."""
    shifted = x.times_plus(LOG2_E, ROUNDING)
    n = shifted - ROUNDING
    return shifted.bits(), n.times_plus(-_LN2_LOW, n.times_plus(-_LN2_HIGH, x))


def _expm1_of_reduced(r: Vec) -> Vec:
    return polynomial(r, _EXPM1).times_plus(r * r, r)


def log(x: Vec) -> Vec:
    """The natural logarithm: error 8e-8. −∞ for 0, NaN below."""
    small = x.compare("olt", SMALLEST_NORMAL)
    bits = (x * 2.0**23).where(small, x).bits() - _ROOT_HALF
    exponent = (bits >> 23).converted()
    exponent = (exponent - 23.0).where(small, exponent)
    m = ((bits & _MANTISSA) + _ROOT_HALF).floats() - 1.0
    square = m * m
    cubic = polynomial(m, _LOG) * m
    mantissa = cubic.times_plus(square, exponent * _LN2_LOW)
    mantissa = square.times_plus(-0.5, mantissa) + m
    result = exponent.times_plus(_LN2_HIGH, mantissa)
    result = result.where(x.compare("olt", float("inf")), x)
    result = result.where(x.compare("ugt", 0.0), float("-inf"))
    return result.where(x.compare("uge", 0.0), float("nan"))


def tanh(x: Vec) -> Vec:
    """The hyperbolic tangent: error 1.7e-7."""
    t = expm1_of_negative(abs(x) * -2.0)
    return (t / (t + 2.0)).with_sign_of(x)


def sigmoid(x: Vec) -> Vec:
    """The logistic function, 1 / (1 + e^−x): error 1.4e-7."""
    return 1.0 / (_exp_beside_one(-x) + 1.0)


def swish(x: Vec, slope: float = 1.0) -> Vec:
    """Swish, x / (1 + e^(−slope·x)): error 1.5e-7 with slope 1."""
    return x / (_exp_beside_one(x * -slope) + 1.0)


def softplus(x: Vec) -> Vec:
    """Softplus, ln(1 + e^x): error 1.8e-7."""
    u = exp_of_negative(-abs(x))
    return u.times_plus(polynomial(u, _LOG1P), x.at_least(0.0))


def mish(x: Vec) -> Vec:
    """Mish, x · tanh(ln(1 + e^x)) = x·n / (n + 2) with n = e^x·(e^x + 2): error 2.2e-7. x for x above 20."""
    e = exp(x.at_most(20.0))
    n = e.times_plus(e, e + e)
    return x * (n / (n + 2.0))


def elu(x: Vec, alpha: float) -> Vec:
    """ELU, x above zero and alpha · (e^x − 1) below: error 1.5e-7."""
    return x.where(x.compare("oge", 0.0), expm1_of_negative(x.at_most(0.0)) * alpha)


def erf(x: Vec) -> Vec:
    """The error function: error 1.8e-7."""
    a = abs(x)
    inner = polynomial((x * x).at_most(1.0), _ERF) * x
    outer = _upper_tail((a * 2.0**0.5).at_most(6.0)).times_plus(-2.0, 1.0).with_sign_of(x)  # 1 from 5.6 on
    return inner.where(a.compare("olt", 1.0), outer)


def gelu(x: Vec) -> Vec:
    """GELU, x/2 · (1 + erf(x / √2)): error 3e-7, also in the lower tail, where the sum would cancel."""
    a = abs(x)
    some = a.compare("ult", 13.15)  # beyond, the product of the tail and x is subnormal
    tail = _upper_tail(a.where(some, 0.0)).where(some, 0.0)
    return x * tail.where(x.compare("olt", 0.0), 1.0 - tail)


def _upper_tail(a: Vec) -> Vec:
    """½ erfc(a / √2) for 0 ≤ a ≤ 14.5: the probability that a normal variable exceeds a."""
    a = a.at_least(1e-8)  # the result is ½ for smaller a, too, but their products would be subnormal
    square = a * a
    rest = a.times_plus(a, -square)
    gauss = _exp_of_sum(square * -0.5, rest * -0.5)
    return polynomial(a, _TAIL_ABOVE) / polynomial(a, _TAIL_BELOW) * gauss


def gelu_tanh(x: Vec) -> Vec:
    """GELU by tanh, x/2 · (1 + tanh u) = x / (1 + e^−2u) with u = √(2/π)·(x + 0.044715·x³).

    Error 2.1e-7 for x ≥ −1; in the lower tail it grows to 4e-6 with u.
    """
    root = 2.0 * (2.0 / 3.141592653589793) ** 0.5
    return x / (_exp_beside_one((x * x).times_plus(-0.044715 * root, -root) * x) + 1.0)


def polynomial(x: Vec, coefficients: Sequence[float]) -> Vec:
    """coefficients[0] + coefficients[1]·x + … by Horner's rule, for two or more coefficients."""
    *rest, second, first = coefficients
    result = x.times_plus(first, second)
    for c in reversed(rest):
        result = result.times_plus(x, c)
    return result
