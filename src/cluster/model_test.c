/* The model test: 64 writers on one table, overflowing at 256 bytes, tablets splitting and merging,
 * the server killed again and again, and after each start every row compared with what it must be.
 *
 *     model_test [CYCLES] [SEED]      default 6 cycles, and half as many with two shards
 *
 * The server's part runs in a child process, which is killed with SIGKILL; what was acknowledged is
 * kept outside, in memory shared with the parent. A writer has rows of its own and does one thing
 * at a time, so that its rows are known exactly; of what it was at when it was killed, either the
 * row before or the row after will do. Besides, all writers add to one counter.
 *
 * Meanwhile another table is made and deleted, and the wall clock is set ahead and back by up to a
 * day. Every other child begins with one that is a day behind. */
#include "base/testing/testing_clock.h"
#include "cluster/testing/testing.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum {
    WRITERS = 64,
    LOOPS = 2,
    ROWS = 3,  /* of each writer */
    PLAIN = 2, /* families */
    QUALIFIERS = 6,
    TIMES = 3,
    TEXT_MOST = 400, /* bytes of a value: some are past the overflow threshold */
    ACKS_A_CYCLE = 4000,
};

/* --- the model --- */

/* Values are numbers; 0: there is no such cell. */
struct model_row {
    uint32_t plain[PLAIN][QUALIFIERS][TIMES];
    uint64_t sums[QUALIFIERS];
};

enum action {
    SET,
    UPDATE, /* as SET, but the row is read and compared under its lock before */
    ADD,
    DELETE_COLUMN,
    DELETE_TIMES, /* of a column: all but the oldest */
    DELETE_FAMILY,
    DELETE_ROW,
    ADD_TO_COUNTER, /* that all share */
};

struct action_of_writer {
    enum action action;
    uint32_t row, family, qualifier, time, value;
};

struct model_writer {
    struct model_row rows[ROWS];
    struct action_of_writer next;
    bool is_under_way; /* `next` may have been done or not */
    uint64_t random;
    uint64_t added; /* to the counter, acknowledged */
};

struct model {
    struct model_writer writers[WRITERS];
    uint64_t
        counter; /* what it was when it was last read, less what its writers have since added */
};

static void apply(struct model_row *row, const struct action_of_writer *a)
{
    switch (a->action) {
    case SET:
    case UPDATE:
        row->plain[a->family][a->qualifier][a->time] = a->value;
        break;
    case ADD:
        row->sums[a->qualifier] += a->value;
        break;
    case DELETE_COLUMN:
        memset(row->plain[a->family][a->qualifier], 0, sizeof row->plain[0][0]);
        break;
    case DELETE_TIMES:
        memset(&row->plain[a->family][a->qualifier][1], 0, (TIMES - 1) * sizeof(uint32_t));
        break;
    case DELETE_FAMILY:
        memset(row->plain[a->family], 0, sizeof row->plain[0]);
        break;
    case DELETE_ROW:
        memset(row, 0, sizeof *row);
        break;
    case ADD_TO_COUNTER:
        break;
    }
}

static uint32_t next_random(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33);
}

static void choose(struct model_writer *writer)
{
    static const enum action deck[] = {
        SET,    SET, SET, SET,           SET,          SET,           UPDATE,
        UPDATE, ADD, ADD, DELETE_COLUMN, DELETE_TIMES, DELETE_FAMILY, ADD_TO_COUNTER};
    uint64_t *random = &writer->random;
    writer->next = (struct action_of_writer){
        .action = deck[next_random(random) % (sizeof deck / sizeof deck[0])],
        .row = next_random(random) % ROWS,
        .family = next_random(random) % PLAIN,
        .qualifier = next_random(random) % QUALIFIERS,
        .time = next_random(random) % TIMES,
        .value = 1 + next_random(random) % 1000000,
    };
    if (next_random(random) % 40 == 0)
        writer->next.action = DELETE_ROW;
}

/* --- its text: keys, qualifiers, values --- */

static size_t row_key_text(char *out, size_t size, unsigned writer, unsigned row)
{
    return (size_t)snprintf(out, size, "w%02u-%u", writer, row);
}

