/* Reading the log. See log.h.
 *
 * Segments are read one after the other. Within one there is a cursor for each tablet, over the
 * records behind the least position of the query's parts, and the cursors' records come in one
 * order by a heap of them. */
#include "base/check.h"
#include "base/key_range.h"
#include "stream/log_private.h"

#include <endian.h>
#include <stdlib.h>

/* The records of one tablet in the present segment. */
struct source {
    struct store_cursor *cursor;
    struct stream_position position; /* of the record that it is at */
};

struct reading {
    struct stream_log *log;
    const struct stream_query *query;
    status (*visit)(void *context, const struct stream_record *record, bool *enough);
    void *context;
    struct stream_position after; /* the least of the parts' */
    struct stream_position *reached;
    struct source *sources; /* a heap: the first has the least position */
    size_t count;
    size_t size; /* bytes of records that were looked at */
    bool is_over;
};

/* --- the heap --- */

static bool is_before(const struct source *a, const struct source *b)
{
    return stream_position_compare(a->position, b->position) < 0;
}

static void swap(struct source *a, struct source *b)
{
    struct source other = *a;
    *a = *b;
    *b = other;
}

static void sift_down(struct reading *r, size_t at)
{
    for (;;) {
        size_t least = at, child = 2 * at + 1;
        for (size_t i = child; i < child + 2 && i < r->count; i++)
            if (is_before(&r->sources[i], &r->sources[least]))
                least = i;
        if (least == at)
            return;
        swap(&r->sources[at], &r->sources[least]);
        at = least;
    }
}

/* --- sources --- */

/* To the record that the cursor is at, or to the next one, over pieces. `*ends`: there is none. */
static status find_record(struct source *source, bool *ends)
{
    uint64_t tablet;
    uint32_t piece = 0;
    *ends = true;
    while (store_cursor_valid(source->cursor)) {
        bytes key = store_cursor_key(source->cursor);
        if (!stream_record_key_read(key, &tablet, &source->position, &piece))
            return status_make(STATUS_DATA_LOSS, "a change stream has a key of %zu bytes",
                               key.size);
        *ends = piece != 0;
        if (piece == 0)
            return status_ok();
        uint8_t behind[STREAM_KEY_BYTES];
        stream_record_key(behind, tablet, source->position, UINT32_MAX);
        store_cursor_seek(source->cursor, bytes_make(behind, sizeof behind));
    }
    return store_cursor_status(source->cursor);
}

static status create_cursor(const struct reading *r, struct keyspace *keyspace, uint64_t tablet,
                            struct store_cursor **out)
{
    uint8_t lower[STREAM_KEY_BYTES], upper[STREAM_KEY_BYTES];
    const struct stream_position behind = {r->query->through, UINT32_MAX};
    stream_record_key(lower, tablet, r->after, UINT32_MAX);
    stream_record_key(upper, tablet, behind, UINT32_MAX);
    const struct store_cursor_options options = {.lower = bytes_make(lower, sizeof lower),
                                                 .upper = bytes_make(upper, sizeof upper),
                                                 .read_tier = STORE_READ_ANY};
    return store_cursor_create(keyspace, &options, out);
}

static status open_source(struct reading *r, struct keyspace *keyspace, uint64_t tablet)
{
    struct source *source = &r->sources[r->count];
    bool ends = false;
    TRY(create_cursor(r, keyspace, tablet, &source->cursor));
    store_cursor_first(source->cursor);
    status s = find_record(source, &ends);
    if (status_is_ok(s) && !ends)
        r->count++;
    else
        store_cursor_destroy(source->cursor);
    return s;
}

static status open_sources(struct reading *r, struct keyspace *keyspace)
{
    for (size_t i = 0; i < r->query->tablet_count; i++)
        TRY(open_source(r, keyspace, r->query->tablets[i]));
    for (size_t i = r->count / 2; i > 0; i--)
        sift_down(r, i - 1);
    return status_ok();
}

static void close_sources(struct reading *r)
{
    while (r->count > 0)
        store_cursor_destroy(r->sources[--r->count].cursor);
}

