"""The nearest valid value, for messages about an invalid one."""


def nearest_divisor(number: int, wanted: int) -> int:
    """The divisor of `number` nearest to `wanted`; the smaller one on a tie, 1 when there is none."""
    divisors = (candidate for candidate in range(1, number + 1) if number % candidate == 0)
    return min(divisors, key=lambda candidate: (abs(candidate - wanted), candidate), default=1)


def nearest_multiple(number: int, of: int) -> int:
    """The positive multiple of `of` nearest to `number`."""
    return max(1, round(number / of)) * of
