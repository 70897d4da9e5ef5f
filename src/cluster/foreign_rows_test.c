/* Rows as they come out when changes of several clusters arrive late: shuffled, some of them twice,
 * with versions that do not rise with arrival, beside writes of our own, while rows overflow, are
 * rewritten, flushed and compacted. After each change the row is compared
 * with a model that knows versions alone, and after each history the whole table.
 *
 *     foreign_rows_test [HISTORIES] [CHANGES] [SEED]      default 3 histories of 240 changes;
 *                                                      1000, a million evaluations, with
 *                                                      TRESTLE_LONG=all
 *
 * Adds come late and twice as well, and so do tombstones over them: each counts once, unless a
 * newer tombstone covers it, whichever came first.
 *
 * That this can fail: the same histories, applied as if versions rose with arrival, come out wrong.
 */
#include "cluster/foreign_rows.h"

#include "cluster/row_jobs.h"
#include "cluster/row_rewrite.h"
#include "cluster/testing/testing.h"

enum {
    ROWS = 3,
    FAMILIES = 2, /* plain ones */
    QUALIFIERS = 4,
    TIMES = 3,
    SUMS = 2,
    MOST_ADDS = 1000,     /* to a sum */
    CLUSTERS = 4,         /* besides ours, 1 to 4 */
    LATE_BY = 30,         /* changes, at most */
    MOST_VERSIONS = 4000, /* of a history */
    TEXT_MOST = 300,      /* bytes of a value: past the overflow threshold */
};

/* --- changes --- */

enum action {
    SET,
    ADD,
    DELETE_SUM,
    DELETE_SUMS,
    DELETE_COLUMN,
    DELETE_TIMES,
    DELETE_FAMILY,
    DELETE_ROW
};

struct change {
    enum action action;
    uint32_t row, family, qualifier, time, value;
    uint64_t version;
};

static uint32_t next_random(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33);
}

static struct change draw(uint64_t *random, bool is_ours)
{
    static const enum action deck[] = {SET,           SET,          SET,           SET,       SET,
                                       ADD,           ADD,          ADD,           ADD,       ADD,
                                       DELETE_COLUMN, DELETE_TIMES, DELETE_FAMILY, DELETE_SUM};
    struct change change = {.action = deck[next_random(random) % (sizeof deck / sizeof *deck)],
                            .row = next_random(random) % ROWS,
                            .family = next_random(random) % FAMILIES,
                            .qualifier = next_random(random) % QUALIFIERS,
                            .time = next_random(random) % TIMES,
                            .value = 1 + next_random(random) % 1000000};
    if (next_random(random) % (is_ours ? 8 : 64) == 0)
        change.action = next_random(random) % 2 == 0 ? DELETE_ROW : DELETE_SUMS;
    return change;
}

/* --- the model: versions decide, nothing else --- */

struct model_cell {
    uint64_t version; /* 0: there never was one */
    uint32_t value;
};

struct model_sum {
    struct model_cell adds[MOST_ADDS];
    size_t count;
    uint64_t deleted;
};

struct model_row {
    struct model_cell cells[FAMILIES][QUALIFIERS][TIMES];
    uint64_t deleted[FAMILIES][QUALIFIERS][TIMES]; /* the newest tombstone over it */
    struct model_sum sums[SUMS];
};

static void delete_cell(struct model_row *row, uint32_t f, uint32_t q, uint32_t t, uint64_t version)
{
    if (row->deleted[f][q][t] < version)
        row->deleted[f][q][t] = version;
}

static void delete_cells(struct model_row *row, const struct change *c)
{
    for (uint32_t f = 0; f < FAMILIES; f++)
        for (uint32_t q = 0; q < QUALIFIERS; q++)
            for (uint32_t t = 0; t < TIMES; t++) {
                bool is_family = c->action == DELETE_ROW || f == c->family;
                bool is_column = c->action >= DELETE_FAMILY || q == c->qualifier;
                bool is_time = c->action != DELETE_TIMES || t > 0;
                if (is_family && is_column && is_time)
                    delete_cell(row, f, q, t, c->version);
            }
}

static void delete_sums(struct model_row *row, const struct change *c)
{
    for (uint32_t i = 0; i < SUMS; i++)
        if ((c->action != DELETE_SUM || i == c->qualifier % SUMS) &&
            row->sums[i].deleted < c->version)
            row->sums[i].deleted = c->version;
}

