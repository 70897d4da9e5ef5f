/* See event.h. */
#include "tablet/event.h"

#include "base/check.h"
#include "base/varint.h"

#include <endian.h>

enum {
    ENTRY_FORMAT = 1,
    SEQUENCE_BYTES = 8,
    TOKEN_BYTES = 16,
    CRC_BYTES = 4,
    KIND_MASK = 0x0f,
    FLAG_TOKEN = 0x10,
    FLAG_BIG = 0x20,
    FLAG_LOG = 0x10, /* of keyspaces that were made */
    END_OF_EVENT = 0,
    LEAST_BIG_CELL = 4, /* bytes of one in an entry */
    LEAST_FILE = 1 + CRC_BYTES,
};

/* --- writing --- */

static void append_slice(struct buffer *out, bytes b)
{
    buffer_append_varint(out, b.size);
    buffer_append_bytes(out, b);
}

void event_writer_start(struct event_writer *writer, struct buffer *out)
{
    *writer = (struct event_writer){.out = out, .is_first = true};
    buffer_append_byte(out, ENTRY_FORMAT);
}

void event_begin(struct event_writer *writer, enum event_kind kind, uint64_t sequence,
                 uint64_t version)
{
    CHECK(!writer->is_within);
    CHECK(writer->is_first || sequence > writer->sequence);
    buffer_append_byte(writer->out, (uint8_t)kind);
    if (writer->is_first) {
        uint64_t first = htobe64(sequence);
        buffer_append(writer->out, &first, sizeof first);
    } else {
        buffer_append_varint(writer->out, sequence - writer->sequence);
    }
    buffer_append_varint(writer->out, zigzag_encode((int64_t)(version - sequence)));
    writer->sequence = sequence;
    writer->is_first = false;
    writer->is_within = true;
}

void event_end(struct event_writer *writer)
{
    DCHECK(writer->is_within);
    writer->is_within = false;
    buffer_append_byte(writer->out, END_OF_EVENT);
}

static void append_token(struct buffer *out, const struct fingerprint *token)
{
    uint64_t words[] = {htole64(token->words[0]), htole64(token->words[1])};
    buffer_append(out, words, sizeof words);
}

static void append_big_cells(struct buffer *out, const struct packed_change *change)
{
    buffer_append_varint(out, change->big_count);
    for (size_t i = 0; i < change->big_count; i++) {
        const struct big_cell *cell = &change->big[i];
        buffer_append_varint(out, cell->family);
        append_slice(out, cell->qualifier);
        buffer_append_varint(out, zigzag_encode(cell->timestamp_us));
        append_slice(out, cell->value);
    }
}

void event_row(struct event_writer *writer, uint64_t keyspace, bytes row_key,
               const struct packed_change *change, const struct fingerprint *token)
{
    DCHECK(writer->is_within && row_key.size > 0 && keyspace != 0);
    struct buffer *out = writer->out;
    int flags = (token != NULL ? FLAG_TOKEN : 0) | (change->big_count > 0 ? FLAG_BIG : 0);
    buffer_append_byte(out, (uint8_t)(CHANGE_ROW | flags));
    buffer_append_varint(out, keyspace);
    append_slice(out, row_key);
    append_slice(out, buffer_bytes(&change->fragment));
    if (token != NULL)
        append_token(out, token);
    if (change->big_count > 0)
        append_big_cells(out, change);
}

void event_record(struct event_writer *writer, enum event_change_kind kind, uint64_t keyspace,
                  bytes key, bytes value)
{
    DCHECK(writer->is_within && keyspace != 0);
    buffer_append_byte(writer->out, (uint8_t)kind);
    buffer_append_varint(writer->out, keyspace);
    append_slice(writer->out, key);
    if (kind != CHANGE_DELETE)
        append_slice(writer->out, value);
}