static bytes counter_key(void)
{
    return bytes_of("~counter"); /* behind all others */
}

static size_t value_size(uint32_t value)
{
    return value % 5 == 0 ? TEXT_MOST : 8 + value % 60;
}

/* The number, and then dots, up to the size that goes with it. */
static bytes value_text(uint32_t value, char *out)
{
    size_t size = value_size(value);
    memset(out, '.', size);
    char digits[16];
    memcpy(out, digits, (size_t)snprintf(digits, sizeof digits, "%u", value));
    return bytes_make(out, size);
}

static int64_t time_us(uint32_t time)
{
    return 1000 * (1 + (int64_t)time);
}

static uint64_t big_endian(bytes value)
{
    uint64_t word = 0;
    assert_int_equal(value.size, 8);
    for (size_t i = 0; i < 8; i++)
        word = word << 8 | value.data[i];
    return word;
}

/* --- rows as they are --- */

/* Puts the cell into the row; fails the test if it is none that any writer writes. */
static void take_cell(const struct cell *cell, struct model_row *out)
{
    char expected[TEXT_MOST];
    assert_int_equal(cell->qualifier.size, 2);
    uint32_t qualifier = cell->qualifier.data[1] - '0';
    assert_true(qualifier < QUALIFIERS);
    if (cell->family->id == FAMILY_SUM) {
        assert_int_equal(out->sums[qualifier], 0);
        out->sums[qualifier] = big_endian(cell->value);
        return;
    }
    uint32_t time = (uint32_t)(cell->timestamp_us / 1000 - 1);
    assert_true(time < TIMES);
    uint32_t *place = &out->plain[cell->family->id - FAMILY_F][qualifier][time];
    assert_int_equal(*place, 0);
    *place = (uint32_t)strtoul((const char *)cell->value.data, NULL, 10);
    assert_int_equal(cell->value.size, value_size(*place));
    assert_memory_equal(cell->value.data, value_text(*place, expected).data, cell->value.size);
}

/* Sums that are 0 may show or not: an add of nothing has not been made, and is not told apart. */
static struct model_row row_of(const struct cell_list *cells)
{
    struct model_row row = {0};
    for (size_t i = 0; i < cells->count; i++)
        take_cell(&cells->items[i], &row);
    return row;
}