static status advance_first(struct reading *r)
{
    bool ends = false;
    struct source *first = &r->sources[0];
    store_cursor_next(first->cursor);
    TRY(find_record(first, &ends));
    if (ends) {
        store_cursor_destroy(first->cursor);
        *first = r->sources[--r->count];
    }
    sift_down(r, 0);
    return status_ok();
}

/* --- records --- */

/* NULL: the row is in none. */
static const struct stream_part *part_of(const struct stream_query *query, bytes row_key)
{
    if (bytes_compare(row_key, query->start) < 0)
        return NULL;
    for (size_t i = 0; i < query->part_count; i++)
        if (key_is_before_end(row_key, query->parts[i].end))
            return &query->parts[i];
    return NULL;
}

static bool is_wanted(const struct stream_query *query, const struct stream_record *record)
{
    const struct stream_part *part = part_of(query, record->row_key);
    return part != NULL && stream_position_compare(record->position, part->after) > 0;
}

static status look_at_first(struct reading *r)
{
    const struct source *first = &r->sources[0];
    bytes key = store_cursor_key(first->cursor), value = store_cursor_value(first->cursor);
    struct stream_record record;
    bool enough = false;
    TRY(stream_record_read(key, value, &record));
    if (is_wanted(r->query, &record))
        TRY(r->visit(r->context, &record, &enough));
    *r->reached = record.position;
    r->size += key.size + value.size;
    r->is_over = enough || r->size >= r->query->most_bytes;
    return status_ok();
}

static status read_segment(struct reading *r, struct keyspace *keyspace)
{
    status s = open_sources(r, keyspace);
    while (status_is_ok(s) && r->count > 0 && !r->is_over) {
        s = look_at_first(r);
        if (status_is_ok(s) && !r->is_over)
            s = advance_first(r);
    }
    close_sources(r);
    return s;
}

/* --- segments --- */

/* Behind all that the segment may have. */
static struct stream_position end_of(const struct held_segments *held, size_t i)
{
    bool is_last = i + 1 == held->count;
    return (struct stream_position){is_last ? UINT64_MAX : held->all[i + 1]->from - 1, UINT32_MAX};
}

bool segments_may_have(const struct held_segments *held, size_t i, struct stream_position after,
                       uint64_t through)
{
    return held->all[i]->from <= through && stream_position_compare(end_of(held, i), after) > 0;
}

static status read_segments(struct reading *r, const struct held_segments *held)
{
    for (size_t i = 0; i < held->count && !r->is_over; i++)
        if (segments_may_have(held, i, r->after, r->query->through))
            TRY(read_segment(r, held->all[i]->keyspace));
    if (!r->is_over)
        *r->reached = (struct stream_position){r->query->through, UINT32_MAX};
    return status_ok();
}

static struct stream_position least_position(const struct stream_query *query)
{
    struct stream_position least = query->parts[0].after;
    for (size_t i = 1; i < query->part_count; i++)
        if (stream_position_compare(query->parts[i].after, least) < 0)
            least = query->parts[i].after;
    return least;
}

/* All behind the position is there if it is that before the oldest, or later. */
status log_start_check(struct stream_position after, const struct log_start *start)
{
    const struct stream_position last = {start->sequence - 1, UINT32_MAX};
    return start->sequence != UINT64_MAX && stream_position_compare(after, last) >= 0
               ? status_ok()
               : log_start_refuse(start);
}

static status read_held(struct reading *r, const struct held_segments *held)
{
    TRY(log_start_check(r->after, &held->start));
    r->sources = calloc(r->query->tablet_count + 1, sizeof *r->sources);
    if (r->sources == NULL)
        return status_out_of_memory();
    status s = read_segments(r, held);
    free(r->sources);
    return s;
}

status stream_log_read(struct stream_log *log, const struct stream_query *query,
                       status (*visit)(void *context, const struct stream_record *record,
                                       bool *enough),
                       void *context, struct stream_position *reached)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    DCHECK(query->part_count > 0);
    struct reading r = {.log = log,
                        .query = query,
                        .visit = visit,
                        .context = context,
                        .after = least_position(query),
                        .reached = reached};
    struct held_segments held;
    *reached = r.after;
    if (!segments_hold(log, &held))
        return status_out_of_memory();
    status s = read_held(&r, &held);
    segments_release(log, &held);
    return s;
}

