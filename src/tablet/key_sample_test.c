/* Tests of the sample of keys: where it sees the middle of a load. */
#include "tablet/key_sample.h"

#include "base/testing/testing.h"

#include <stdio.h>

enum { ENOUGH = 2 * KEY_SAMPLE_SIZE * KEY_SAMPLE_REQUESTS };

static void note_many(struct key_sample *sample, unsigned from, unsigned count)
{
    for (unsigned i = 0; i < ENOUGH; i++) {
        char key[16];
        int size = snprintf(key, sizeof key, "%05u", from + i % count);
        key_sample_note(sample, bytes_make(key, (size_t)size));
    }
}

static unsigned middle_of(struct key_sample *sample)
{
    struct buffer key = {0};
    bool found;
    assert_ok(key_sample_middle(sample, &key, &found));
    assert_true(found);
    buffer_append_byte(&key, 0);
    unsigned number = (unsigned)strtoul((const char *)key.data, NULL, 10);
    buffer_free(&key);
    return number;
}

static void half_of_the_load_is_before_the_middle(void **state)
{
    (void)state;
    struct key_sample sample;
    key_sample_init(&sample);
    assert_false(key_sample_is_full(&sample));
    note_many(&sample, 1000, 1000);
    assert_true(key_sample_is_full(&sample));
    assert_in_range(middle_of(&sample), 1300, 1700);
    key_sample_free(&sample);
}

static void old_keys_are_forgotten(void **state)
{
    (void)state;
    struct key_sample sample;
    key_sample_init(&sample);
    note_many(&sample, 0, 1000);
    note_many(&sample, 9000, 100);
    assert_in_range(middle_of(&sample), 9020, 9080);
    key_sample_free(&sample);
}

static void sampled_keys_can_be_had(void **state)
{
    (void)state;
    struct key_sample sample;
    struct buffer key = {0};
    key_sample_init(&sample);
    assert_false(key_sample_at(&sample, 0, &key));
    note_many(&sample, 7, 1);
    for (unsigned i = 0; i < KEY_SAMPLE_SIZE; i++) {
        assert_true(key_sample_at(&sample, i, &key));
        assert_true(bytes_equal(buffer_bytes(&key), bytes_of("00007")));
    }
    assert_false(key_sample_at(&sample, KEY_SAMPLE_SIZE, &key));
    buffer_free(&key);
    key_sample_free(&sample);
}

static void one_row_has_no_middle(void **state)
{
    (void)state;
    struct key_sample sample;
    struct buffer key = {0};
    bool found = true;
    key_sample_init(&sample);
    assert_ok(key_sample_middle(&sample, &key, &found));
    assert_false(found);
    note_many(&sample, 7, 1);
    assert_ok(key_sample_middle(&sample, &key, &found));
    assert_false(found);
    note_many(&sample, 7, 2); /* the middle is never the least */
    assert_int_equal(middle_of(&sample), 8);
    buffer_free(&key);
    key_sample_free(&sample);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_of_the_load_is_before_the_middle),
        cmocka_unit_test(old_keys_are_forgotten),
        cmocka_unit_test(sampled_keys_can_be_had),
        cmocka_unit_test(one_row_has_no_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
