/* Tests of siphash.h against the specification's own examples. */
#include "base/siphash.h"

#include "base/testing/testing.h"

enum { MOST = 63 };

static void make_input(uint8_t input[MOST])
{
    for (int i = 0; i < MOST; i++)
        input[i] = (uint8_t)i;
}

/* The bytes 0, 1, 2, … up to a size, under the key 0 to 15. */
static const struct {
    size_t size;
    struct fingerprint fingerprint;
} examples[] = {
    {0, {{0xe6a825ba047f81a3, 0x930255c71472f66d}}},
    {1, {{0x44af996bd8c187da, 0x45fc229b11597634}}},
    {7, {{0x53c1dbd8beebf1a1, 0x3982f01fa64ab8c0}}},
    {8, {{0x61f55862baa9623b, 0xb49714f364e2830f}}},
    {15, {{0x11a8b03399e99354, 0xd9c3cf970fec087e}}},
    {16, {{0xbb54b067caa4e26e, 0x77052385bf1533fd}}},
    {63, {{0x4a83502f77d15051, 0x7cbd3f979a063e50}}},
};

static struct fingerprint fingerprint_of(bytes first, bytes second)
{
    struct siphash hash;
    siphash_start(&hash);
    siphash_add(&hash, first);
    siphash_add(&hash, second);
    return siphash_finish(&hash);
}

static void outputs_are_the_specification_s(void **state)
{
    (void)state;
    uint8_t input[MOST];
    make_input(input);
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        struct fingerprint f =
            fingerprint_of(bytes_make(input, examples[i].size), bytes_make(NULL, 0));
        assert_true(fingerprint_equal(f, examples[i].fingerprint));
    }
}

static void parts_do_not_matter(void **state)
{
    (void)state;
    uint8_t input[MOST];
    make_input(input);
    struct fingerprint whole = fingerprint_of(bytes_make(input, MOST), bytes_make(NULL, 0));
    for (size_t first = 0; first <= MOST; first++) {
        struct fingerprint f =
            fingerprint_of(bytes_make(input, first), bytes_make(input + first, MOST - first));
        assert_true(fingerprint_equal(f, whole));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_the_specification_s),
        cmocka_unit_test(parts_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
