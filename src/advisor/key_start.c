/* See key_start.h. */
#include "advisor/key_start.h"

#include "advisor/report.h"

#include <ctype.h>
#include <stdio.h>

bool is_one_of(uint8_t c, const char *characters)
{
    return c != 0 && strchr(characters, c) != NULL;
}

bool is_one_of_delimiters(uint8_t c)
{
    return is_one_of(c, "#|/:,;~@_.-");
}

size_t key_start_behind_word(const struct advice_observations *seen)
{
    enum { WORD_MOST = 40, DELIMITERS_MOST = 2 };
    if (seen->row_count == 0)
        return 0;
    bytes first = seen->rows[0].key, last = seen->rows[seen->row_count - 1].key;
    size_t word = 0, end;
    while (word < first.size && word < WORD_MOST && isalpha(first.data[word]))
        word++;
    for (end = word; end < first.size && end < word + DELIMITERS_MOST; end++)
        if (!is_one_of_delimiters(first.data[end]))
            break;
    /* what the first and the last key have in common, all between them have */
    return word > 0 && bytes_start_with(last, bytes_make(first.data, end)) ? end : 0;
}

size_t key_start_behind_common(const struct advice_observations *seen)
{
    if (seen->row_count == 0)
        return 0;
    bytes first = seen->rows[0].key, last = seen->rows[seen->row_count - 1].key;
    size_t end = 0;
    while (end < first.size && end < last.size && first.data[end] == last.data[end])
        end++;
    while (end > 0 && isdigit(first.data[end - 1]))
        end--;
    return end;
}

bytes key_start_field(const struct key_start *keys, size_t row)
{
    return bytes_from(keys->seen->rows[row].key, keys->start);
}

bool key_start_fits(size_t found, size_t all)
{
    return found * 100 >= all * KEYS_PERCENT;
}

void key_start_opening(const struct key_start *keys, char out[KEY_START_OPENING])
{
    struct buffer start = {0};
    advice_write_key(bytes_make(keys->seen->rows[0].key.data, keys->start), &start);
    buffer_append_byte(&start, 0);
    if (keys->start == 0 || start.failed)
        snprintf(out, KEY_START_OPENING, "begin with");
    else
        snprintf(out, KEY_START_OPENING, "begin with \"%s\" and", (const char *)start.data);
    buffer_free(&start);
}

status key_start_set_range(struct advisor *advisor, const struct key_start *keys, bytes newest,
                           bool is_falling, struct advice_finding *finding)
{
    bytes word = bytes_make(newest.data, keys->start), behind = {0};
    struct buffer text = {0};
    if (is_falling) {
        finding_set_range(finding, word, newest);
        return status_ok();
    }
    if (word.size > 0) { /* whose last byte is a letter or a delimiter */
        buffer_append(&text, word.data, word.size - 1);
        buffer_append_byte(&text, (uint8_t)(word.data[word.size - 1] + 1));
        TRY(keep_text(advisor, &text, &behind));
    }
    finding_set_range(finding, newest, behind);
    return status_ok();
}

status key_start_promote(struct advisor *advisor, const struct key_start *keys, bytes key,
                         size_t size, bytes *out)
{
    bytes field = bytes_from(key, keys->start), rest = bytes_from(field, size);
    bool has_delimiter = rest.size > 0 && is_one_of_delimiters(rest.data[0]);
    struct buffer text = {0};
    *out = bytes_make(NULL, 0);
    if (rest.size <= has_delimiter)
        return status_ok();
    buffer_append(&text, key.data, keys->start);
    buffer_append_bytes(&text, bytes_from(rest, has_delimiter));
    if (has_delimiter)
        buffer_append_byte(&text, rest.data[0]);
    buffer_append(&text, field.data, size);
    return keep_text(advisor, &text, out);
}