static void apply(struct model_row *row, const struct change *c)
{
    struct model_cell *cell = &row->cells[c->family][c->qualifier][c->time];
    struct model_sum *sum = &row->sums[c->qualifier % SUMS];
    if (c->action == SET && cell->version < c->version)
        *cell = (struct model_cell){c->version, c->value};
    if (c->action == ADD) {
        assert_true(sum->count < MOST_ADDS);
        sum->adds[sum->count++] = (struct model_cell){c->version, c->value};
    }
    if (c->action >= DELETE_COLUMN)
        delete_cells(row, c);
    if (c->action == DELETE_SUM || c->action == DELETE_SUMS || c->action == DELETE_ROW)
        delete_sums(row, c);
}

static uint64_t sum_of(const struct model_sum *sum)
{
    uint64_t total = 0;
    for (size_t i = 0; i < sum->count; i++)
        if (sum->adds[i].version > sum->deleted)
            total += sum->adds[i].value;
    return total;
}

/* What a reader sees; 0: no cell. */
struct seen_row {
    uint32_t cells[FAMILIES][QUALIFIERS][TIMES];
    uint64_t sums[SUMS];
};

static struct seen_row seen_of(const struct model_row *row)
{
    struct seen_row seen = {0};
    for (uint32_t f = 0; f < FAMILIES; f++)
        for (uint32_t q = 0; q < QUALIFIERS; q++)
            for (uint32_t t = 0; t < TIMES; t++)
                if (row->cells[f][q][t].version > row->deleted[f][q][t])
                    seen.cells[f][q][t] = row->cells[f][q][t].value;
    for (uint32_t i = 0; i < SUMS; i++)
        seen.sums[i] = sum_of(&row->sums[i]);
    return seen;
}

/* --- the table --- */

static const char *row_name(uint32_t row)
{
    static const char *const names[ROWS] = {"a", "b", "c"};
    return names[row];
}

static int64_t time_us(uint32_t time)
{
    return 1000 * (1 + (int64_t)time);
}

static bytes value_text(uint32_t value, char text[TEXT_MOST])
{
    size_t size = value % 4 == 0 ? TEXT_MOST : 8 + value % 40;
    char digits[16];
    memset(text, '.', size);
    memcpy(text, digits, (size_t)snprintf(digits, sizeof digits, "%u", value));
    return bytes_make(text, size);
}

/* Slices are good as long as the arena and `text`. */
static struct row_change *change_of(struct cluster_fixture *f, const struct change *c,
                                    char text[TEXT_MOST])
{
    struct row_change *change = row_change_create(f->arena);
    uint8_t *bytes_of_name = arena_alloc(f->arena, 2);
    uint8_t *state = arena_alloc(f->arena, 8);
    assert_true(change != NULL && bytes_of_name != NULL && state != NULL);
    bytes_of_name[0] = 'q';
    bool is_of_sum = c->action == ADD || c->action == DELETE_SUM;
    bytes_of_name[1] = (uint8_t)('0' + (is_of_sum ? c->qualifier % SUMS : c->qualifier));
    const bytes qualifier = bytes_make(bytes_of_name, 2);
    const uint32_t family = FAMILY_F + c->family;
    for (size_t i = 0; i < 8; i++)
        state[i] = (uint8_t)((uint64_t)c->value >> (56 - 8 * i));
    if (c->action == SET)
        row_change_set(change, family, qualifier, time_us(c->time), value_text(c->value, text));
    else if (c->action == ADD)
        row_change_add(change, ENTRY_SUM, FAMILY_SUM, qualifier, 0, bytes_make(state, 8));
    else if (c->action == DELETE_COLUMN || c->action == DELETE_SUM)
        row_change_delete_column(change, is_of_sum ? FAMILY_SUM : family, qualifier, 0, INT64_MAX);
    else if (c->action == DELETE_TIMES)
        row_change_delete_column(change, family, qualifier, time_us(1), time_us(TIMES));
    else if (c->action == DELETE_FAMILY || c->action == DELETE_SUMS)
        row_change_delete_family(change, c->action == DELETE_SUMS ? FAMILY_SUM : family);
    else
        row_change_delete_row(change);
    return change;
}

static uint64_t number_of(bytes value)
{
    uint64_t number = 0;
    for (size_t i = 0; i < value.size; i++)
        number = number << 8 | value.data[i];
    return number;
}

