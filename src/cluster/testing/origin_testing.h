/* What the tests of origin feeds share: a cluster that applies what another one's clients change,
 * and random changes. */
#ifndef TRESTLE_CLUSTER_TESTING_ORIGIN_TESTING_H
#define TRESTLE_CLUSTER_TESTING_ORIGIN_TESTING_H

#include "base/big_endian.h"
#include "cluster/foreign_rows.h"
#include "cluster/origin/origin_feed.h"
#include "cluster/testing/testing.h"

enum { TEXT_MOST = 700 /* of values: past what overflows, and what is big */ };

static inline struct shard *home_of(const struct cluster_fixture *f)
{
    return f->cluster->home;
}

static inline void begin_feed(struct cluster_fixture *f)
{
    assert_ok(origin_feeds_begin(f->cluster));
    assert_true(origin_feed_is_on(home_of(f)));
}

struct replica {
    struct cluster_fixture *of;
    struct cluster_fixture *f;
    struct stream_position at;
};

static inline void rebuild(const struct origin_change *from, struct arena *arena,
                           struct packed_change *out)
{
    *out = (struct packed_change){.big_count = from->change.count};
    buffer_append_bytes(&out->fragment, from->change.value);
    assert_false(out->fragment.failed);
    if (out->big_count == 0)
        return;
    out->big = arena_alloc(arena, out->big_count * sizeof *out->big);
    assert_non_null(out->big);
    event_big_cells(&from->change, out->big);
}

static inline status apply(void *context, const struct origin_change *change, bool *enough)
{
    struct replica *replica = context;
    struct packed_change packed;
    (void)enough;
    if (change->is_drop)
        return foreign_rows_drop(replica->f->table, change->from, change->to, change->version);
    rebuild(change, replica->f->arena, &packed);
    status s = foreign_row_write(replica->f->table, change->from, &packed, change->version);
    buffer_free(&packed.fragment);
    return s;
}

/* One piece. */
static inline bool pull(struct replica *replica, size_t most_bytes)
{
    bool is_end;
    assert_ok(origin_feed_read(home_of(replica->of), replica->at, most_bytes, apply, replica,
                               &replica->at, &is_end));
    return is_end;
}

/* Each cell of each row. */
static inline void write_rows(struct cluster_fixture *f, struct buffer *out)
{
    struct key_range all = {.from = bytes_of(""), .to = bytes_of("")};
    struct arena *arena = arena_create(1 << 20);
    struct scan_spec spec = {.table = f->table,
                             .ranges = &all,
                             .range_count = 1,
                             .schema = table_schema(f->table),
                             .arena = arena};
    struct scan *scan;
    struct scan_row row;
    enum row_outcome outcome = ROW_ABSENT;
    assert_ok(scan_create(&spec, &scan));
    while (outcome != ROW_END) {
        assert_ok(scan_next(scan, STORE_READ_ANY, &row, &outcome));
        for (size_t i = 0; outcome == ROW_FOUND && i < row.cells->count; i++) {
            const struct cell *cell = &row.cells->items[i];
            bytes value = cell->value;
            enum row_outcome loaded = ROW_FOUND;
            if (cell_is_deferred(cell))
                assert_ok(scan_load_value(scan, cell, STORE_READ_ANY, &value, &loaded));
            buffer_append_bytes(out, row.key);
            buffer_append_format(out, " %u %.*s %lld ", cell->family->id, (int)cell->qualifier.size,
                                 (const char *)cell->qualifier.data, (long long)cell->timestamp_us);
            buffer_append_format(out, "%zu:", value.size);
            for (size_t k = 0; k < value.size && k < 24; k++) /* sums have zeroes */
                buffer_append_format(out, "%02x", value.data[k]);
            buffer_append_byte(out, '\n');
        }
    }
    scan_destroy(scan);
    arena_destroy(arena);
    buffer_append_byte(out, 0);
}

static inline void assert_same_rows(struct replica *replica)
{
    struct buffer here = {0}, there = {0};
    write_rows(replica->of, &here);
    write_rows(replica->f, &there);
    assert_string_equal((const char *)here.data, (const char *)there.data);
    buffer_free(&here);
    buffer_free(&there);
}

static inline uint32_t draw(uint64_t *random, uint32_t below)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33) % below;
}

static inline const char *value_of(uint64_t *random, char text[TEXT_MOST])
{
    size_t size = draw(random, 8) == 0 ? TEXT_MOST - 1 : draw(random, 40);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + draw(random, 26));
    text[size] = '\0';
    return text;
}

static inline bytes number_of(struct cluster_fixture *f, uint64_t number)
{
    uint8_t *state = arena_alloc(f->arena, BIG_ENDIAN_SIZE);
    assert_non_null(state);
    big_endian_write(state, number);
    return bytes_make(state, BIG_ENDIAN_SIZE);
}

static inline struct row_change *draw_change(struct cluster_fixture *f, uint64_t *random)
{
    static const char *const qualifiers[] = {"p", "q", "r"};
    char text[TEXT_MOST];
    struct row_change *change = row_change_create(f->arena);
    assert_non_null(change);
    for (uint32_t i = 0; i <= draw(random, 3); i++) {
        uint32_t family = FAMILY_F + draw(random, 2);
        bytes qualifier = bytes_of(qualifiers[draw(random, 3)]);
        switch (draw(random, 12)) {
        case 0:
            row_change_delete_row(change);
            break;
        case 1:
            row_change_delete_family(change, family);
            break;
        case 2:
            row_change_delete_column(change, family, qualifier, 0, INT64_MAX);
            break;
        case 3:
            row_change_delete_column(change, FAMILY_SUM, qualifier, 0, INT64_MAX);
            break;
        case 4:
        case 5:
            row_change_add(change, ENTRY_SUM, FAMILY_SUM, qualifier, 0,
                           number_of(f, draw(random, 1000)));
            break;
        default: {
            bytes value = arena_copy(f->arena, bytes_of(value_of(random, text)));
            row_change_set(change, family, qualifier, 1 + draw(random, 3), value);
        }
        }
    }
    return change;
}

/* Something that clients do, or the cluster by itself. */
static inline void change_once(struct cluster_fixture *f, uint64_t *random)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e"};
    const char *key = keys[draw(random, 5)];
    switch (draw(random, 20)) {
    case 0:
        split_at(f, key);
        break;
    case 1:
        assert_ok(keyspace_flush(f->table->spaces[0].keyspace));
        break;
    case 2:
        assert_ok(table_drop_rows(f->table, bytes_of(draw(random, 3) == 0 ? "" : key)));
        break;
    case 3:
        maintenance_run_once(f->cluster->maintenance);
        break;
    default:
        assert_ok(try_write(f, key, draw_change(f, random)));
    }
}

/* A step of the cluster that is followed, or of following it. */
static inline void step(struct replica *replica, uint64_t *random)
{
    uint32_t what = draw(random, 24);
    if (what == 0)
        reopen_test_cluster(replica->of);
    else if (what <= 2)
        (void)pull(replica, draw(random, 4000));
    else
        change_once(replica->of, random);
}

#endif
