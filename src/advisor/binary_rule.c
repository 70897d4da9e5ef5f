/* Keys of raw bytes, which people cannot read, and whose order is not that of the values in them:
 * packed numbers, messages, and either of these in base 64. Bytes behind a name in clear are left
 * alone: they keep a number's order there, and the name finds its rows. */
#include "advisor/key_start.h"
#include "base/utf8.h"

#include <ctype.h>

enum { NAME_LEAST = 3 }; /* bytes in clear, and a delimiter behind them */

static bool is_clear(uint8_t c)
{
    return c >= ' ' && c != 0x7f;
}

/* Whether it has control characters or is no text, and not behind a name. */
static bool is_raw(bytes key)
{
    size_t clear = 0;
    while (clear < key.size && is_clear(key.data[clear]) && key.data[clear] < 0x80)
        clear++;
    bool has_name = clear > NAME_LEAST && is_one_of_delimiters(key.data[clear - 1]);
    if (clear == key.size || has_name)
        return false;
    for (size_t i = 0; i < key.size; i++)
        if (!is_clear(key.data[i]))
            return true;
    return !utf8_is_valid(key);
}

static int value_of(uint8_t c)
{
    if (isupper(c))
        return c - 'A';
    if (islower(c))
        return c - 'a' + 26;
    if (isdigit(c))
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* Whether it is base 64 of something raw: of whole groups, the last one filled with "=". */
static bool is_raw_in_base64(bytes key)
{
    enum { GROUP = 4, LEAST = 16, BYTES_MOST = 96 };
    uint8_t decoded[BYTES_MOST];
    size_t size = key.size, count = 0;
    uint32_t bits = 0;
    while (size > 0 && key.data[size - 1] == '=')
        size--;
    if (key.size < LEAST || key.size % GROUP != 0 || size == key.size || key.size - size > 2)
        return false;
    for (size_t i = 0; i < size && count + 2 < BYTES_MOST; i++) {
        int value = value_of(key.data[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (uint32_t)value;
        if (i % GROUP != 0)
            decoded[count++] = (uint8_t)(bits >> (6 - 2 * (i % GROUP)));
    }
    return is_raw(bytes_make(decoded, count));
}

status advise_on_binary(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    size_t raw = 0, in_base64 = 0;
    for (size_t i = 0; i < seen->row_count; i++) {
        raw += is_raw(seen->rows[i].key);
        in_base64 += is_raw_in_base64(seen->rows[i].key);
    }
    size_t most = raw > in_base64 ? raw : in_base64;
    if (seen->row_count < KEYS_HASHED_LEAST || most * 100 < seen->row_count * BINARY_PERCENT)
        return status_ok();
    TRY(advise(advisor, RULE_key_binary, &finding, "%zu of %zu sampled keys are %s.", most,
               seen->row_count,
               raw >= in_base64 ? "raw bytes and no text" : "raw bytes in base 64"));
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN; i++)
        finding_add_key(finding, row_to_show(seen, i)->key);
    return status_ok();
}