static bool is_same(const struct model_row *a, const struct model_row *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static void show_difference(const char *key, const struct model_row *is,
                            const struct model_row *should)
{
    for (unsigned f = 0; f < PLAIN; f++)
        for (unsigned q = 0; q < QUALIFIERS; q++)
            for (unsigned t = 0; t < TIMES; t++)
                if (is->plain[f][q][t] != should->plain[f][q][t])
                    print_error("%s %c:q%u@%lld is %u, not %u\n", key, "fg"[f], q,
                                (long long)time_us(t), is -> plain[f][q][t],
                                should -> plain[f][q][t]);
    for (unsigned q = 0; q < QUALIFIERS; q++)
        if (is->sums[q] != should->sums[q])
            print_error("%s sum:q%u is %llu, not %llu\n", key, q, (unsigned long long)is->sums[q],
                        (unsigned long long)should->sums[q]);
}

/* --- the check after each start --- */

/* Accepts the row before or after what was under way, and settles which it was. */
static void check_row(struct model_writer *writer, unsigned row, const char *key,
                      const struct model_row *is)
{
    struct model_row after = writer->rows[row];
    bool may_differ = writer->is_under_way && writer->next.row == row;
    if (may_differ)
        apply(&after, &writer->next);
    if (may_differ && is_same(is, &after))
        writer->rows[row] = after;
    if (!is_same(is, &writer->rows[row])) {
        show_difference(key, is, &writer->rows[row]);
        fail_msg("row %s is not as it was acknowledged", key);
    }
}

/* At most one more than was acknowledged for each writer that was adding. */
static void check_counter(struct model *model, uint64_t is)
{
    uint64_t least = model->counter, most;
    for (unsigned i = 0; i < WRITERS; i++)
        least += model->writers[i].added;
    most = least;
    for (unsigned i = 0; i < WRITERS; i++)
        most += model->writers[i].is_under_way && model->writers[i].next.action == ADD_TO_COUNTER;
    if (is < least || is > most)
        fail_msg("the counter is %llu, not from %llu to %llu", (unsigned long long)is,
                 (unsigned long long)least, (unsigned long long)most);
    model->counter = is;
    for (unsigned i = 0; i < WRITERS; i++)
        model->writers[i].added = 0;
}

static void check_found(struct model *model, struct model_row (*found)[ROWS], uint64_t counter)
{
    for (unsigned w = 0; w < WRITERS; w++) {
        for (unsigned r = 0; r < ROWS; r++) {
            char key[16];
            row_key_text(key, sizeof key, w, r);
            check_row(&model->writers[w], r, key, &found[w][r]);
        }
    }
    check_counter(model, counter);
    for (unsigned w = 0; w < WRITERS; w++)
        model->writers[w].is_under_way = false;
}

/* Reads the whole table, and sees that keys come in order. */
static uint64_t read_all(struct cluster_fixture *f, bool reversed, struct model_row (*found)[ROWS])
{
    struct arena *arena = arena_create(1 << 20);
    const struct key_range all = {.is_point = false};
    struct scan_spec spec = {.table = f->table,
                             .ranges = &all,
                             .range_count = 1,
                             .reversed = reversed,
                             .schema = table_schema(f->table),
                             .arena = arena};
    struct scan *scan;
    struct scan_row row;
    enum row_outcome outcome = ROW_ABSENT;
    uint64_t counter = 0;
    char before[16] = "";
    memset(found, 0, WRITERS * sizeof *found);
    assert_ok(scan_create(&spec, &scan));
    while (outcome != ROW_END) {
        assert_ok(scan_next(scan, STORE_READ_ANY, &row, &outcome));
        if (outcome != ROW_FOUND)
            continue;
        if (bytes_equal(row.key, counter_key())) {
            counter = big_endian(row.cells->items[0].value);
            continue;
        }
        char key[16] = "";
        unsigned w, r;
        assert_true(row.key.size < sizeof key);
        memcpy(key, row.key.data, row.key.size);
        assert_int_equal(sscanf(key, "w%2u-%u", &w, &r), 2);
        assert_true(w < WRITERS && r < ROWS);
        assert_true(before[0] == '\0' || (strcmp(before, key) < 0) != reversed);
        memcpy(before, key, sizeof key);
        found[w][r] = row_of(row.cells);
    }
    scan_destroy(scan);
    arena_destroy(arena);
    return counter;
}

static void check_all(struct cluster_fixture *f, struct model *model)
{
    static struct model_row found[WRITERS][ROWS], again[WRITERS][ROWS];
    uint64_t counter = read_all(f, false, found);
    assert_int_equal(read_all(f, true, again), counter);
    assert_memory_equal(again, found, sizeof found);
    check_found(model, found, counter);
}

/* --- writers: each goes on when it is acknowledged, on its loop --- */

struct writer {
    struct cluster_fixture *fixture;
    struct model_writer *model;
    struct loop *loop;
    int acks; /* a byte is written for each acknowledgement */
    struct arena *arena;
    char key[16];
    size_t key_size;
    char value[TEXT_MOST];
    struct task task;
    struct row_write write;
    struct row_update update;
};

static void go_on(struct writer *writer);

/* The model first: killed in between, the next start finds the row after. */
static void acknowledge(struct writer *writer, status result)
{
    struct model_writer *model = writer->model;
    assert_ok(result);
    apply(&model->rows[model->next.row], &model->next);
    model->added += model->next.action == ADD_TO_COUNTER;
    atomic_signal_fence(memory_order_seq_cst);
    model->is_under_way = false;
    assert_int_equal(write(writer->acks, "", 1), 1);
    go_on(writer);
}

static void write_done(struct row_write *write, status result)
{
    acknowledge(LIST_ENTRY(write, struct writer, write), result);
}

static void update_done(struct row_update *update, status result)
{
    acknowledge(LIST_ENTRY(update, struct writer, update), result);
}

static bytes qualifier_of(struct writer *writer)
{
    uint8_t *text = arena_alloc(writer->arena, 2);
    assert_non_null(text);
    text[0] = 'q';
    text[1] = (uint8_t)('0' + writer->model->next.qualifier);
    return bytes_make(text, 2);
}

static bytes state_of(struct writer *writer, uint64_t number)
{
    uint8_t *state = arena_alloc(writer->arena, 8);
    assert_non_null(state);
    for (size_t i = 0; i < 8; i++)
        state[i] = (uint8_t)(number >> (56 - 8 * i));
    return bytes_make(state, 8);
}

static void pack_action(struct writer *writer, struct packed_change *out)
{
    const struct action_of_writer *a = &writer->model->next;
    struct row_change *change = row_change_create(writer->arena);
    uint32_t family = FAMILY_F + a->family;
    assert_non_null(change);
    if (a->action == SET || a->action == UPDATE)
        row_change_set(change, family, qualifier_of(writer), time_us(a->time),
                       value_text(a->value, writer->value));
    else if (a->action == ADD)
        row_change_add(change, ENTRY_SUM, FAMILY_SUM, qualifier_of(writer), 0,
                       state_of(writer, a->value));
    else if (a->action == ADD_TO_COUNTER)
        row_change_add(change, ENTRY_SUM, FAMILY_SUM, bytes_of("q0"), 0, state_of(writer, 1));
    else if (a->action == DELETE_COLUMN)
        row_change_delete_column(change, family, qualifier_of(writer), 0, INT64_MAX);
    else if (a->action == DELETE_TIMES)
        row_change_delete_column(change, family, qualifier_of(writer), time_us(1), time_us(TIMES));
    else if (a->action == DELETE_FAMILY)
        row_change_delete_family(change, family);
    else
        row_change_delete_row(change);
    assert_ok(row_change_pack(change, rows_big_value(writer->fixture->table), out));
}

static status compare_and_set(struct row_update *update, const struct cell_list *cells,
                              struct packed_change *change, bool *writes)
{
    struct writer *writer = LIST_ENTRY(update, struct writer, update);
    struct model_row *should = &writer->model->rows[writer->model->next.row];
    struct model_row is = row_of(cells);
    if (!is_same(&is, should)) {
        show_difference(writer->key, &is, should);
        fail_msg("row %s is read wrong", writer->key);
    }
    pack_action(writer, change);
    *writes = true;
    return status_ok();
}

static void go_on(struct writer *writer)
{
    struct model_writer *model = writer->model;
    struct table *table = writer->fixture->table;
    arena_reset(writer->arena);
    choose(model);
    writer->key_size = row_key_text(writer->key, sizeof writer->key,
                                    (unsigned)strtoul(writer->key + 1, NULL, 10), model->next.row);
    bytes key = model->next.action == ADD_TO_COUNTER ? counter_key()
                                                     : bytes_make(writer->key, writer->key_size);
    atomic_signal_fence(memory_order_seq_cst);
    model->is_under_way = true;
    if (model->next.action == UPDATE) {
        writer->update = (struct row_update){.table = table,
                                             .row_key = key,
                                             .schema = table_schema(table),
                                             .arena = writer->arena,
                                             .loop = writer->loop,
                                             .decide = compare_and_set,
                                             .done = update_done};
        rows_update(&writer->update);
        return;
    }
    writer->write = (struct row_write){
        .table = table, .row_key = key, .loop = writer->loop, .done = write_done};
    pack_action(writer, &writer->write.change);
    rows_write(&writer->write);
}

static void start_writer(struct task *task)
{
    go_on(LIST_ENTRY(&task->link, struct writer, task.link));
}

/* --- the child --- */

/* A table that comes and goes, with rows in it when it goes. */
static void make_or_delete_table(struct cluster_fixture *f)
{
    static const char name[] = "projects/p/instances/i/tables/passing";
    const struct family family = {.id = 1, .name = bytes_of("f")};
    const bytes split = bytes_of("m");
    struct schema *schema;
    struct table *table;
    status s = cluster_delete_table(f->cluster, bytes_of(name), NULL);
    if (s.code != STATUS_NOT_FOUND) {
        assert_ok(s);
        return;
    }
    status_free(s);
    assert_ok(schema_create(GRANULARITY_MILLIS, &family, 1, 2, &schema));
    struct table_spec spec = {
        .name = name, .schema = schema, .split_keys = &split, .split_count = 1};
    assert_ok(cluster_create_table(f->cluster, &spec, &table));
    schema_destroy(schema);
    struct cluster_fixture other = {.table = table, .loop = f->loop, .arena = f->arena};
    set_cell(&other, "row", "value");
    arena_reset(f->arena);
    table_release(table);
}

/* The wall clock is set, right or wrong. */
static void set_clock(struct ahead_clock *clock, uint64_t random)
{
    static const int64_t hours[] = {0, 0, -24, -1, 1, 24};
    atomic_store(&clock->wall_ahead_us,
                 hours[random % (sizeof hours / sizeof *hours)] * 3600 * INT64_C(1000000));
}

/* Whether the tablet before it has the same keyspace, so that they may merge. */
static bool is_behind_its_like(struct cluster_fixture *f, const struct tablet *tablet)
{
    if (tablet->start.size == 0)
        return false;
    struct tablet *before = table_route_before(f->table, tablet->start);
    bool is_alike = before->keyspace == tablet->keyspace;
    tablet_release(before);
    return is_alike;
}

/* Splits and merges at random keys, makes and deletes a table, flushes and compacts, and sets the
 * clock, until the end. */
static void disturb(struct cluster_fixture *f, struct ahead_clock *clock, uint64_t random)
{
    for (;;) {
        char key[16];
        row_key_text(key, sizeof key, next_random(&random) % WRITERS, next_random(&random) % ROWS);
        struct tablet *tablet = table_route(f->table, bytes_of(key));
        struct keyspace *keyspace = tablet->keyspace;
        bool stands_alone = !is_behind_its_like(f, tablet);
        tablet_release(tablet);
        if (stands_alone || table_tablet_count(f->table) < 10)
            split_at(f, key);
        else
            merge_at(f, key);
        if (next_random(&random) % 10 == 0)
            make_or_delete_table(f);
        if (next_random(&random) % 20 == 0)
            set_clock(clock, next_random(&random));
        if (next_random(&random) % 30 == 0)
            assert_ok(keyspace_flush(keyspace));
        if (next_random(&random) % 100 == 0)
            assert_ok(keyspace_compact(keyspace, bytes_of(""), bytes_of("")));
    }
}

static void start_writers(struct cluster_fixture *f, struct model *model, int acks)
{
    struct loop *loops[LOOPS] = {f->loop};
    pthread_t thread;
    for (unsigned i = 1; i < LOOPS; i++) {
        assert_ok(loop_create(f->options.clock, &loops[i]));
        assert_ok(thread_start(&thread, "loop", run_test_loop, loops[i]));
    }
    struct writer *writers = calloc(WRITERS, sizeof *writers);
    assert_non_null(writers);
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.fixture = f,
                                     .model = &model->writers[i],
                                     .loop = loops[i % LOOPS],
                                     .acks = acks,
                                     .arena = arena_create(16 << 20),
                                     .task = {.run = start_writer}};
        assert_non_null(writers[i].arena);
        row_key_text(writers[i].key, sizeof writers[i].key, i, 0);
        loop_post(writers[i].loop, &writers[i].task);
    }
}