/* --- pieces --- */

/* The segment in which a record of that sequence is; NULL: none has any that old. */
static const struct segment *segment_of(const struct held_segments *held, uint64_t sequence)
{
    for (size_t i = held->count; i > 0 && sequence >= held->start.sequence; i--)
        if (held->all[i - 1]->from <= sequence)
            return held->all[i - 1];
    return NULL;
}

static status get_piece(struct keyspace *keyspace, bytes key, struct buffer *out)
{
    struct store_value value = {0};
    enum store_presence presence = STORE_ABSENT;
    status s = store_get(keyspace, NULL, key, STORE_READ_ANY, &value, &presence);
    if (status_is_ok(s) && presence != STORE_FOUND)
        s = status_make(STATUS_DATA_LOSS, "a piece of a large value of a change stream is missing");
    if (status_is_ok(s))
        buffer_append_bytes(out, value.bytes);
    store_value_release(&value);
    return status_is_ok(s) && out->failed ? status_out_of_memory() : s;
}

status stream_log_read_piece(struct stream_log *log, uint64_t tablet,
                             struct stream_position position, uint32_t piece, struct buffer *out)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    DCHECK(piece > 0);
    struct held_segments held;
    uint8_t key[STREAM_KEY_BYTES];
    stream_record_key(key, tablet, position, piece);
    if (!segments_hold(log, &held))
        return status_out_of_memory();
    const struct segment *segment = segment_of(&held, position.sequence);
    status s = segment == NULL
                   ? status_make(STATUS_OUT_OF_RANGE, "the change stream has that record no more")
                   : get_piece(segment->keyspace, bytes_make(key, sizeof key), out);
    segments_release(log, &held);
    return s;
}

/* --- times --- */

/* Moves on to the last mark of before the time. */
static status find_mark(struct keyspace *keyspace, int64_t time_us, struct stream_position *out)
{
    static const uint8_t behind_marks[] = {0, 0, 0, 0, 0, 0, 0, 1}; /* of the first tablet */
    const struct store_cursor_options options = {
        .upper = bytes_make(behind_marks, sizeof behind_marks), .read_tier = STORE_READ_ANY};
    struct store_cursor *cursor;
    TRY(store_cursor_create(keyspace, &options, &cursor));
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor)) {
        bytes key = store_cursor_key(cursor), value = store_cursor_value(cursor);
        uint64_t words[2], mark_us;
        if (key.size != sizeof words || value.size != sizeof mark_us)
            continue;
        memcpy(words, key.data, sizeof words);
        memcpy(&mark_us, value.data, sizeof mark_us);
        if ((int64_t)be64toh(mark_us) >= time_us)
            break;
        *out = (struct stream_position){be64toh(words[1]), UINT32_MAX};
    }
    status s = store_cursor_status(cursor);
    store_cursor_destroy(cursor);
    return s;
}

static status find_time_in(const struct held_segments *held, int64_t time_us,
                           struct stream_position *out)
{
    const struct segment *last = NULL;
    uint64_t oldest = held->start.sequence;
    if (oldest == UINT64_MAX)
        return status_make(STATUS_UNAVAILABLE, "the log of change streams has no segment yet");
    if (time_us < held->start.time_us)
        return log_start_refuse(&held->start);
    *out = (struct stream_position){oldest - 1, UINT32_MAX};
    for (size_t i = 0; i < held->count; i++)
        if (held->all[i]->from >= oldest && held->all[i]->from_us < time_us)
            last = held->all[i];
    if (last == NULL)
        return status_ok();
    *out = (struct stream_position){last->from, UINT32_MAX};
    return find_mark(last->keyspace, time_us, out);
}

status stream_log_find_time(struct stream_log *log, int64_t time_us, struct stream_position *out)
{
    CHECK_MAGIC(log, STREAM_LOG_MAGIC);
    struct held_segments held;
    *out = (struct stream_position){0, 0};
    if (!segments_hold(log, &held))
        return status_out_of_memory();
    status s = find_time_in(&held, time_us, out);
    segments_release(log, &held);
    return s;
}