void event_keyspaces_made(struct event_writer *writer, enum keyspace_kind kind, uint64_t first,
                          uint64_t count)
{
    DCHECK(writer->is_within && first != 0 && count > 0);
    uint8_t flag = kind == KEYSPACE_LOG ? FLAG_LOG : 0;
    buffer_append_byte(writer->out, CHANGE_KEYSPACES_MADE | flag);
    buffer_append_varint(writer->out, first);
    buffer_append_varint(writer->out, count);
}

void event_keyspace_dropped(struct event_writer *writer, uint64_t keyspace)
{
    DCHECK(writer->is_within && keyspace != 0);
    buffer_append_byte(writer->out, CHANGE_KEYSPACE_DROPPED);
    buffer_append_varint(writer->out, keyspace);
}

void event_files_taken_in(struct event_writer *writer, uint64_t keyspace,
                          const struct event_file *files, size_t count)
{
    DCHECK(writer->is_within && keyspace != 0);
    buffer_append_byte(writer->out, CHANGE_FILES_TAKEN_IN);
    buffer_append_varint(writer->out, keyspace);
    buffer_append_varint(writer->out, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t crc32c = htobe32(files[i].crc32c);
        buffer_append_varint(writer->out, files[i].size);
        buffer_append(writer->out, &crc32c, sizeof crc32c);
    }
}

size_t event_row_overhead(const struct packed_change *change)
{
    const size_t row = 1 + 4 * VARINT_MAX_SIZE + TOKEN_BYTES;
    return row + change->big_count * 4 * VARINT_MAX_SIZE;
}

/* --- reading --- */

/* All `take_` functions set is_bad and return zeroes when the bytes do not have it. */
static uint64_t take_number(struct event_reader *reader)
{
    uint64_t value = 0;
    const uint8_t *at = varint_read(reader->at, reader->end, &value);
    if (at == NULL) {
        reader->is_bad = true;
        return 0;
    }
    reader->at = at;
    return value;
}

static bytes take_exactly(struct event_reader *reader, uint64_t size)
{
    if (reader->is_bad || size > (size_t)(reader->end - reader->at)) {
        reader->is_bad = true;
        return bytes_make(NULL, 0);
    }
    bytes taken = bytes_make(reader->at, size);
    reader->at += size;
    return taken;
}

static bytes take_slice(struct event_reader *reader)
{
    return take_exactly(reader, take_number(reader));
}

static uint8_t take_byte(struct event_reader *reader)
{
    bytes b = take_exactly(reader, 1);
    return b.size == 0 ? 0 : b.data[0];
}

bool event_reader_start(struct event_reader *reader, bytes entry)
{
    *reader = (struct event_reader){
        .at = entry.data, .end = bytes_from(entry, entry.size).data, .is_first = true};
    if (take_byte(reader) != ENTRY_FORMAT)
        reader->is_bad = true;
    return !reader->is_bad;
}

static uint64_t take_sequence(struct event_reader *reader)
{
    uint64_t first = 0;
    if (!reader->is_first) {
        uint64_t step = take_number(reader);
        if (step == 0 || step > UINT64_MAX - reader->sequence)
            reader->is_bad = true;
        return reader->sequence + step;
    }
    bytes b = take_exactly(reader, SEQUENCE_BYTES);
    if (b.size == SEQUENCE_BYTES)
        memcpy(&first, b.data, sizeof first);
    return be64toh(first);
}

static bool take_event(struct event_reader *reader, struct log_event *event)
{
    uint8_t kind = take_byte(reader);
    reader->sequence = take_sequence(reader);
    reader->is_first = false;
    uint64_t version = reader->sequence + (uint64_t)zigzag_decode(take_number(reader));
    if (kind < EVENT_ROWS || kind > EVENT_COLLECT)
        reader->is_bad = true;
    *event = (struct log_event){
        .kind = (enum event_kind)kind, .sequence = reader->sequence, .version = version};
    reader->is_within = !reader->is_bad;
    return !reader->is_bad;
}

