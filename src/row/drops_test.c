/* Tests of drops of ranges of rows: what is over a key, against a list; what folds make of it;
 * memory that runs out. (history_test has random lives of rows that are dropped.) */
#include "row/drops.h"
#include "row/fold.h"
#include "row/resolve.h"
#include "row/row_key.h"
#include "row/testing/testing.h"

#include "base/testing/failmalloc.h"

/* --- what is over a key --- */

enum { WORLDS = 300, STEPS = 40, MOST_DROPS = 24, KEY_SIZE = 2, LETTERS = 4, MOST_TABLES = 4 };

struct listed {
    uint8_t from[KEY_SIZE], to[KEY_SIZE];
    size_t from_size, to_size;
    uint64_t version, sequence, newest_table;
    bool is_held;
};

struct world {
    uint64_t random;
    struct row_drops *drops;
    struct listed list[MOST_DROPS];
    size_t count;
    uint64_t sequence, gone;
    unsigned holders;
};

static uint64_t below(struct world *w, uint64_t end)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (w->random >> 11) % end;
}

/* Zeroes and ones among them, which S keys escape. */
static size_t random_key(struct world *w, uint8_t *out)
{
    static const uint8_t letters[LETTERS] = {0, 1, 'a', 0xff};
    size_t size = below(w, KEY_SIZE + 1);
    for (size_t i = 0; i < size; i++)
        out[i] = letters[below(w, LETTERS)];
    return size;
}

static void drop_some(struct world *w)
{
    struct listed *one = &w->list[w->count];
    struct row_drop *drop;
    if (w->count == MOST_DROPS)
        return;
    w->count++;
    one->from_size = random_key(w, one->from);
    one->to_size = random_key(w, one->to);
    one->sequence = ++w->sequence;
    one->version = 1 + below(w, 1000); /* as another cluster may have given it */
    one->newest_table = below(w, MOST_TABLES);
    one->is_held = w->holders > 0;
    assert_ok(row_drop_create(bytes_make(one->from, one->from_size),
                              bytes_make(one->to, one->to_size), &drop));
    row_drop_set_newest_table(drop, one->newest_table);
    assert_ok(row_drops_reserve(w->drops));
    row_drops_add(w->drops, drop, one->version, one->sequence);
}

static void remove_some(struct world *w)
{
    assert_int_equal(row_drops_are_held(w->drops), w->holders > 0);
    if (w->count == 0 || w->holders > 0)
        return;
    size_t at = below(w, w->count);
    if (w->list[at].sequence > w->gone)
        w->gone = w->list[at].sequence;
    assert_true(row_drops_remove(w->drops, w->list[at].sequence));
    assert_false(row_drops_remove(w->drops, w->list[at].sequence));
    memmove(&w->list[at], &w->list[at + 1], (--w->count - at) * sizeof w->list[0]);
}

/* As a start does for who had begun before one of them. */
static void hold_from_one(struct world *w)
{
    uint64_t sequence = w->count == 0 ? 1 : w->list[below(w, w->count)].sequence;
    row_drops_hold_from(w->drops, sequence);
    w->holders++;
    for (size_t i = 0; i < w->count; i++)
        w->list[i].is_held |= w->list[i].sequence >= sequence;
}

static void hold_or_let_go(struct world *w)
{
    if (w->holders > 0 && below(w, 2) == 0) {
        row_drops_let_go(w->drops);
        w->holders--;
    } else if (w->holders < 2 && below(w, 4) == 0) {
        hold_from_one(w);
    } else if (w->holders < 2) {
        row_drops_hold(w->drops);
        w->holders++;
    }
    for (size_t i = 0; i < w->count && w->holders == 0; i++)
        w->list[i].is_held = false;
}

