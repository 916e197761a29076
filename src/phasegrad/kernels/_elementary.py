"""Elementary functions of vectors, by polynomials."""

from __future__ import annotations

from numba import njit

from phasegrad.kernels._vector import any_less, floor, magnitude, multiply_add, where_less

# Only the entry of the kernel is called from Python, and cached on disk with all that is compiled into it.
compiled = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


# Polynomials of sine and cosine between -pi / 4 and pi / 4, highest power first, by Cephes (S. L. Moshier):
#     sin r = r + r z (SINE of z),   cos r = 1 - z / 2 + z^2 (COSINE of z),   z = r^2
SINE = (
    1.5896230157654656e-10,
    -2.5050747762857807e-8,
    2.755731362138572e-6,
    -1.9841269829589539e-4,
    8.333333333322118e-3,
    -0.16666666666666632,
)
COSINE = (
    -1.1358536521387682e-11,
    2.0876100842787e-9,
    -2.7557317272344188e-7,
    2.4801587298767044e-5,
    -1.3888888888887398e-3,
    4.166666666666666e-2,
)
# Quarters of a turn in a radian, and pi / 2 as a sum of three numbers. The first two end in zeros, so that whole
# multiples of them up to a million turns are exact (fdlibm).
QUARTERS = 0.6366197723675814
QUARTER = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)


@compiled
def small_sine_and_cosine(r):
    """Sine and cosine by their polynomials, for lanes between -pi / 4 and pi / 4."""
    z = r * r
    odd = multiply_add(z, SINE[0], SINE[1])
    odd = multiply_add(z, odd, SINE[2])
    odd = multiply_add(z, odd, SINE[3])
    odd = multiply_add(z, odd, SINE[4])
    odd = multiply_add(z, odd, SINE[5])
    even = multiply_add(z, COSINE[0], COSINE[1])
    even = multiply_add(z, even, COSINE[2])
    even = multiply_add(z, even, COSINE[3])
    even = multiply_add(z, even, COSINE[4])
    even = multiply_add(z, even, COSINE[5])
    return multiply_add(r * z, odd, r), multiply_add(z * z, even, multiply_add(z, -0.5, 1.0))


@compiled
def sine_and_cosine(x):
    """Sine and cosine of every lane: reduce by multiples of pi / 2, evaluate two polynomials, pick and sign."""
    if not any_less(0.78, magnitude(x)):
        # The usual case. The lines below would give the same bits: all quarters are 0.
        return small_sine_and_cosine(x)
    quarter = floor(multiply_add(x, QUARTERS, 0.5))
    r = multiply_add(-quarter, QUARTER[0], x)
    r = multiply_add(-quarter, QUARTER[1], r)
    r = multiply_add(-quarter, QUARTER[2], r)
    odd, even = small_sine_and_cosine(r)
    swapped = multiply_add(floor(quarter * 0.5), -2.0, quarter)
    turn = multiply_add(floor(quarter * 0.25), -4.0, quarter)
    sine = where_less(swapped, 0.5, odd, even)
    cosine = where_less(swapped, 0.5, even, odd)
    sine = where_less(turn, 1.5, sine, -sine)
    cosine = where_less(magnitude(turn - 1.5), 1.0, -cosine, cosine)
    return sine, cosine


@compiled
def rough_angle(cosine, sine):
    """Angle of unit vectors, to 2e-6: where to start, never a result."""
    across, along = magnitude(sine), magnitude(cosine)
    steep = where_less(along, across, 1.0, 0.0)
    t = where_less(along, across, along, across) / where_less(along, across, across, along)
    z = t * t
    p = multiply_add(z, -0.011465809673338682, 0.05195053207890508)
    p = multiply_add(z, p, -0.11572944139573252)
    p = multiply_add(z, p, 0.19323529227551395)
    p = multiply_add(z, p, -0.33256831655861907)
    p = t * multiply_add(z, p, 0.9999744910973759)
    p = where_less(0.5, steep, 1.5707963267948966 - p, p)
    p = where_less(cosine, 0.0, 3.141592653589793 - p, p)
    return where_less(sine, 0.0, -p, p)
