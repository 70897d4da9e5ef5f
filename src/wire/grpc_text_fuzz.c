/* Fuzzer: the text formats of headers. What was encoded is decoded to the same, encoded text is fit
 * for a header, a timeout read is written as one that is no shorter, and longer by a
 * hundred-thousandth at most.
 *
 * Input: text, bytes and number at once. */
#include "base/testing/fuzzing.h"
#include "wire/grpc_text.h"

#include <stdlib.h>

static void check_header_text(bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        CHECK(text.data[i] >= ' ' && text.data[i] <= '~');
    CHECK(text.size == 0 || (text.data[0] != ' ' && text.data[text.size - 1] != ' '));
}

static void check_percent(bytes input)
{
    struct buffer encoded = {0}, decoded = {0};
    grpc_percent_decode(input, &decoded); /* whatever it says */
    CHECK(decoded.size <= input.size);
    buffer_clear(&decoded);
    grpc_percent_encode(input, &encoded);
    check_header_text(buffer_bytes(&encoded));
    grpc_percent_decode(buffer_bytes(&encoded), &decoded);
    CHECK(bytes_equal(buffer_bytes(&decoded), input));
    buffer_free(&encoded);
    buffer_free(&decoded);
}

/* Into memory of just the size that the header promises to be enough; the caller frees it. */
static bool decode(bytes text, struct buffer *out)
{
    size_t size;
    uint8_t *to = malloc(base64_decoded_most(text.size));
    CHECK(to != NULL);
    bool ok = base64_decode(text, to, &size);
    CHECK(size <= base64_decoded_most(text.size));
    *out = (struct buffer){.data = to, .size = ok ? size : 0};
    return ok;
}

static void check_base64(bytes input)
{
    struct buffer encoded = {0}, decoded;
    base64_encode(input, &encoded);
    check_header_text(buffer_bytes(&encoded));
    CHECK(decode(buffer_bytes(&encoded), &decoded));
    CHECK(bytes_equal(buffer_bytes(&decoded), input));
    buffer_free(&encoded);
    buffer_free(&decoded);
    if (decode(input, &decoded)) /* what can be read has one encoding, in which it reads the same */
        base64_encode(buffer_bytes(&decoded), &encoded);
    CHECK(encoded.size <= input.size);
    buffer_free(&encoded);
    buffer_free(&decoded);
}

static void check_timeout(int64_t timeout_us)
{
    const int64_t most = INT64_C(99999999) * 60 * 1000000; /* eight digits, of minutes */
    char text[GRPC_TIMEOUT_TEXT_SIZE];
    int64_t again;
    grpc_timeout_format(timeout_us, text);
    CHECK(grpc_timeout_parse(bytes_of(text), &again));
    if (timeout_us > most)
        CHECK(again == most);
    else
        CHECK(again >= timeout_us && again - timeout_us <= timeout_us / 100000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bytes input = bytes_make(data, size);
    struct choices choices = choices_of(data, size);
    int64_t timeout_us;
    check_percent(input);
    check_base64(input);
    if (grpc_timeout_parse(input, &timeout_us)) {
        CHECK(timeout_us >= 0 && (timeout_us > 0 || input.data[0] == '0'));
        check_timeout(timeout_us);
    }
    check_timeout((int64_t)(choose_number(&choices, sizeof timeout_us) >> 1));
    return 0;
}