static struct seen_row read_row(struct cluster_fixture *f, uint32_t row)
{
    struct seen_row seen = {0};
    struct arena *arena = arena_create(1 << 20);
    struct tablet *tablet = table_route(f->table, bytes_of(row_name(row)));
    struct row_read_options options = {.store = tablet->shard->store,
                                       .commits = tablet->shard->commits,
                                       .schema = table_schema(f->table),
                                       .now_us = clock_wall_us(clock_system()),
                                       .size_limit = UINT64_MAX};
    struct row found = {.cells.arena = arena};
    enum row_outcome outcome;
    assert_ok(row_read(tablet->keyspace, &options, bytes_of(row_name(row)), STORE_READ_ANY, &found,
                       &outcome));
    for (size_t i = 0; i < found.cells.count; i++) {
        const struct cell *cell = &found.cells.items[i];
        uint32_t qualifier = cell->qualifier.data[1] - (uint32_t)'0';
        if (cell->family->id == FAMILY_SUM)
            seen.sums[qualifier] = number_of(cell->value);
        else
            seen.cells[cell->family->id - FAMILY_F][qualifier][cell->timestamp_us / 1000 - 1] =
                (uint32_t)strtoul((const char *)cell->value.data, NULL, 10);
    }
    if (found.wants_rewrite)
        row_rewriter_offer(tablet->shard->row_rewriter, f->table, tablet->keyspace, &found);
    row_clear(&found);
    tablet_release(tablet);
    arena_destroy(arena);
    return seen;
}

/* --- histories --- */

struct history {
    struct cluster_fixture *f;
    uint64_t random;
    bool assumes_rising; /* the old way: an operand, whatever its version */
    struct model_row rows[ROWS];
    struct {
        struct change *changes;
        size_t arrived; /* the first so many, each once or twice */
    } from[CLUSTERS];
    uint64_t used[MOST_VERSIONS]; /* versions, by arrival */
    size_t used_count;
    size_t wrong; /* rows that were read, and not as the model has them */
    size_t evaluations;
};

static void write_assuming(struct history *h, struct packed_change *change, const struct change *c)
{
    struct tablet *tablet = table_route(h->f->table, bytes_of(row_name(c->row)));
    struct commit commit = {.kind = COMMIT_ROWS,
                            .table = h->f->table,
                            .tablet = tablet,
                            .keyspace = tablet->keyspace,
                            .row_key = bytes_of(row_name(c->row)),
                            .change = change,
                            .given_version = c->version};
    commit.row_hash = row_lock_hash(keyspace_id(commit.keyspace), commit.row_key);
    row_lock_wait(h->f->cluster->home->locks, commit.row_hash);
    assert_ok(commit_and_wait(h->f->cluster->home->commits, &commit));
    row_lock_note_sequence(h->f->cluster->home->locks, commit.row_hash, commit.sequence);
    row_lock_release(h->f->cluster->home->locks, commit.row_hash);
    tablet_release(tablet);
}

static void arrive(struct history *h, const struct change *c)
{
    char text[TEXT_MOST];
    struct packed_change change;
    assert_ok(row_change_pack(change_of(h->f, c, text), rows_big_value(h->f->table), &change));
    if (h->assumes_rising)
        write_assuming(h, &change, c);
    else
        assert_ok(foreign_row_write(h->f->table, bytes_of(row_name(c->row)), &change, c->version));
    buffer_free(&change.fragment);
}

static bool is_used(const struct history *h, uint64_t version)
{
    for (size_t i = 0; i < h->used_count; i++)
        if (h->used[i] == version)
            return true;
    return false;
}

static void note_used(struct history *h, uint64_t version)
{
    assert_true(h->used_count < MOST_VERSIONS);
    h->used[h->used_count++] = version;
}

/* Next to that of one of the last changes, by arrival: so it is as late as may be, whatever the
 * machine does meanwhile. None of ours, whose low bits are 0. */
static uint64_t late_version(struct history *h)
{
    size_t back = h->used_count < LATE_BY ? h->used_count : LATE_BY;
    uint64_t base = h->used[h->used_count - 1 - next_random(&h->random) % back], version;
    do
        version = base + 1 + next_random(&h->random) % (4 * VERSION_STEP);
    while (version % VERSION_STEP == 0 || is_used(h, version));
    note_used(h, version);
    return version;
}

/* The next of one of the clusters; now and then one that has arrived before comes once more. */
static void let_arrive(struct history *h, size_t cluster)
{
    struct change *next = &h->from[cluster].changes[h->from[cluster].arrived];
    next->version = late_version(h);
    arrive(h, next);
    apply(&h->rows[next->row], next);
    if (h->from[cluster].arrived++ == 0 || next_random(&h->random) % 4 != 0)
        return;
    const struct change *again =
        &h->from[cluster].changes[next_random(&h->random) % h->from[cluster].arrived];
    arrive(h, again);
}

static void write_our_own(struct history *h)
{
    char text[TEXT_MOST];
    struct change change = draw(&h->random, true);
    struct test_write write;
    struct event event;
    event_init(&event);
    post_write(h->f, &write, bytes_of(row_name(change.row)), change_of(h->f, &change, text),
               &event);
    assert_ok(event_wait(&event, 1));
    change.version = write.write.commit.version;
    note_used(h, change.version);
    apply(&h->rows[change.row], &change);
}

