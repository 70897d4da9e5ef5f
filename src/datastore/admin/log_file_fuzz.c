/* Fuzzer: files of records. A text that is no file of records is refused; one that is read is that
 * which would be written; a written one is read, and once a bit of it is turned it is not.
 *
 * Input: choices (base/testing/fuzzing.h): the bit, records of a few bytes or of whole blocks; and
 * the same input once more, as a file. */
#include "base/testing/fuzzing.h"
#include "datastore/admin/log_file.h"

#include <stdlib.h>

enum { MOST_RECORD = 1 << 18, MOST_RECORDS = 8, MOST_BYTES = 40 };

struct memory_file {
    bytes left;
};

static status read_memory(void *context, uint8_t *to, size_t size, size_t *got)
{
    struct memory_file *file = context;
    *got = size < file->left.size ? size : file->left.size;
    if (*got > 0)
        memcpy(to, file->left.data, *got);
    file->left = bytes_from(file->left, *got);
    return status_ok();
}

/* Reads all and writes it again; true if it could be read to its end. */
static bool rewrite(bytes content, struct buffer *again)
{
    struct memory_file file = {content};
    struct log_reader *reader = calloc(1, sizeof *reader);
    struct log_writer writer = {0};
    bool found = true;
    bytes record;
    CHECK(reader != NULL);
    *reader = (struct log_reader){.source = read_memory, .context = &file, .most = MOST_RECORD};
    status s = status_ok();
    while (status_is_ok(s) && found) {
        s = log_read(reader, &record, &found);
        if (status_is_ok(s) && found)
            CHECK(status_is_ok(log_append(&writer, record, again)));
    }
    CHECK(status_is_ok(s) || s.code == STATUS_DATA_LOSS);
    bool is_whole = status_is_ok(s);
    status_free(s);
    log_reader_free(reader);
    free(reader);
    return is_whole;
}

static void write_chosen(struct choices *choices, struct buffer *out)
{
    struct log_writer writer = {0};
    unsigned count = choose(choices, MOST_RECORDS);
    for (unsigned i = 0; i < count; i++) {
        struct buffer record = {0};
        buffer_append_bytes(&record, choose_bytes(choices, MOST_BYTES));
        size_t more = choose_bool(choices) ? choose_number(choices, 2) : 0;
        uint8_t *to = buffer_reserve(&record, more + 1);
        CHECK(to != NULL);
        memset(to, 'x', more);
        record.size += more;
        CHECK(status_is_ok(log_append(&writer, buffer_bytes(&record), out)));
        buffer_free(&record);
    }
    CHECK(!out->failed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct choices choices = choices_of(data, size);
    struct buffer given = {0}, again = {0};
    size_t bit = choose_number(&choices, 3);
    write_chosen(&choices, &given);
    CHECK(rewrite(buffer_bytes(&given), &again));
    CHECK(bytes_equal(buffer_bytes(&given), buffer_bytes(&again)));
    buffer_clear(&again);
    if (given.size > 0) {
        bit %= given.size * 8;
        given.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK(!rewrite(buffer_bytes(&given), &again));
    }
    /* A file that is read may have ended a record where the writer would not: the size tells. */
    buffer_clear(&again);
    bytes file = bytes_make(data, size);
    if (rewrite(file, &again) && again.size == size)
        CHECK(bytes_equal(buffer_bytes(&again), file));
    buffer_free(&given);
    buffer_free(&again);
    return 0;
}