struct expected {
    uint64_t newest, dropped, held_from, sequence;
};

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct expected over(const struct world *w, bytes key)
{
    struct expected e = {0};
    for (size_t i = 0; i < w->count; i++) {
        const struct listed *one = &w->list[i];
        if (bytes_compare(key, bytes_make(one->from, one->from_size)) < 0 ||
            (one->to_size > 0 && bytes_compare(key, bytes_make(one->to, one->to_size)) >= 0))
            continue;
        e.newest = greater(e.newest, one->version);
        e.sequence = greater(e.sequence, one->sequence);
        if (!one->is_held)
            e.dropped = greater(e.dropped, one->version);
        else if (e.held_from == 0 || one->version < e.held_from)
            e.held_from = one->version;
    }
    return e;
}

static void assert_look(struct world *w, const struct buffer *key, const struct expected *e)
{
    struct row_drops_look look = row_drops_look(w->drops, buffer_bytes(key));
    assert_int_equal(look.dropped, e->dropped);
    assert_int_equal(look.held_from, e->held_from);
}

static void compare_at(struct world *w, bytes row_key)
{
    struct expected e = over(w, row_key);
    struct buffer record = {0}, cell = {0};
    row_record_key(&record, row_key);
    overflow_cell_key(&cell, row_key, (uint32_t)below(w, 3), bytes_of("q"), (int64_t)below(w, 9));
    assert_look(w, &record, &e);
    assert_look(w, &cell, &e);
    assert_int_equal(row_drops_over(w->drops, row_key), e.newest);
    for (uint64_t as_of = 0; as_of <= w->sequence; as_of++)
        assert_int_equal(row_drops_since(w->drops, row_key, as_of),
                         as_of < greater(e.sequence, w->gone));
    buffer_free(&record);
    buffer_free(&cell);
}

/* By the list, all rows from `from` up to `to`; empty: no bound. */
static bool cover_table(const struct world *w, bytes from, bytes to, uint64_t table)
{
    for (size_t i = 0; i < w->count; i++) {
        const struct listed *one = &w->list[i];
        bytes start = bytes_make(one->from, one->from_size),
              end = bytes_make(one->to, one->to_size);
        bool ends = end.size == 0 || (to.size > 0 && bytes_compare(to, end) <= 0);
        if (!one->is_held && table <= one->newest_table && ends && bytes_compare(start, from) <= 0)
            return true;
    }
    return false;
}

static void compare_tables(struct world *w)
{
    uint8_t first[KEY_SIZE], last[KEY_SIZE];
    bytes from = bytes_make(first, random_key(w, first)),
          to = bytes_make(last, random_key(w, last));
    struct buffer keys[4] = {{0}};
    if (to.size > 0 && bytes_compare(from, to) >= 0)
        return;
    row_record_key(&keys[0], from);
    overflow_range_start(&keys[2], from);
    if (to.size > 0) {
        row_record_key(&keys[1], to);
        overflow_range_start(&keys[3], to);
    } else {
        buffer_append_byte(&keys[1], OVERFLOW_SPACE);
        buffer_append_byte(&keys[3], OVERFLOW_SPACE + 1);
    }
    for (uint64_t table = 0; table < MOST_TABLES; table++)
        for (size_t i = 0; i < 4; i += 2)
            assert_int_equal(row_drops_cover_table(w->drops, buffer_bytes(&keys[i]),
                                                   buffer_bytes(&keys[i + 1]), table),
                             cover_table(w, from, to, table));
    for (size_t i = 0; i < 4; i++)
        buffer_free(&keys[i]);
}

static void compare_list(struct world *w)
{
    struct row_drop_words words = {.sequence = 0};
    assert_int_equal(row_drops_count(w->drops), w->count);
    assert_int_equal(row_drops_gone(w->drops), w->gone);
    for (size_t i = 0; i < w->count; i++) {
        const struct listed *one = &w->list[i];
        assert_true(row_drops_next(w->drops, words.sequence, &words));
        assert_int_equal(words.sequence, one->sequence);
        assert_int_equal(words.version, one->version);
        assert_int_equal(words.newest_table, one->newest_table);
        assert_int_equal(words.is_held, one->is_held);
        assert_true(bytes_equal(words.from, bytes_make(one->from, one->from_size)));
        assert_true(bytes_equal(words.to, bytes_make(one->to, one->to_size)));
    }
    assert_false(row_drops_next(w->drops, words.sequence, &words));
}