static void disturb(struct history *h)
{
    struct tablet *tablet = table_route(h->f->table, bytes_of("a"));
    uint32_t what = next_random(&h->random) % 12;
    if (what < 4)
        assert_ok(
            row_jobs_maintain(h->f->table, bytes_of(row_name(next_random(&h->random) % ROWS))));
    else if (what == 4)
        assert_ok(keyspace_flush(tablet->keyspace));
    else if (what == 5)
        assert_ok(keyspace_compact(tablet->keyspace, bytes_of(""), bytes_of("")));
    tablet_release(tablet);
}

static void compare(struct history *h, uint32_t row)
{
    struct seen_row is = read_row(h->f, row), should = seen_of(&h->rows[row]);
    bool is_right = memcmp(&is, &should, sizeof is) == 0;
    h->evaluations++;
    h->wrong += !is_right;
    if (!is_right && !h->assumes_rising)
        fail_msg("row %s is not what its versions say", row_name(row));
}

static void draw_all(struct history *h, size_t count)
{
    for (size_t i = 0; i < CLUSTERS; i++) {
        h->from[i].changes = calloc(count, sizeof *h->from[i].changes);
        assert_non_null(h->from[i].changes);
        for (size_t k = 0; k < count; k++)
            h->from[i].changes[k] = draw(&h->random, false);
    }
}

static void run_history(struct history *h, size_t count)
{
    size_t left = CLUSTERS * count;
    draw_all(h, count);
    write_our_own(h);
    while (left > 0 && (h->wrong == 0 || !h->assumes_rising)) {
        size_t cluster = next_random(&h->random) % CLUSTERS;
        if (h->from[cluster].arrived == count)
            continue;
        let_arrive(h, cluster);
        left--;
        if (next_random(&h->random) % 16 == 0)
            write_our_own(h);
        disturb(h);
        for (uint32_t row = 0; row < ROWS; row++)
            compare(h, row);
        arena_reset(h->f->arena);
    }
    for (size_t i = 0; i < CLUSTERS; i++)
        free(h->from[i].changes);
}

static struct test_run run = {.rounds = 3, .changes = 240, .seed = 1};
/* Of evaluations: three a change, in a half as many histories more with two shards. */
static const struct test_run a_million = {.rounds = 1000, .changes = 240, .seed = 1};

/* Of two shards the second has the rows from "b" on. */
static void put_into_two(struct cluster_fixture *f)
{
    const bytes split = bytes_of("b");
    table_release(f->table);
    assert_ok(cluster_delete_table(f->cluster, bytes_of(TEST_TABLE), NULL));
    f->table = create_split_test_table(f->cluster, NULL, &split, 1);
    assert_int_equal(f->table->space_count, 2);
}

static struct history new_history(unsigned number, bool assumes_rising, unsigned shards)
{
    struct history h = {.f = cluster_fixture_create_in(NULL, shards),
                        .random = run.seed * 1000 + number,
                        .assumes_rising = assumes_rising};
    table_release(h.f->table);
    close_test_cluster(h.f);
    h.f->options.tombstones_from = 1; /* older changes may always come */
    h.f->options.spreads_tablets = true;
    open_test_cluster(h.f);
    assert_ok(cluster_table(h.f->cluster, bytes_of(TEST_TABLE), &h.f->table));
    if (shards > 1)
        put_into_two(h.f);
    return h;
}

static void run_histories(unsigned rounds, unsigned shards)
{
    size_t evaluations = 0;
    for (unsigned i = 0; i < rounds; i++) {
        struct history h = new_history(i, false, shards);
        run_history(&h, run.changes / CLUSTERS);
        evaluations += h.evaluations;
        reopen_test_cluster(h.f);
        for (uint32_t row = 0; row < ROWS; row++)
            compare(&h, row);
        cluster_fixture_destroy(h.f);
    }
    print_message("# %u histories, %u shards, %zu evaluations, seed %llu\n", rounds, shards,
                  evaluations, (unsigned long long)run.seed);
}

static void late_and_doubled_changes_come_to_what_their_versions_say(void **state)
{
    (void)state;
    run_histories(run.rounds, 1);
}

static void late_and_doubled_changes_in_two_shards(void **state)
{
    (void)state;
    run_histories((run.rounds + 1) / 2, 2);
}

static void assuming_that_versions_rise_comes_out_wrong(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct history h = new_history(i, true, 1);
        run_history(&h, run.changes / CLUSTERS);
        assert_true(h.wrong > 0);
        cluster_fixture_destroy(h.f);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_and_doubled_changes_come_to_what_their_versions_say),
        cmocka_unit_test(late_and_doubled_changes_in_two_shards),
        cmocka_unit_test(assuming_that_versions_rise_comes_out_wrong),
    };
    take_test_run(&run, a_million, argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