/* With three tablets of each shard, if there are several. */
static struct table *create_table_in(struct cluster *cluster, unsigned shards)
{
    enum { TABLETS = 6 };
    char texts[TABLETS - 1][16];
    bytes keys[TABLETS - 1];
    for (unsigned i = 0; i < TABLETS - 1; i++) {
        row_key_text(texts[i], sizeof texts[i], (i + 1) * WRITERS / TABLETS, 0);
        keys[i] = bytes_of(texts[i]);
    }
    return create_split_test_table(cluster, NULL, keys, shards > 1 ? TABLETS - 1 : 0);
}

/* Opens what the one before left, checks it, and writes until it is killed. */
static void run_child(const char *directory, struct model *model, unsigned cycle, int acks,
                      unsigned shards)
{
    struct ahead_clock clock = {.clock = AHEAD_CLOCK,
                                .wall_ahead_us = cycle % 2 * INT64_C(-86400) * 1000000};
    struct log log = {.fd = STDERR_FILENO, .level = LOG_WARN, .clock = clock_system()};
    struct cluster_fixture f = {.options = test_cluster_options(directory)};
    assert_ok(pool_create(2, 64, "test", &f.pool));
    f.options.log = &log;
    f.options.pool = f.pool;
    f.options.clock = &clock.clock;
    f.options.shards = shards;
    f.options.spreads_tablets = true;
    f.arena = arena_create(1 << 20);
    assert_non_null(f.arena);
    open_test_cluster(&f);
    if (cycle == 0)
        f.table = create_table_in(f.cluster, shards);
    else
        assert_ok(cluster_table(f.cluster, bytes_of(TEST_TABLE), &f.table));
    check_all(&f, model);
    assert_int_equal(write(acks, "", 1), 1);
    uint64_t random = model->writers[0].random;
    start_writers(&f, model, acks);
    disturb(&f, &clock, random);
}