static void step(struct world *w)
{
    uint8_t key[KEY_SIZE];
    uint64_t kind = below(w, 8);
    if (kind < 4)
        drop_some(w);
    else if (kind < 6)
        remove_some(w);
    else
        hold_or_let_go(w);
    compare_list(w);
    for (int i = 0; i < 10; i++) {
        compare_at(w, bytes_make(key, random_key(w, key)));
        compare_tables(w);
    }
}

static void what_is_over_a_key_is_what_the_list_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct world w = {.random = seed * 0x9e3779b97f4a7c15 + 1};
        assert_ok(row_drops_create(&w.drops));
        for (int i = 0; i < STEPS; i++)
            step(&w);
        row_drops_destroy(w.drops);
    }
}

static void keys_of_other_spaces_are_not_dropped(void **state)
{
    struct row_drops *drops;
    struct row_drop *drop;
    (void)state;
    assert_ok(row_drops_create(&drops));
    assert_ok(row_drop_create(bytes_make(NULL, 0), bytes_make(NULL, 0), &drop));
    assert_ok(row_drops_reserve(drops));
    row_drops_add(drops, drop, 5, 7);
    assert_int_equal(row_drops_look(drops, bytes_of("Rr")).dropped, 5);
    assert_int_equal(row_drops_look(drops, bytes_of("Tr")).dropped, 0);
    assert_int_equal(row_drops_look(drops, bytes_of("Q")).dropped, 0);
    assert_int_equal(row_drops_look(drops, bytes_make(NULL, 0)).dropped, 0);
    assert_true(row_drops_cover_table(drops, bytes_of("Rr"), bytes_of("S"), 0));
    assert_false(row_drops_cover_table(drops, bytes_of("T"), bytes_of("U"), 0));
    assert_false(row_drops_cover_table(drops, bytes_of("P"), bytes_of("Q"), 0));
    assert_false(row_drops_cover_table(drops, bytes_make(NULL, 0), bytes_of("Q"), 0));
    row_drops_destroy(drops);
}

/* --- folds --- */

struct fixture {
    struct schema *schema; /* 1 keeps the newest cell, 2 adds up */
    struct row_rules rules;
};

static int set_up(void **state)
{
    static struct fixture f;
    static const struct gc_rule newest = {.kind = GC_MAX_VERSIONS, .max_versions = 1};
    const struct family families[] = {
        {.id = 1, .name = bytes_of("kept"), .gc = &newest},
        {.id = 2, .name = bytes_of("sum"), .aggregate = AGGREGATE_SUM}};
    *state = &f;
    assert_ok(schema_create(GRANULARITY_MICROS, families, 2, 3, &f.schema));
    f.rules = (struct row_rules){.schema = f.schema};
    assert_ok(row_drops_create(&f.rules.drops));
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    row_drops_destroy(f->rules.drops);
    schema_destroy(f->schema);
    return 0;
}

static void drop_row(struct fixture *f, const char *from, const char *to, uint64_t version)
{
    struct row_drop *drop;
    assert_ok(row_drop_create(bytes_of(from), bytes_of(to), &drop));
    assert_ok(row_drops_reserve(f->rules.drops));
    row_drops_add(f->rules.drops, drop, version, version);
}

static struct buffer add_number(int64_t number, uint64_t version)
{
    uint64_t word = htobe64((uint64_t)number);
    return FRAGMENT({.kind = ENTRY_SUM,
                     .family = 2,
                     .qualifier = bytes_of("n"),
                     .value = bytes_make(&word, sizeof word),
                     .version = version});
}

