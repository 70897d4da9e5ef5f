/* Sums of doubles that lose nothing: see exact_sum.h.
 *
 * Written: the three counts as varints, the place of the first limb that is not 0, how many limbs
 * from there say it all (the last one's sign stands for those above it), and these, least byte
 * first. */
#include "base/exact_sum.h"

#include "base/varint.h"

#include <math.h>

enum { LEAST_EXPONENT = -1074, FRACTION_BITS = 52, LIMB_BITS = 64 };

/* --- adding --- */

static void add_limb(struct exact_sum *sum, size_t at, uint64_t limb)
{
    bool carries = __builtin_add_overflow(sum->limbs[at], limb, &sum->limbs[at]);
    for (at++; carries && at < EXACT_SUM_LIMBS; at++)
        carries = ++sum->limbs[at] == 0;
}

static void take_limb(struct exact_sum *sum, size_t at, uint64_t limb)
{
    bool borrows = __builtin_sub_overflow(sum->limbs[at], limb, &sum->limbs[at]);
    for (at++; borrows && at < EXACT_SUM_LIMBS; at++)
        borrows = sum->limbs[at]-- == 0;
}

static void add_finite(struct exact_sum *sum, uint64_t bits, bool is_negative)
{
    uint64_t fraction = bits & ((UINT64_C(1) << FRACTION_BITS) - 1);
    unsigned exponent = (unsigned)(bits >> FRACTION_BITS) & 0x7ff;
    unsigned shift = exponent == 0 ? 0 : exponent - 1;
    if (exponent > 0)
        fraction |= UINT64_C(1) << FRACTION_BITS;
    unsigned at = shift / LIMB_BITS, by = shift % LIMB_BITS;
    uint64_t low = fraction << by;
    uint64_t high = by == 0 ? 0 : fraction >> (LIMB_BITS - by);
    if (is_negative) {
        take_limb(sum, at, low);
        take_limb(sum, at + 1, high);
    } else {
        add_limb(sum, at, low);
        add_limb(sum, at + 1, high);
    }
}

static void add_signed(struct exact_sum *sum, double value, int sign)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        sum->nans += (uint64_t)sign;
    else if (isinf(value) && value > 0)
        sum->infinities += (uint64_t)sign;
    else if (isinf(value))
        sum->negative_infinities += (uint64_t)sign;
    else
        add_finite(sum, bits, (bits >> 63 != 0) != (sign < 0));
}

void exact_sum_add(struct exact_sum *sum, double value)
{
    add_signed(sum, value, 1);
}

void exact_sum_take(struct exact_sum *sum, double value)
{
    add_signed(sum, value, -1);
}

void exact_sum_merge(struct exact_sum *sum, const struct exact_sum *other)
{
    bool carry = false;
    for (size_t i = 0; i < EXACT_SUM_LIMBS; i++) {
        bool first = __builtin_add_overflow(sum->limbs[i], other->limbs[i], &sum->limbs[i]);
        bool second = __builtin_add_overflow(sum->limbs[i], (uint64_t)carry, &sum->limbs[i]);
        carry = first || second;
    }
    sum->nans += other->nans;
    sum->infinities += other->infinities;
    sum->negative_infinities += other->negative_infinities;
}

void exact_sum_unmerge(struct exact_sum *sum, const struct exact_sum *other)
{
    bool borrow = false;
    for (size_t i = 0; i < EXACT_SUM_LIMBS; i++) {
        bool first = __builtin_sub_overflow(sum->limbs[i], other->limbs[i], &sum->limbs[i]);
        bool second = __builtin_sub_overflow(sum->limbs[i], (uint64_t)borrow, &sum->limbs[i]);
        borrow = first || second;
    }
    sum->nans -= other->nans;
    sum->infinities -= other->infinities;
    sum->negative_infinities -= other->negative_infinities;
}

/* --- the value --- */

bool exact_sum_is_special(const struct exact_sum *sum)
{
    return sum->nans != 0 || sum->infinities != 0 || sum->negative_infinities != 0;
}

static bool is_negative(const struct exact_sum *sum)
{
    return sum->limbs[EXACT_SUM_LIMBS - 1] >> 63 != 0;
}

