/* Reading and writing fragments: see fragment.h; byte format in docs/internals/format.md. */
#include "row/fragment.h"

#include "base/big_endian.h"
#include "base/check.h"
#include "base/varint.h"
#include "row/fragment_private.h"

/* --- order --- */

static inline int place_class(enum entry_kind kind)
{
    switch (kind) {
    case ENTRY_OVERFLOW_MARK:
        return 0;
    case ENTRY_ROW_TOMBSTONE:
        return 1;
    case ENTRY_FAMILY_TOMBSTONE:
        return 2;
    default:
        return 3;
    }
}

static inline int compare_times(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

int entry_compare(const struct entry *a, const struct entry *b)
{
    if (a->family != b->family)
        return a->family < b->family ? -1 : 1;
    int class = place_class(a->kind), other_class = place_class(b->kind);
    if (class != other_class || class < 3)
        return class - other_class;
    int order = bytes_compare(a->qualifier, b->qualifier);
    if (order != 0)
        return order;
    bool is_cell = a->kind != ENTRY_COLUMN_TOMBSTONE;
    if (is_cell != (b->kind != ENTRY_COLUMN_TOMBSTONE))
        return is_cell ? 1 : -1;
    return is_cell ? compare_times(b->timestamp_us, a->timestamp_us)
                   : compare_times(a->timestamp_us, b->timestamp_us);
}

/* --- reading --- */

bool fragment_reader_start(struct fragment_reader *reader, bytes fragment)
{
    *reader = (struct fragment_reader){.is_bad = true};
    if (fragment.size < HEAD_SIZE || (fragment.data[0] & FORMAT_MASK) != FRAGMENT_FORMAT ||
        (fragment.data[0] & ~(FORMAT_MASK | KNOWN_FLAGS)) != 0)
        return false;
    reader->is_bad = false;
    reader->at = fragment.data + HEAD_SIZE;
    reader->end = fragment.data + fragment.size;
    reader->base_version = big_endian_read(fragment.data + BASE_VERSION_AT);
    reader->version = reader->base_version;
    reader->at_mark = (fragment.data[0] & HAS_MARK) != 0;
    return true;
}

static bool bad(struct fragment_reader *reader)
{
    reader->is_bad = true;
    reader->at = reader->end;
    return false;
}

/* Most numbers in a fragment have one byte. */
static inline const uint8_t *take(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    if (at < end && *at < 0x80) {
        *value = *at;
        return at + 1;
    }
    return varint_read(at, end, value);
}

static inline const uint8_t *take_bytes(const uint8_t *at, const uint8_t *end, bytes *out)
{
    uint64_t size;
    at = take(at, end, &size);
    if (at == NULL || size > (uint64_t)(end - at))
        return NULL;
    *out = bytes_make(at, size);
    return at + size;
}

static bool read_mark(struct fragment_reader *reader, struct entry *entry)
{
    const uint8_t *at = reader->at;
    uint64_t delta;
    reader->at_mark = false;
    if (reader->end - at <= MARK_FIXED_SIZE || (at[0] & ~MARK_HAS_OVERFLOW) != 0)
        return bad(reader);
    *entry = (struct entry){.kind = ENTRY_OVERFLOW_MARK,
                            .has_overflow = at[0] == MARK_HAS_OVERFLOW,
                            .moved = big_endian_read(at + 1),
                            .purged = big_endian_read(at + 9)};
    reader->at = take(at + MARK_FIXED_SIZE, reader->end, &delta);
    if (reader->at == NULL)
        return bad(reader);
    reader->version = reader->base_version + (uint64_t)zigzag_decode(delta);
    entry->version = reader->version;
    return true;
}

/* What an entry begins with: its family, its qualifier, its version. */
static inline const uint8_t *read_place(struct fragment_reader *reader, uint8_t tag,
                                        const uint8_t *at)
{
    uint64_t number;
    if ((tag & SAME_FAMILY) == 0) {
        at = take(at, reader->end, &number);
        if (at == NULL || number == 0 || number > UINT32_MAX - reader->family)
            return NULL;
        reader->family += (uint32_t)number;
        reader->qualifier = bytes_make(NULL, 0);
    }
    if ((tag & SAME_QUALIFIER) == 0) {
        at = take_bytes(at, reader->end, &reader->qualifier);
        if (at == NULL)
            return NULL;
    }
    if ((tag & SAME_VERSION) == 0) {
        at = take(at, reader->end, &number);
        if (at == NULL)
            return NULL;
        reader->version = reader->base_version + (uint64_t)zigzag_decode(number);
    }
    return at;
}

static inline const uint8_t *read_time(struct fragment_reader *reader, uint8_t tag,
                                       const uint8_t *at)
{
    uint64_t delta;
    if ((tag & SAME_TIMESTAMP) != 0)
        return at;
    at = take(at, reader->end, &delta);
    if (at != NULL)
        reader->timestamp_us =
            (int64_t)((uint64_t)reader->timestamp_us + (uint64_t)zigzag_decode(delta));
    return at;
}

/* A column tombstone ends a number of microseconds after its start; 0: never. */
static const uint8_t *read_end(struct fragment_reader *reader, const uint8_t *at, int64_t *end_us)
{
    uint64_t length;
    at = take(at, reader->end, &length);
    if (at == NULL || length > (uint64_t)INT64_MAX - (uint64_t)reader->timestamp_us)
        return NULL;
    *end_us = length == 0 ? INT64_MAX : (int64_t)((uint64_t)reader->timestamp_us + length);
    return at;
}

bool fragment_reader_next(struct fragment_reader *reader, struct entry *entry)
{
    if (reader->at_mark)
        return read_mark(reader, entry);
    if (reader->at == reader->end)
        return false;
    uint8_t tag = *reader->at;
    const uint8_t *at = read_place(reader, tag, reader->at + 1);
    enum entry_kind kind = tag & KIND_MASK;
    bytes value = {0};
    int64_t end_us = 0;
    if (at != NULL && kind >= ENTRY_COLUMN_TOMBSTONE)
        at = read_time(reader, tag, at);
    if (at != NULL && kind >= ENTRY_CELL)
        at = take_bytes(at, reader->end, &value);
    else if (at != NULL && kind == ENTRY_COLUMN_TOMBSTONE)
        at = read_end(reader, at, &end_us);
    if (at == NULL || (tag & ~KNOWN_TAG) != 0)
        return bad(reader);
    reader->at = at;
    bool has_column = kind >= ENTRY_COLUMN_TOMBSTONE;
    *entry = (struct entry){.kind = kind,
                            .family = reader->family,
                            .qualifier = has_column ? reader->qualifier : bytes_make(NULL, 0),
                            .timestamp_us = has_column ? reader->timestamp_us : 0,
                            .end_us = end_us,
                            .version = reader->version,
                            .value = value};
    return true;
}

bool fragment_reader_next_place(struct fragment_reader *reader, struct entry *cell)
{
    const struct entry before = *cell;
    bool is_add = entry_is_add(before.kind);
    while (fragment_reader_next(reader, cell))
        if (entry_is_cell(cell->kind) && (!is_add || entry_compare(&before, cell) != 0))
            return true;
    return false;
}

/* Whether the next entry belongs to a family of at least this number. */
static bool at_family(const struct fragment_reader *reader, uint32_t family)
{
    uint64_t step;
    if (reader->at == reader->end || reader->family >= family)
        return true;
    if ((*reader->at & SAME_FAMILY) != 0)
        return false;
    return take(reader->at + 1, reader->end, &step) == NULL || step >= family - reader->family;
}

void fragment_reader_seek_family(struct fragment_reader *reader, uint32_t family)
{
    struct entry skipped;
    while (reader->at_mark || !at_family(reader, family))
        if (!fragment_reader_next(reader, &skipped))
            return;
}

bool fragment_is_empty(bytes fragment)
{
    return fragment.size <= HEAD_SIZE;
}

static bool has_flag(bytes fragment, uint8_t flag)
{
    return fragment.size > 0 && (fragment.data[0] & flag) != 0;
}

bool fragment_has_overflow(bytes fragment)
{
    return has_flag(fragment, HAS_MARK) && fragment.size > MARK_AT &&
           (fragment.data[MARK_AT] & MARK_HAS_OVERFLOW) != 0;
}

bool fragment_has_mark(bytes fragment)
{
    return has_flag(fragment, HAS_MARK);
}

bool fragment_has_tombstones(bytes fragment)
{
    return has_flag(fragment, HAS_TOMBSTONES);
}

bool fragment_has_versions(bytes fragment)
{
    return has_flag(fragment, HAS_VERSIONS);
}

bool fragment_has_apart(bytes fragment)
{
    return has_flag(fragment, HAS_APART);
}

bool fragment_is_simple(bytes fragment)
{
    return !has_flag(fragment, HAS_MARK | HAS_TOMBSTONES | HAS_APART);
}

static bool is_in_order(bytes fragment, const struct entry *before, const struct entry *entry)
{
    int order = entry_compare(before, entry);
    bool is_apart = order == 0 && entry_is_add(entry->kind) && entry->kind == before->kind &&
                    entry->version < before->version && fragment_has_apart(fragment);
    return order < 0 || is_apart;
}

status fragment_check(bytes fragment)
{
    struct fragment_reader reader;
    struct entry entry, before;
    if (!fragment_reader_start(&reader, fragment))
        return status_make(STATUS_DATA_LOSS, "not a fragment: bad head");
    for (size_t count = 0; fragment_reader_next(&reader, &entry); count++) {
        if (count > 0 && !is_in_order(fragment, &before, &entry))
            return status_make(STATUS_DATA_LOSS, "entry %zu of the fragment is out of order",
                               count);
        before = entry;
    }
    if (reader.is_bad)
        return status_make(STATUS_DATA_LOSS, "an entry of the fragment does not parse");
    return status_ok();
}

bool fragment_is_sound(bytes fragment)
{
    status s = fragment_check(fragment);
    bool is_sound = status_is_ok(s);
    status_free(s);
    return is_sound;
}

/* --- writing --- */

/* An entry without its qualifier and value: at the longest, tag and five numbers. */
enum { ENTRY_MOSTLY = 12, ENTRY_MOST = 1 + 5 * VARINT_MAX_SIZE };

size_t fragment_room(size_t entry_count, size_t slice_bytes)
{
    return HEAD_SIZE + slice_bytes + entry_count * ENTRY_MOSTLY + ENTRY_MOST;
}

static uint8_t *store_big_endian(uint8_t *at, uint64_t word)
{
    big_endian_write(at, word);
    return at + BIG_ENDIAN_SIZE;
}

void fragment_writer_start(struct fragment_writer *writer, struct buffer *out,
                           uint64_t base_version)
{
    *writer = (struct fragment_writer){
        .out = out, .start = out->size, .base_version = base_version, .version = base_version};
    uint8_t *at = buffer_reserve(out, HEAD_SIZE);
    if (at == NULL)
        return;
    store_big_endian(at + BASE_VERSION_AT, base_version);
    out->size += HEAD_SIZE;
}

static uint8_t *write_delta(uint8_t *at, uint64_t from, uint64_t to)
{
    return varint_write(at, zigzag_encode((int64_t)(to - from)));
}

static uint8_t *write_bytes(uint8_t *at, bytes b)
{
    at = varint_write(at, b.size);
    if (b.size > 0)
        memcpy(at, b.data, b.size);
    return at + b.size;
}

static uint8_t *write_mark(struct fragment_writer *writer, uint8_t *at, const struct entry *entry)
{
    DCHECK(writer->family == 0 && (writer->flags & ~HAS_MARK) == 0);
    writer->flags |= HAS_MARK;
    writer->version = entry->version;
    *at++ = entry->has_overflow ? MARK_HAS_OVERFLOW : 0;
    at = store_big_endian(at, entry->moved);
    at = store_big_endian(at, entry->purged);
    return write_delta(at, writer->base_version, entry->version);
}

/* Sets in `*tag` what the entry has in common with the one before, and writes the rest. */
static inline uint8_t *write_place(struct fragment_writer *writer, uint8_t *tag, uint8_t *at,
                                   const struct entry *entry)
{
    if (entry->family == writer->family) {
        *tag |= SAME_FAMILY;
    } else {
        at = varint_write(at, entry->family - writer->family);
        writer->family = entry->family;
        writer->qualifier = bytes_make(NULL, 0);
        writer->has_cell = false;
    }
    if (entry->kind < ENTRY_COLUMN_TOMBSTONE || bytes_equal(entry->qualifier, writer->qualifier)) {
        *tag |= SAME_QUALIFIER;
    } else {
        at = write_bytes(at, entry->qualifier);
        writer->qualifier = entry->qualifier;
        writer->has_cell = false;
    }
    if (entry->version == writer->version) {
        *tag |= SAME_VERSION;
    } else {
        at = write_delta(at, writer->base_version, entry->version);
        writer->version = entry->version;
    }
    return at;
}

static inline uint8_t *write_time(struct fragment_writer *writer, uint8_t *tag, uint8_t *at,
                                  int64_t timestamp_us)
{
    if (timestamp_us == writer->timestamp_us) {
        *tag |= SAME_TIMESTAMP;
        return at;
    }
    at = write_delta(at, (uint64_t)writer->timestamp_us, (uint64_t)timestamp_us);
    writer->timestamp_us = timestamp_us;
    return at;
}

static inline uint8_t *write_entry(struct fragment_writer *writer, uint8_t *tag,
                                   const struct entry *entry)
{
    *tag = (uint8_t)entry->kind;
    uint8_t *at = write_place(writer, tag, tag + 1, entry);
    if (entry->kind >= ENTRY_COLUMN_TOMBSTONE)
        at = write_time(writer, tag, at, entry->timestamp_us);
    if (entry->kind < ENTRY_CELL) {
        writer->flags |= HAS_TOMBSTONES;
        if (entry->kind == ENTRY_COLUMN_TOMBSTONE)
            at = varint_write(at, entry->end_us == INT64_MAX
                                      ? 0
                                      : (uint64_t)entry->end_us - (uint64_t)entry->timestamp_us);
        return at;
    }
    if (writer->has_cell)
        writer->flags |= (*tag & SAME_TIMESTAMP) != 0 ? HAS_VERSIONS | HAS_APART : HAS_VERSIONS;
    writer->has_cell = true;
    return write_bytes(at, entry->value);
}

void fragment_writer_add(struct fragment_writer *writer, const struct entry *entry)
{
    DCHECK(entry->kind <= ENTRY_OVERFLOW_MARK);
    DCHECK(entry->kind == ENTRY_OVERFLOW_MARK || entry->family >= writer->family);
    struct buffer *out = writer->out;
    uint8_t *at = buffer_reserve(out, ENTRY_MOST + entry->qualifier.size + entry->value.size);
    if (at == NULL)
        return;
    uint8_t *end = entry->kind == ENTRY_OVERFLOW_MARK ? write_mark(writer, at, entry)
                                                      : write_entry(writer, at, entry);
    out->size += (size_t)(end - at);
}

void fragment_writer_finish(struct fragment_writer *writer)
{
    DCHECK(writer->out->failed || writer->out->size >= writer->start + HEAD_SIZE);
    if (!writer->out->failed)
        writer->out->data[writer->start] = FRAGMENT_FORMAT | writer->flags;
}

void fragment_set_version(uint8_t *fragment, uint64_t version)
{
    DCHECK(fragment != NULL);
    store_big_endian(fragment + BASE_VERSION_AT, version);
}

/* --- from elsewhere --- */

/* Versions in the bytes are differences to the base, except these. */
static void lower_at(uint8_t *at, uint64_t by)
{
    uint64_t version = big_endian_read(at);
    big_endian_write(at, version > by ? version - by : 0);
}

static status check_versions(bytes fragment, uint64_t least, bool *is_empty)
{
    struct fragment_reader reader;
    struct entry entry;
    *is_empty = true;
    if (!fragment_reader_start(&reader, fragment))
        return status_make(STATUS_DATA_LOSS, "a record's head does not parse");
    while (fragment_reader_next(&reader, &entry)) {
        *is_empty = false;
        if (entry.version < least)
            return status_make(STATUS_OUT_OF_RANGE, "a version is too low to be lowered");
    }
    return reader.is_bad ? status_make(STATUS_DATA_LOSS, "a record does not parse") : status_ok();
}

status fragment_lower_versions(uint8_t *fragment, size_t size, uint64_t by)
{
    bool is_empty;
    TRY(check_versions(bytes_make(fragment, size), by + 1, &is_empty));
    if (is_empty)
        return status_ok();
    big_endian_write(fragment + BASE_VERSION_AT, big_endian_read(fragment + BASE_VERSION_AT) - by);
    /* What a mark says of versions that low is said of none: all entries are above it. */
    if ((fragment[0] & HAS_MARK) != 0) {
        lower_at(fragment + MARK_AT + 1, by);
        lower_at(fragment + MARK_AT + 9, by);
    }
    return status_ok();
}
