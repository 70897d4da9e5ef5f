/* Suspects that come, go and come back. */
#include "transfer/suspects.h"

#include "base/testing/testing.h"

static const struct transfer_place place = {.file = "f", .line = 1};

static bytes key_of(const int *number)
{
    return bytes_make(number, sizeof *number);
}

static void the_last_word_counts(void **state)
{
    struct suspects suspects = {0};
    (void)state;
    suspects_clear(&suspects, bytes_of("a"));
    assert_ok(suspects_add(&suspects, bytes_of("a"), &place));
    assert_ok(suspects_add(&suspects, bytes_of("a"), &place));
    assert_ok(suspects_add(&suspects, bytes_of("b"), &place));
    assert_int_equal(suspects.standing, 2);
    suspects_clear(&suspects, bytes_of("a"));
    suspects_clear(&suspects, bytes_of("a"));
    suspects_clear(&suspects, bytes_of("c"));
    assert_int_equal(suspects.standing, 1);
    assert_ok(suspects_add(&suspects, bytes_of("a"), &place));
    assert_int_equal(suspects.standing, 2);
    assert_int_equal(suspects.count, 2);
    suspects_free(&suspects);
}

static void many_are_told_apart(void **state)
{
    enum { MANY = 10000 };
    struct suspects suspects = {0};
    (void)state;
    for (int i = 0; i < MANY; i++)
        assert_ok(suspects_add(&suspects, key_of(&i), &place));
    for (int i = 0; i < MANY; i += 2)
        suspects_clear(&suspects, key_of(&i));
    assert_int_equal(suspects.standing, MANY / 2);
    for (int i = 0; i < MANY; i++)
        assert_ok(suspects_add(&suspects, key_of(&i), &place));
    assert_int_equal(suspects.standing, MANY);
    assert_int_equal(suspects.count, MANY);
    suspects_free(&suspects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_word_counts),
        cmocka_unit_test(many_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
