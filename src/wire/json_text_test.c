/* Tokens of JSON: where strings end. */
#include "wire/json_text.h"

#include "base/testing/testing.h"
#include "wire/json.h"

/* Strings are passed a word at a time: whatever stands at each place of a few words. */
static void strings_end_at_their_second_quote(void **state)
{
    enum { MOST = 40 };
    static const uint8_t plain[] = {' ', '!', '#', '[', ']', '~', 0x7f, 0x80, 0xa2, 0xdc, 0xff};
    (void)state;
    for (size_t i = 0; i < sizeof plain; i++)
        for (size_t size = 0; size < MOST; size++) {
            uint8_t text[MOST + 3] = {'"'};
            bytes found;
            memset(text + 1, plain[i], size);
            struct json_reader reader = {.at = text, .end = text + 1 + size};
            assert_int_equal(json_take_scalar(&reader, &found), JSON_BAD); /* no quote */
            text[1 + size] = '"';
            text[2 + size] = '"';
            reader = (struct json_reader){.at = text, .end = text + 3 + size};
            assert_int_equal(json_take_scalar(&reader, &found), JSON_STRING);
            assert_ptr_equal(found.data, text + 1);
            assert_int_equal(found.size, size);
            assert_ptr_equal(reader.at, text + 2 + size);
        }
}

static void escapes_and_control_characters_are_seen_in_strings(void **state)
{
    enum { SIZE = 30 };
    (void)state;
    for (size_t at = 0; at < SIZE; at++)
        for (unsigned byte = 0; byte < 256; byte++) {
            uint8_t text[SIZE + 2];
            bytes found;
            memset(text, 'a', sizeof text);
            text[0] = text[SIZE + 1] = '"';
            text[1 + at] = (uint8_t)byte;
            struct json_reader reader = {.at = text, .end = text + sizeof text};
            enum json_kind kind = json_take_scalar(&reader, &found);
            bool hides_quote = byte == '\\' && at == SIZE - 1;
            assert_int_equal(kind, byte < ' ' || hides_quote ? JSON_BAD : JSON_STRING);
            if (kind == JSON_STRING)
                assert_int_equal(found.size, byte == '"' ? at : SIZE);
        }
}

static void any_bytes_can_be_shown(void **state)
{
    (void)state;
    struct buffer out = {0};
    json_encode_shown(bytes_of("caf\xc3\xa9"), &out);
    json_encode_shown(bytes_of("caf\xe9\n"), &out);
    assert_true(bytes_equal(buffer_bytes(&out), bytes_of("\"caf\xc3\xa9\"\"caf\\\\xe9\\n\"")));
    buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_end_at_their_second_quote),
        cmocka_unit_test(escapes_and_control_characters_are_seen_in_strings),
        cmocka_unit_test(any_bytes_can_be_shown),
    };
    return cmocka_run_group_tests_name("wire_json_text", tests, NULL, NULL);
}
