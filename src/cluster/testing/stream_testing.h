/* What tests of change streams share: a stream that is switched on, writes with lists, readers
 * whose text says what they were told. */
#ifndef TRESTLE_CLUSTER_TESTING_STREAM_TESTING_H
#define TRESTLE_CLUSTER_TESTING_STREAM_TESTING_H

#include "cluster/stream/table_stream.h"
#include "cluster/testing/testing.h"

#define RETENTION_US (INT64_C(1000000) * 24 * 60 * 60)

/* --- switching it on and off --- */

static inline status set_retention(void *context, const struct table_info *now, struct arena *arena,
                                   struct table_change *next)
{
    (void)arena;
    *next = (struct table_change){.families = now->schema->families,
                                  .family_count = now->schema->family_count,
                                  .extra = now->extra,
                                  .stream_retention_us = *(const int64_t *)context};
    return status_ok();
}

static inline void switch_stream(struct cluster_fixture *f, int64_t retention_us)
{
    assert_ok(table_change_schema(f->table, f->arena, set_retention, &retention_us));
}

/* --- writes --- */

/* As a service packs it: with a list of what was asked for. */
static inline void write_listed(struct cluster_fixture *f, const char *row_key,
                                struct row_change *change, const struct list_mutation *mutations,
                                size_t count)
{
    struct test_write write;
    struct event event;
    event_init(&event);
    make_write(f, &write, bytes_of(row_key), change, &event);
    write.write.change.is_listed = true;
    for (size_t i = 0; i < count; i++)
        change_list_add(&write.write.change.list, &mutations[i]);
    loop_post(f->loop, &write.start);
    assert_ok(event_wait(&event, 1));
}

static inline void delete_row(struct cluster_fixture *f, const char *row_key)
{
    const struct list_mutation mutation = {.kind = LIST_DELETE_ROW};
    struct row_change *change = row_change_create(f->arena);
    row_change_delete_row(change);
    write_listed(f, row_key, change, &mutation, 1);
}

static inline void set_in(struct cluster_fixture *f, const char *row_key, uint32_t family,
                          const char *qualifier, int64_t timestamp_us, const char *value)
{
    assert_ok(try_write(f, row_key, setting(f, family, qualifier, timestamp_us, value)));
}

/* --- reading --- */

/* A reader with its token; `text` gets "a:f.q=1 a:-f gc:a:-f.q" and so on. */
struct reader {
    struct cluster_fixture *f;
    struct stream_token token;
    int64_t from_us; /* what is of before is passed over */
    struct buffer text;
    size_t records;
};

static inline void tell_mutation(struct buffer *out, const struct list_mutation *mutation)
{
    buffer_append_format(
        out,
        mutation->kind == LIST_DELETE_COLUMN || mutation->kind == LIST_DELETE_FAMILY ? ":-" : ":");
    buffer_append_bytes(out, mutation->family);
    if (mutation->kind == LIST_DELETE_FAMILY)
        return;
    buffer_append_byte(out, '.');
    buffer_append_bytes(out, mutation->qualifier);
    if (mutation->kind == LIST_SET) {
        buffer_append_byte(out, '=');
        buffer_append_bytes(out, mutation->value);
    }
    if (mutation->kind == LIST_ADD_INT)
        buffer_append_format(out, "+%lld", (long long)mutation->number);
}

static inline void tell_record(struct buffer *out, const struct stream_record *record)
{
    struct list_reader list;
    struct list_mutation mutation;
    if (out->size > 0)
        buffer_append_byte(out, ' ');
    if (record->kind == STREAM_COLLECTED)
        buffer_append_format(out, "gc:");
    buffer_append_bytes(out, record->row_key);
    list_reader_start(&list, record->list);
    while (list_reader_next(&list, &mutation))
        tell_mutation(out, &mutation);
    assert_false(list.is_bad);
}

static inline status visit(void *context, const struct stream_record *record, bool *enough)
{
    struct reader *reader = context;
    (void)enough;
    if (version_time_us(record->version) < reader->from_us)
        return status_ok();
    reader->records++;
    tell_record(&reader->text, record);
    return status_ok();
}

static inline struct reader reader_at(struct cluster_fixture *f, int64_t time_us, const char *start,
                                      const char *end)
{
    struct reader reader = {.f = f, .from_us = time_us};
    assert_ok(table_stream_token_at(f->table, time_us, bytes_of(start), bytes_of(end), f->arena,
                                    &reader.token));
    return reader;
}

static inline struct reader reader_of(struct cluster_fixture *f, const char *start, const char *end)
{
    return reader_at(f, table_stream_facts(f->table).oldest_us, start, end);
}

static inline void read_on(struct reader *reader)
{
    bool is_at_end = false;
    while (!is_at_end)
        assert_ok(table_stream_read(reader->f->table, &reader->token, 1 << 10, visit, reader,
                                    &is_at_end));
}

/* What comes after what has been read. */
static inline void assert_next(struct reader *reader, const char *expected)
{
    read_on(reader);
    buffer_append_byte(&reader->text, 0);
    assert_string_equal((const char *)reader->text.data, expected);
    buffer_clear(&reader->text);
}

static inline void end_reader(struct reader *reader)
{
    buffer_free(&reader->text);
}

#endif