/* --- the parent --- */

struct run {
    unsigned cycles;
    uint64_t seed;
};

static struct run run = {.cycles = 6, .seed = 1};

/* Reads so many acknowledgements, or until the child has ended. */
static uint64_t count_acks(int acks, uint64_t limit)
{
    char buffer[4096];
    uint64_t count = 0;
    while (count < limit) {
        size_t size = limit - count < sizeof buffer ? limit - count : sizeof buffer;
        ssize_t got = read(acks, buffer, size);
        if (got <= 0)
            break;
        count += (uint64_t)got;
    }
    return count;
}

/* What a failed assertion does in a child: cmocka would jump into the parent's copy. */
static uint64_t run_cycle(const char *directory, struct model *model, unsigned cycle,
                          uint64_t acks_wanted, unsigned shards)
{
    int acks[2];
    assert_int_equal(pipe(acks), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(acks[0]);
        run_child(directory, model, cycle, acks[1], shards);
        _exit(1);
    }
    close(acks[1]);
    uint64_t acknowledged = count_acks(acks[0], acks_wanted);
    assert_int_equal(kill(child, SIGKILL), 0);
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    close(acks[0]);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    assert_int_equal(acknowledged, acks_wanted);
    return acknowledged;
}

static void run_in(unsigned shards, unsigned cycles)
{
    char directory[] = "/tmp/trestle-model-XXXXXX";
    assert_non_null(mkdtemp(directory));
    struct model *model =
        mmap(NULL, sizeof *model, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(model != MAP_FAILED);
    uint64_t random = run.seed, acknowledged = 0;
    for (unsigned i = 0; i < WRITERS; i++)
        model->writers[i].random = run.seed * WRITERS + i;
    for (unsigned cycle = 0; cycle < cycles; cycle++)
        acknowledged +=
            run_cycle(directory, model, cycle, 100 + next_random(&random) % ACKS_A_CYCLE, shards);
    acknowledged += run_cycle(directory, model, cycles, 1, shards); /* the last check */
    print_message("# %u kills, %u shards, %llu writes acknowledged, seed %llu\n", cycles + 1,
                  shards, (unsigned long long)acknowledged, (unsigned long long)run.seed);
    munmap(model, sizeof *model);
    remove_test_directory(directory);
}

static void what_was_acknowledged_is_there_after_every_kill(void **state)
{
    (void)state;
    run_in(1, run.cycles);
}

/* A table that lies in both. */
static void what_two_shards_acknowledged_is_there_after_every_kill(void **state)
{
    (void)state;
    run_in(2, (run.cycles + 1) / 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_acknowledged_is_there_after_every_kill),
        cmocka_unit_test(what_two_shards_acknowledged_is_there_after_every_kill),
    };
    if (argc > 1)
        run.cycles = (unsigned)strtoul(argv[1], NULL, 10);
    if (argc > 2)
        run.seed = strtoull(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
