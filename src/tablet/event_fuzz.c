/* Fuzzer: any bytes as an entry of events. What parses is written again, reads the same, and is
 * then written byte for byte as it was the last time.
 *
 * Input: an entry. */
#include "base/testing/fuzzing.h"
#include "tablet/event.h"

#include <stdlib.h>

/* What a damaged entry has before the damage is read, too, and must not go wrong in memory. */
static void read_all(bytes entry)
{
    struct event_reader reader;
    struct log_event event;
    struct event_change change;
    uint64_t sequence = 0;
    event_reader_start(&reader, entry);
    while (!reader.is_bad && event_next(&reader, &event)) {
        CHECK(sequence == 0 || event.sequence > sequence);
        sequence = event.sequence;
        while (event_next_change(&reader, &change))
            CHECK(change.key.size + change.value.size + change.list.size <= entry.size);
    }
}

static void write_row(struct event_writer *writer, const struct event_change *change)
{
    struct packed_change packed = {.big_count = change->count};
    packed.big = calloc(change->count + 1, sizeof *packed.big);
    CHECK(packed.big != NULL);
    if (change->count > 0)
        event_big_cells(change, packed.big);
    buffer_append_bytes(&packed.fragment, change->value);
    event_row(writer, change->keyspace, change->key, &packed,
              change->has_token ? &change->token : NULL);
    buffer_free(&packed.fragment);
    free(packed.big);
}

static void write_files(struct event_writer *writer, const struct event_change *change)
{
    struct event_file *files = calloc(change->count + 1, sizeof *files);
    CHECK(files != NULL);
    event_files(change, files);
    event_files_taken_in(writer, change->keyspace, files, change->count);
    free(files);
}

static void write_change(struct event_writer *writer, const struct event_change *change)
{
    switch (change->kind) {
    case CHANGE_ROW:
        write_row(writer, change);
        return;
    case CHANGE_KEYSPACES_MADE:
        event_keyspaces_made(writer, change->made, change->keyspace, change->count);
        return;
    case CHANGE_KEYSPACE_DROPPED:
        event_keyspace_dropped(writer, change->keyspace);
        return;
    case CHANGE_FILES_TAKEN_IN:
        write_files(writer, change);
        return;
    case CHANGE_PUT:
    case CHANGE_MERGE:
    case CHANGE_DELETE:
    case CHANGE_DELETE_RANGE:
        event_record(writer, change->kind, change->keyspace, change->key, change->value);
        return;
    }
    CHECK(false);
}

/* False if it does not parse. */
static bool rewrite(bytes entry, struct buffer *out)
{
    struct event_reader reader;
    struct event_writer writer;
    struct log_event event;
    struct event_change change;
    buffer_clear(out);
    event_writer_start(&writer, out);
    if (!event_reader_start(&reader, entry))
        return false;
    while (event_next(&reader, &event)) {
        event_begin(&writer, event.kind, event.sequence, event.version);
        while (event_next_change(&reader, &change))
            write_change(&writer, &change);
        event_end(&writer);
    }
    CHECK(!out->failed);
    return !reader.is_bad;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer once = {0}, twice = {0};
    read_all(bytes_make(data, size));
    if (rewrite(bytes_make(data, size), &once)) {
        CHECK(once.size <= size); /* numbers are as short as they can be */
        CHECK(rewrite(buffer_bytes(&once), &twice));
        CHECK(bytes_equal(buffer_bytes(&once), buffer_bytes(&twice)));
    }
    buffer_free(&once);
    buffer_free(&twice);
    return 0;
}