static void negate(struct exact_sum *sum)
{
    struct exact_sum zero = {0};
    exact_sum_unmerge(&zero, sum);
    *sum = zero;
}

/* The upper 64 bits of a number that is not negative, from its first one on; what is cut off sets
 * the last of them, so that rounding them is rounding all. */
static long double round_up_to_odd(const struct exact_sum *sum)
{
    size_t top = EXACT_SUM_LIMBS;
    while (top > 0 && sum->limbs[top - 1] == 0)
        top--;
    if (top == 0)
        return 0;
    int zeros = __builtin_clzll(sum->limbs[top - 1]);
    uint64_t below = top > 1 ? sum->limbs[top - 2] : 0;
    uint64_t bits = sum->limbs[top - 1] << zeros | (zeros == 0 ? 0 : below >> (LIMB_BITS - zeros));
    bool has_rest = (below << zeros) != 0;
    for (size_t i = 0; i + 2 < top; i++)
        has_rest = has_rest || sum->limbs[i] != 0;
    int exponent = LEAST_EXPONENT + ((int)top - 1) * LIMB_BITS - zeros;
    return ldexpl((long double)(bits | has_rest), exponent);
}

long double exact_sum_value(const struct exact_sum *sum)
{
    struct exact_sum magnitude = *sum;
    if (sum->nans != 0 || (sum->infinities != 0 && sum->negative_infinities != 0))
        return NAN;
    if (exact_sum_is_special(sum))
        return sum->infinities != 0 ? INFINITY : -INFINITY;
    if (!is_negative(sum))
        return round_up_to_odd(sum);
    negate(&magnitude);
    return -round_up_to_odd(&magnitude);
}

/* --- written --- */

void exact_sum_append(struct buffer *out, const struct exact_sum *sum)
{
    uint64_t above = is_negative(sum) ? UINT64_MAX : 0;
    size_t first = 0, end = EXACT_SUM_LIMBS;
    while (first < EXACT_SUM_LIMBS && sum->limbs[first] == 0)
        first++;
    while (end > first && sum->limbs[end - 1] == above &&
           (end == first + 1 ? above == 0 : sum->limbs[end - 2] >> 63 == above >> 63))
        end--;
    buffer_append_varint(out, sum->nans);
    buffer_append_varint(out, sum->infinities);
    buffer_append_varint(out, sum->negative_infinities);
    buffer_append_byte(out, (uint8_t)first);
    buffer_append_byte(out, (uint8_t)(end - first));
    for (size_t i = first; i < end; i++)
        for (unsigned shift = 0; shift < LIMB_BITS; shift += 8)
            buffer_append_byte(out, (uint8_t)(sum->limbs[i] >> shift));
}

static bool take_count(bytes *rest, uint64_t *out)
{
    const uint8_t *end = rest->data + rest->size;
    const uint8_t *behind = rest->size == 0 ? NULL : varint_read(rest->data, end, out);
    if (behind == NULL)
        return false;
    *rest = bytes_make(behind, (size_t)(end - behind));
    return true;
}

static void read_limbs(const uint8_t *data, size_t first, size_t count, struct exact_sum *out)
{
    for (size_t i = 0; i < count; i++)
        for (unsigned byte = 0; byte < sizeof *out->limbs; byte++)
            out->limbs[first + i] |= (uint64_t)data[8 * i + byte] << 8 * byte;
    bool is_below_zero = count > 0 && out->limbs[first + count - 1] >> 63 != 0;
    for (size_t i = first + count; is_below_zero && i < EXACT_SUM_LIMBS; i++)
        out->limbs[i] = UINT64_MAX;
}

bool exact_sum_take_written(bytes *rest, struct exact_sum *out)
{
    *out = (struct exact_sum){0};
    if (!take_count(rest, &out->nans) || !take_count(rest, &out->infinities) ||
        !take_count(rest, &out->negative_infinities) || rest->size < 2)
        return false;
    size_t first = rest->data[0], count = rest->data[1];
    *rest = bytes_from(*rest, 2);
    if (first + count > EXACT_SUM_LIMBS || rest->size < 8 * count)
        return false;
    read_limbs(rest->data, first, count, out);
    *rest = bytes_from(*rest, 8 * count);
    return true;
}