static struct buffer mark(uint64_t version, bool has_overflow)
{
    struct buffer out = {0};
    row_overflow_mark(&out, version, 0, 0, has_overflow);
    return out;
}

static void assert_fold(const struct row_rules *rules, bool is_whole, bytes key,
                        struct buffer *operands, size_t count, const char *expected)
{
    bytes slices[8], same = {0};
    struct buffer out = {0};
    for (size_t i = 0; i < count; i++)
        slices[i] = buffer_bytes(&operands[i]);
    const struct store_history history = {.key = key, .operands = slices, .operand_count = count};
    assert_true(is_whole ? row_fold.whole(rules, &history, &out, &same)
                         : row_fold.part(rules, &history, &out));
    assert_fragment(same.size > 0 ? same : buffer_bytes(&out), expected);
    buffer_free(&out);
    for (size_t i = 0; i < count; i++)
        buffer_free(&operands[i]);
}

#define OPERANDS(...)                                                                              \
    (struct buffer[]){__VA_ARGS__}, sizeof((struct buffer[]){__VA_ARGS__}) / sizeof(struct buffer)
#define WHOLE(f, key, expected, ...)                                                               \
    assert_fold(&(f)->rules, true, bytes_of(key), OPERANDS(__VA_ARGS__), expected)
#define PART(f, key, expected, ...)                                                                \
    assert_fold(&(f)->rules, false, bytes_of(key), OPERANDS(__VA_ARGS__), expected)

static struct buffer cell(const char *qualifier, uint64_t version)
{
    return FRAGMENT(cell_entry(1, qualifier, 0, "v", version));
}

static void what_is_older_goes_in_any_order(void **state)
{
    struct fixture *f = *state;
    drop_row(f, "r", "s", 5);
    WHOLE(f, "Rr", "1:b:0=v@6", cell("a", 4), cell("b", 6));
    WHOLE(f, "Rr", "1:b:0=v@6", cell("b", 6), cell("a", 4));
    PART(f, "Rr", "1:b:0=v@6", cell("b", 6), cell("a", 4));
    WHOLE(f, "Rr", "", cell("a", 4));
    WHOLE(f, "Rr", "1:a:0=v@6", cell("a", 6));
    WHOLE(f, "Rs", "1:a:0=v@4", cell("a", 4));
    WHOLE(f, "Rq", "1:a:0=v@4 1:b:0=v@6", cell("a", 4), cell("b", 6));
}

static void sums_begin_anew(void **state)
{
    struct fixture *f = *state;
    drop_row(f, "r", "", 5);
    WHOLE(f, "Rr", "2:n:0+7@7", add_number(1, 3), add_number(3, 6), add_number(4, 7));
    PART(f, "Rr", "2:n:0+7@7", add_number(1, 3), add_number(3, 6), add_number(4, 7));
}

static void tombstones_from_before_go_and_newer_ones_work(void **state)
{
    struct fixture *f = *state;
    drop_row(f, "r", "", 5);
    PART(f, "Rr", "r@7", cell("a", 6), FRAGMENT(row_tombstone(4)), FRAGMENT(row_tombstone(7)));
    PART(f, "Rr", "1:a:0=v@6", cell("a", 6), FRAGMENT(family_tombstone(1, 4)));
    PART(f, "Rr", "1@7 1:a:0=v@8", cell("a", 8), FRAGMENT(family_tombstone(1, 7)), cell("b", 6));
}

/* All that it tells of is older than it. */
static void a_mark_from_before_goes_with_its_cells(void **state)
{
    struct fixture *f = *state;
    drop_row(f, "r", "", 5);
    WHOLE(f, "Rr", "1:a:0=v@6", mark(4, true), cell("a", 6));
    WHOLE(f, "Rr", "m@6>0!0", mark(4, true), mark(6, true));
}