bool event_next(struct event_reader *reader, struct log_event *event)
{
    struct event_change passed_over;
    while (event_next_change(reader, &passed_over))
        ;
    if (reader->is_bad || reader->at == reader->end)
        return false;
    return take_event(reader, event);
}

static struct big_cell take_big_cell(struct event_reader *reader)
{
    uint64_t family = take_number(reader);
    struct big_cell cell = {.family = (uint32_t)family, .qualifier = take_slice(reader)};
    cell.timestamp_us = zigzag_decode(take_number(reader));
    cell.value = take_slice(reader);
    if (family > UINT32_MAX)
        reader->is_bad = true;
    return cell;
}

static struct event_file take_file(struct event_reader *reader)
{
    struct event_file file = {.size = take_number(reader)};
    uint32_t crc32c = 0;
    bytes b = take_exactly(reader, CRC_BYTES);
    if (b.size == CRC_BYTES)
        memcpy(&crc32c, b.data, sizeof crc32c);
    file.crc32c = be32toh(crc32c);
    return file;
}

/* A count that the rest cannot hold is not followed: memory would be claimed for it. */
static uint64_t take_count(struct event_reader *reader, size_t least_bytes)
{
    uint64_t count = take_number(reader);
    if (count == 0 || count > (size_t)(reader->end - reader->at) / least_bytes)
        reader->is_bad = true;
    return reader->is_bad ? 0 : count;
}

static void take_big_cells(struct event_reader *reader, struct event_change *change)
{
    change->count = take_count(reader, LEAST_BIG_CELL);
    const uint8_t *from = reader->at;
    for (uint64_t i = 0; i < change->count && !reader->is_bad; i++)
        (void)take_big_cell(reader);
    change->list = bytes_make(from, (size_t)(reader->at - from));
}

static void take_files(struct event_reader *reader, struct event_change *change)
{
    uint64_t count = take_number(reader); /* none, if the backup had no rows */
    if (count > (size_t)(reader->end - reader->at) / LEAST_FILE)
        reader->is_bad = true;
    const uint8_t *from = reader->at;
    for (uint64_t i = 0; i < count && !reader->is_bad; i++)
        (void)take_file(reader);
    change->count = count;
    change->list = bytes_make(from, (size_t)(reader->at - from));
}

static void take_token(struct event_reader *reader, struct event_change *change)
{
    uint64_t words[2] = {0};
    bytes b = take_exactly(reader, TOKEN_BYTES);
    if (b.size == TOKEN_BYTES)
        memcpy(words, b.data, sizeof words);
    change->has_token = true;
    change->token.words[0] = le64toh(words[0]);
    change->token.words[1] = le64toh(words[1]);
}

static void take_row(struct event_reader *reader, struct event_change *change, uint8_t flags)
{
    change->key = take_slice(reader);
    change->value = take_slice(reader);
    if (flags & FLAG_TOKEN)
        take_token(reader, change);
    if (flags & FLAG_BIG)
        take_big_cells(reader, change);
}

static void take_range(struct event_reader *reader, struct event_change *change)
{
    change->key = take_slice(reader);
    change->value = take_slice(reader);
    if (bytes_compare(change->key, change->value) >= 0)
        reader->is_bad = true;
}

static void take_made(struct event_reader *reader, struct event_change *change, uint8_t flags)
{
    enum { MOST_AT_ONCE = 1 << 20 };
    change->made = flags & FLAG_LOG ? KEYSPACE_LOG : KEYSPACE_ROWS;
    change->count = take_number(reader);
    if (change->count == 0 || change->count > MOST_AT_ONCE ||
        change->keyspace > UINT64_MAX - change->count)
        reader->is_bad = true;
}

static uint8_t flags_of(enum event_change_kind kind)
{
    if (kind == CHANGE_ROW)
        return FLAG_TOKEN | FLAG_BIG;
    return kind == CHANGE_KEYSPACES_MADE ? FLAG_LOG : 0;
}