static void overflow_cells_go_too(void **state)
{
    struct fixture *f = *state;
    struct buffer key = {0}, other = {0}, value = {0}, out = {0};
    drop_row(f, "r", "s", 5);
    overflow_cell_key(&key, bytes_of("r"), 1, bytes_of("q"), 9);
    overflow_cell_key(&other, bytes_of("s"), 1, bytes_of("q"), 9);
    overflow_cell_write(&value, ENTRY_CELL, 4, 0, bytes_of("v"));
    assert_int_equal(row_fold.tidy(&f->rules, buffer_bytes(&key), buffer_bytes(&value), &out),
                     STORE_REMOVE);
    assert_int_equal(row_fold.tidy(&f->rules, buffer_bytes(&other), buffer_bytes(&value), &out),
                     STORE_KEEP);
    buffer_clear(&value);
    overflow_cell_write(&value, ENTRY_CELL, 6, 0, bytes_of("v"));
    assert_int_equal(row_fold.tidy(&f->rules, buffer_bytes(&key), buffer_bytes(&value), &out),
                     STORE_KEEP);
    buffer_free(&key);
    buffer_free(&other);
    buffer_free(&value);
    buffer_free(&out);
}

/* The newer cell of the column is not there, and must not condemn the older one. */
static void what_is_dropped_counts_for_nothing(void **state)
{
    struct fixture *f = *state;
    const struct entry newer = cell_entry(1, "a", 9, "v", 4), older = cell_entry(1, "a", 2, "v", 6);
    drop_row(f, "r", "", 5);
    WHOLE(f, "Rr", "1:a:2=v@6", FRAGMENT(newer), FRAGMENT(older));
    WHOLE(f, "Rq", "1:a:9=v@4", FRAGMENT(newer), FRAGMENT(older));
}

static void a_held_drop_throws_nothing_away_and_mixes_nothing(void **state)
{
    struct fixture *f = *state;
    const struct entry newer = cell_entry(1, "a", 9, "v", 4), older = cell_entry(1, "a", 2, "v", 6);
    row_drops_hold(f->rules.drops);
    drop_row(f, "r", "", 5);
    WHOLE(f, "Rr", "1:a:9=v@4 1:a:2=v@6", FRAGMENT(newer), FRAGMENT(older));
    PART(f, "Rr", "2:n:0+4@7 2:n:0+3@6 2:n:0+3@3", add_number(1, 2), add_number(2, 3),
         add_number(3, 6), add_number(4, 7));
    row_drops_let_go(f->rules.drops);
    WHOLE(f, "Rr", "1:a:2=v@6", FRAGMENT(newer), FRAGMENT(older));
    PART(f, "Rr", "2:n:0+7@7", add_number(1, 2), add_number(2, 3), add_number(3, 6),
         add_number(4, 7));
}

/* --- memory --- */

static void make_drops(void *context)
{
    struct row_drops *drops = NULL;
    struct row_drop *drop = NULL;
    status s = row_drops_create(&drops);
    (void)context;
    for (uint64_t i = 1; status_is_ok(s) && i < 20; i++) {
        s = row_drop_create(bytes_of("a"), bytes_make(NULL, 0), &drop);
        if (status_is_ok(s))
            s = row_drops_reserve(drops);
        if (status_is_ok(s))
            row_drops_add(drops, drop, i, i);
        else
            row_drop_destroy(drop);
        drop = NULL;
        assert_true(!status_is_ok(s) || row_drops_over(drops, bytes_of("b")) == i);
    }
    status_ignore(s);
    row_drops_destroy(drops);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    failmalloc_each(make_drops, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_over_a_key_is_what_the_list_says),
        cmocka_unit_test(keys_of_other_spaces_are_not_dropped),
        cmocka_unit_test_setup_teardown(what_is_older_goes_in_any_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sums_begin_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tombstones_from_before_go_and_newer_ones_work, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_mark_from_before_goes_with_its_cells, set_up, tear_down),
        cmocka_unit_test_setup_teardown(overflow_cells_go_too, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_dropped_counts_for_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_held_drop_throws_nothing_away_and_mixes_nothing, set_up,
                                        tear_down),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