static void take_body(struct event_reader *reader, struct event_change *change, uint8_t flags)
{
    switch (change->kind) {
    case CHANGE_ROW:
        take_row(reader, change, flags);
        return;
    case CHANGE_PUT:
    case CHANGE_MERGE:
        change->key = take_slice(reader);
        change->value = take_slice(reader);
        if (change->value.size == 0)
            reader->is_bad = true;
        return;
    case CHANGE_DELETE:
        change->key = take_slice(reader);
        return;
    case CHANGE_DELETE_RANGE:
        take_range(reader, change);
        return;
    case CHANGE_KEYSPACES_MADE:
        take_made(reader, change, flags);
        return;
    case CHANGE_KEYSPACE_DROPPED:
        return;
    case CHANGE_FILES_TAKEN_IN:
        take_files(reader, change);
        return;
    }
    reader->is_bad = true;
}

bool event_next_change(struct event_reader *reader, struct event_change *change)
{
    if (!reader->is_within || reader->is_bad)
        return false;
    uint8_t head = take_byte(reader);
    if (head == END_OF_EVENT) {
        reader->is_within = false;
        return false;
    }
    *change = (struct event_change){.kind = (enum event_change_kind)(head & KIND_MASK)};
    uint8_t flags = head & (uint8_t)~KIND_MASK;
    if (flags & ~flags_of(change->kind))
        reader->is_bad = true;
    change->keyspace = take_number(reader);
    if (change->keyspace == 0)
        reader->is_bad = true;
    take_body(reader, change, flags);
    return !reader->is_bad;
}

/* --- a change by itself --- */

void event_change_write(struct buffer *out, const struct packed_change *change)
{
    buffer_append_byte(out, change->big_count > 0 ? FLAG_BIG : 0);
    append_slice(out, buffer_bytes(&change->fragment));
    if (change->big_count > 0)
        append_big_cells(out, change);
}

bool event_change_read(bytes encoded, struct event_change *out)
{
    struct event_reader reader = {.at = encoded.data,
                                  .end = bytes_from(encoded, encoded.size).data};
    *out = (struct event_change){.kind = CHANGE_ROW};
    uint8_t flags = take_byte(&reader);
    out->value = take_slice(&reader);
    if (flags == FLAG_BIG)
        take_big_cells(&reader, out);
    return !reader.is_bad && reader.at == reader.end && (flags == 0 || flags == FLAG_BIG);
}

/* --- lists --- */

void event_big_cells(const struct event_change *change, struct big_cell *cells)
{
    struct event_reader reader = {.at = change->list.data,
                                  .end = bytes_from(change->list, change->list.size).data};
    for (uint64_t i = 0; i < change->count; i++)
        cells[i] = take_big_cell(&reader);
    CHECK(!reader.is_bad);
}

void event_files(const struct event_change *change, struct event_file *files)
{
    struct event_reader reader = {.at = change->list.data,
                                  .end = bytes_from(change->list, change->list.size).data};
    for (uint64_t i = 0; i < change->count; i++)
        files[i] = take_file(&reader);
    CHECK(!reader.is_bad);
}

/* Only events of the catalog name files. */
status event_visit_taken_in(bytes entry,
                            status (*visit)(void *context, const struct event_change *change),
                            void *context)
{
    struct event_reader reader;
    struct log_event event;
    struct event_change change;
    event_reader_start(&reader, entry);
    while (!reader.is_bad && event_next(&reader, &event))
        while (event.kind == EVENT_CATALOG && event_next_change(&reader, &change))
            if (change.kind == CHANGE_FILES_TAKEN_IN)
                TRY(visit(context, &change));
    return status_ok();
}

bool event_entry_bounds(bytes entry, uint64_t *first, uint64_t *last)
{
    struct event_reader reader;
    struct log_event event;
    bool has_any = false;
    if (!event_reader_start(&reader, entry))
        return false;
    while (event_next(&reader, &event)) {
        if (!has_any)
            *first = event.sequence;
        *last = event.sequence;
        has_any = true;
    }
    return has_any && !reader.is_bad;
}
