/* DropRowRange in a table with a change stream: its rows are gone at once, and each is told once,
 * in front of whatever is written to it later, whoever comes first; over kills, splits, merges,
 * streams that are switched off, archives; and random histories against a list of what each row's
 * records must be.
 *
 *     telling_test [HISTORIES] [STEPS] [SEED]      default 6 of 120; 1000 with TRESTLE_LONG=all
 */
#include "cluster/maintenance.h"
#include "cluster/row_group.h"
#include "cluster/stream/tell_dropped.h"
#include "cluster/stream/telling.h"
#include "cluster/testing/lives_testing.h"
#include "cluster/testing/stream_testing.h"
#include "cluster/testing/update_testing.h"

static struct test_run run = {6, 120, 1};
static const struct test_run a_thousand = {1000, 120, 1};

/* One row a piece. */
static int setup(void **state)
{
    struct cluster_fixture *f = *state = cluster_fixture_create(NULL);
    f->options.maintenance_by_hand = true;
    f->options.piece_bytes = 1;
    reopen_test_cluster(f);
    switch_stream(f, RETENTION_US);
    return 0;
}

static int teardown(void **state)
{
    cluster_fixture_destroy(*state);
    return 0;
}

static struct table_space *space_of(const struct cluster_fixture *f)
{
    return &f->table->spaces[0];
}

static bool is_telling(const struct cluster_fixture *f)
{
    return telling_has_begun(space_of(f)->telling);
}

/* A piece of the job, of one row. */
static void tell_piece(struct cluster_fixture *f)
{
    space_of(f)->pass.not_until_us = 0;
    assert_ok(tell_dropped_piece(f->table, space_of(f)));
}

static void tell_all(struct cluster_fixture *f)
{
    while (is_telling(f))
        tell_piece(f);
}

static void run_passes(struct cluster_fixture *f)
{
    for (int i = 0; i < 3; i++) {
        space_of(f)->pass.not_until_us = 0;
        maintenance_run_once(f->cluster->maintenance);
    }
}

static struct reader reader_now(struct cluster_fixture *f)
{
    return reader_at(f, cluster_version_us(f->cluster), "", "");
}

static void set_rows(struct cluster_fixture *f)
{
    set_in(f, "a1", FAMILY_F, "q", 1, "1");
    set_in(f, "a2", FAMILY_G, "q", 1, "1");
    set_in(f, "a3", FAMILY_F, "q", 1, "1");
    set_in(f, "a3", FAMILY_G, "q", 1, "1");
    set_in(f, "b", FAMILY_F, "q", 1, "1");
}

static status drop(struct cluster_fixture *f, const char *prefix)
{
    return table_drop_rows(f->table, bytes_of(prefix));
}

/* --- one drop --- */

static void rows_are_gone_at_once_and_told_later(void **state)
{
    struct cluster_fixture *f = *state;
    set_rows(f);
    struct reader reader = reader_now(f);
    assert_ok(drop(f, "a"));
    assert_scan(f, "", "", false, "b=1");
    assert_next(&reader, "");
    tell_piece(f);
    assert_next(&reader, "a1:-f");
    tell_all(f);
    assert_next(&reader, "a2:-g a3:-f:-g");
    run_passes(f);
    assert_int_equal(row_drops_count(space_of(f)->drops), 0);
    assert_next(&reader, "");
    end_reader(&reader);
}

static void another_drop_is_refused_meanwhile(void **state)
{
    struct cluster_fixture *f = *state;
    set_rows(f);
    assert_ok(drop(f, "a"));
    status s = drop(f, "b");
    assert_int_equal(s.code, STATUS_UNAVAILABLE);
    assert_string_equal(status_message(s), "A DropRowRange operation is already ongoing");
    status_free(s);
    assert_scan(f, "", "", false, "b=1");
    tell_all(f);
    assert_ok(drop(f, "b"));
    assert_scan(f, "", "", false, "");
}

/* And is not told again when its turn comes. */
static void a_write_is_told_behind_what_it_overtakes(void **state)
{
    struct cluster_fixture *f = *state;
    set_rows(f);
    struct reader reader = reader_now(f);
    assert_ok(drop(f, "a"));
    set_in(f, "a3", FAMILY_F, "q", 1, "2");
    set_in(f, "a3", FAMILY_F, "q", 1, "3");
    set_in(f, "a4", FAMILY_F, "q", 1, "4");
    set_in(f, "b", FAMILY_F, "q", 1, "5");
    assert_next(&reader, "a3:-f:-g a3:f.q=2 a3:f.q=3 a4:f.q=4 b:f.q=5");
    tell_all(f);
    assert_next(&reader, "a1:-f a2:-g");
    assert_scan(f, "", "", false, "a3=3 a4=4 b=5");
    end_reader(&reader);
}

/* What it deletes had gone before. */
static void a_deletion_of_the_row_is_the_drops(void **state)
{
    struct cluster_fixture *f = *state;
    set_rows(f);
    struct reader reader = reader_now(f);
    assert_ok(drop(f, "a"));
    delete_row(f, "a2");
    delete_row(f, "a5");
    assert_next(&reader, "a2:-g");
    tell_all(f);
    assert_next(&reader, "a1:-f a3:-f:-g");
    end_reader(&reader);
}

static void groups_of_rows_tell_theirs(void **state)
{
    struct cluster_fixture *f = *state;
    struct grouped_row rows[] = {{.row_key = bytes_of("a3")}, {.row_key = bytes_of("a1")}};
    struct row_group group = {.table = f->table, .rows = rows, .count = 2, .arena = f->arena};
    set_rows(f);
    struct reader reader = reader_now(f);
    assert_ok(drop(f, "a"));
    for (size_t i = 0; i < 2; i++)
        assert_ok(row_change_pack(setting(f, FAMILY_G, "r", 1, "2"), SIZE_MAX, &rows[i].change));
    assert_ok(row_group_write(&group));
    assert_next(&reader, "a3:-f:-g a3:g.r=2 a1:-f a1:g.r=2");
    tell_all(f);
    assert_next(&reader, "a2:-g");
    end_reader(&reader);
}

static status set_if_absent(struct row_update *update, const struct cell_list *cells,
                            struct packed_change *change, bool *writes)
{
    struct row_change *row_change = row_change_create(update->arena);
    *writes = cells->count == 0;
    if (!*writes)
        return status_ok();
    row_change_set(row_change, FAMILY_F, bytes_of("q"), 1, bytes_of("new"));
    return row_change_pack(row_change, SIZE_MAX, change);
}

static void update_row(struct cluster_fixture *f, const char *row_key)
{
    struct test_update update = {.update = {.decide = set_if_absent}};
    test_update_run(f, &update, row_key);
}

static void an_update_sees_no_dropped_row_and_tells_it(void **state)
{
    struct cluster_fixture *f = *state;
    set_rows(f);
    struct reader reader = reader_now(f);
    assert_ok(drop(f, "a"));
    update_row(f, "a2");
    update_row(f, "a2");
    update_row(f, "b");
    assert_next(&reader, "a2:-g a2:f.q=new");
    tell_all(f);
    assert_next(&reader, "a1:-f a3:-f:-g");
    end_reader(&reader);
}

/* --- starts --- */

static void it_goes_on_at_the_next_start(void **state)
{
    struct cluster_fixture *f = *state;
    set_rows(f);
    struct reader reader = reader_now(f);
    assert_ok(drop(f, "a"));
    reopen_test_cluster(f);
    assert_scan(f, "", "", false, "b=1");
    tell_piece(f);
    set_in(f, "a3", FAMILY_F, "q", 1, "2");
    reopen_test_cluster(f);
    assert_status(drop(f, "b"), STATUS_UNAVAILABLE);
    assert_next(&reader, "a1:-f a3:-f:-g a3:f.q=2");
    tell_all(f);
    assert_next(&reader, "a2:-g");
    reopen_test_cluster(f);
    assert_false(is_telling(f));
    assert_ok(drop(f, "b"));
    end_reader(&reader);
}

static void set_many(struct cluster_fixture *f, const char *value)
{
    for (int i = 0; i < 300; i++) {
        char row_key[8];
        snprintf(row_key, sizeof row_key, "m%03d", i);
        set_in(f, row_key, FAMILY_F, "q", 1, value);
    }
}

/* Also those that the next start finds on record. */
static void many_rows_may_be_overtaken(void **state)
{
    struct cluster_fixture *f = *state;
    set_many(f, "1");
    struct reader reader = reader_now(f);
    assert_ok(drop(f, "m"));
    set_many(f, "2");
    reopen_test_cluster(f);
    set_many(f, "3");
    read_on(&reader);
    assert_int_equal(reader.records, 3 * 300);
    f->cluster->options.piece_bytes = 0;
    tell_all(f);
    read_on(&reader);
    assert_int_equal(reader.records, 3 * 300);
    end_reader(&reader);
}

/* A fold that throws away what was dropped would leave nothing to be told. */
static void what_is_to_be_told_stays_over_compactions(void **state)
{
    struct cluster_fixture *f = *state;
    set_rows(f);
    struct reader reader = reader_now(f);
    assert_ok(drop(f, "a"));
    for (int i = 0; i < 2; i++) {
        run_passes(f); /* tells one row a run */
        assert_ok(keyspace_compact(space_of(f)->keyspace, bytes_of(""), bytes_of("")));
        reopen_test_cluster(f);
    }
    tell_all(f);
    assert_next(&reader, "a1:-f a2:-g a3:-f:-g");
    end_reader(&reader);
}

/* --- the stream --- */

static void a_stream_that_is_off_is_not_told(void **state)
{
    struct cluster_fixture *f = *state;
    set_rows(f);
    assert_ok(drop(f, "a"));
    switch_stream(f, 0);
    assert_ok(drop(f, "b"));
    assert_false(is_telling(f));
    switch_stream(f, RETENTION_US);
    struct reader reader = reader_of(f, "", "");
    set_in(f, "a1", FAMILY_F, "q", 1, "2");
    run_passes(f);
    assert_next(&reader, "a1:f.q=2");
    assert_int_equal(row_drops_count(space_of(f)->drops), 0);
    end_reader(&reader);
}

/* The job finds that out. */
static void a_stream_of_another_life_is_not_told(void **state)
{
    struct cluster_fixture *f = *state;
    set_rows(f);
    assert_ok(drop(f, "a"));
    switch_stream(f, 0);
    switch_stream(f, RETENTION_US);
    struct reader reader = reader_of(f, "", ""), all = reader;
    set_in(f, "a1", FAMILY_F, "q", 1, "2");
    tell_all(f);
    assert_next(&reader, "a1:f.q=2");
    all.from_us = 0; /* nor does the log have any */
    all.token = reader_of(f, "", "").token;
    read_on(&all);
    buffer_append_byte(&all.text, 0);
    assert_null(strstr((const char *)all.text.data, ":-"));
    end_reader(&all);
    reopen_test_cluster(f);
    assert_false(is_telling(f));
    run_passes(f);
    assert_false(telling_has_any(space_of(f)->telling));
    end_reader(&reader);
}

/* No record that comes later is of the watermark's time or before, wherever a reader stands. */
static void no_watermark_passes_what_is_to_be_told(void **state)
{
    struct cluster_fixture *f = *state;
    set_rows(f);
    struct reader reader = reader_now(f), late = reader_now(f);
    assert_ok(drop(f, "a"));
    struct telling_place place;
    telling_look(space_of(f)->telling, &place);
    int64_t drop_us = version_time_us(place.version);
    buffer_free(&place.first);
    buffer_free(&place.next);
    buffer_free(&place.to);
    set_in(f, "b", FAMILY_F, "q", 1, "2");
    assert_next(&reader, "b:f.q=2");
    assert_int_equal(reader.token.time_us, drop_us - 1);
    struct stream_position behind_b = reader.token.parts[0].after;
    tell_all(f);
    assert_int_equal(
        table_stream_watermark(f->table, 0, bytes_of(""), bytes_of(""), behind_b, INT64_MAX),
        drop_us - 1);
    reopen_test_cluster(f); /* the span is on record */
    assert_int_equal(
        table_stream_watermark(f->table, 0, bytes_of(""), bytes_of(""), behind_b, INT64_MAX),
        drop_us - 1);
    assert_int_equal(
        table_stream_watermark(f->table, 0, bytes_of("b"), bytes_of(""), behind_b, INT64_MAX),
        INT64_MAX);
    assert_next(&reader, "a1:-f a2:-g a3:-f:-g");
    assert_true(reader.token.time_us > drop_us);
    assert_next(&late, "b:f.q=2 a1:-f a2:-g a3:-f:-g");
    end_reader(&reader);
    end_reader(&late);
}

static void rows_go_to_the_tablets_that_there_are(void **state)
{
    struct cluster_fixture *f = *state;
    set_rows(f);
    struct reader whole = reader_now(f);
    assert_ok(drop(f, "a"));
    tell_piece(f);
    split_at(f, "a3");
    tell_all(f);
    struct reader right = {.f = f, .from_us = whole.from_us};
    assert_ok(stream_token_cut(&whole.token, bytes_of("a3"), bytes_of(""), f->arena, &right.token));
    assert_next(&right, "a3:-f:-g");
    assert_next(&whole, "a1:-f a2:-g a3:-f:-g");
    end_reader(&whole);
    end_reader(&right);
}

/* --- writers beside it --- */

enum { WRITERS = 8, WRITES = 150, DROPS = 6, LONGEST = 64 };

struct writer {
    struct cluster_fixture *f;
    atomic_int *writing; /* how many of them are */
    atomic_int *drops;   /* how many there were */
    int written;
    pthread_t thread;
    char row_key[8];
};

static void *write_many(void *argument)
{
    struct writer *writer = argument;
    struct arena *arena = arena_create(1 << 20);
    char value[LONGEST];
    for (int i = 1; i <= WRITES || atomic_load(writer->drops) < DROPS; i++) {
        struct test_write write;
        struct event event;
        struct row_change *change = row_change_create(arena);
        event_init(&event);
        bytes number = bytes_make(value, (size_t)snprintf(value, sizeof value, "%d", i));
        row_change_set(change, i % 2 == 0 ? FAMILY_F : FAMILY_G, bytes_of("q"), 1, number);
        post_write(writer->f, &write, bytes_of(writer->row_key), change, &event);
        assert_ok(event_wait(&event, 1));
        writer->written = i;
        arena_reset(arena);
    }
    arena_destroy(arena);
    atomic_fetch_sub(writer->writing, 1);
    return NULL;
}

/* What a row has, replayed: 0: nothing. */
struct replayed {
    int f, g;
    int last; /* value that was told */
};

static status replay(void *context, const struct stream_record *record, bool *enough)
{
    struct replayed *rows = context;
    struct replayed *row = &rows[record->row_key.data[1] - '0'];
    struct list_reader list;
    struct list_mutation mutation;
    (void)enough;
    list_reader_start(&list, record->list);
    while (list_reader_next(&list, &mutation)) {
        int *family = mutation.family.data[0] == 'f' ? &row->f : &row->g;
        if (mutation.kind == LIST_DELETE_FAMILY) {
            assert_true(*family != 0); /* it had some */
            *family = 0;
            continue;
        }
        char text[LONGEST] = "";
        memcpy(text, mutation.value.data, mutation.value.size);
        *family = (int)strtol(text, NULL, 10);
        assert_int_equal(*family, row->last + 1); /* none twice, and none missing */
        row->last = *family;
    }
    return status_ok();
}

static void assert_replayed(struct cluster_fixture *f, const struct replayed *rows,
                            const struct writer *writers)
{
    struct buffer expected = {0};
    for (int i = 0; i < WRITERS; i++) {
        int first = rows[i].f != 0 ? rows[i].f : rows[i].g;
        if (first != 0)
            buffer_append_format(&expected, "%sw%d=%d", expected.size > 0 ? " " : "", i, first);
        assert_int_equal(rows[i].last, writers[i].written);
    }
    buffer_append_byte(&expected, 0);
    assert_scan(f, "", "", false, (const char *)expected.data);
    buffer_free(&expected);
}

/* Maintenance runs by itself: some rows are told by writes, some by the job. */
static void writers_that_go_on_are_told_in_order(void **state)
{
    struct cluster_fixture *f = *state;
    struct writer writers[WRITERS];
    struct replayed rows[WRITERS] = {{0}};
    bool is_at_end = false;
    atomic_int writing = WRITERS, drops = 0;
    f->options.maintenance_by_hand = false;
    reopen_test_cluster(f);
    struct reader reader = reader_now(f);
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.f = f, .writing = &writing, .drops = &drops};
        snprintf(writers[i].row_key, sizeof writers[i].row_key, "w%d", i);
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_many, &writers[i]), 0);
    }
    for (int i = 0; atomic_load(&writing) > 0; i++) {
        status s = drop(f, i % 2 == 0 ? "w" : "w3");
        atomic_fetch_add(&drops, status_is_ok(s));
        assert_true(status_is_ok(s) || s.code == STATUS_UNAVAILABLE);
        status_free(s);
        sched_yield();
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    while (is_telling(f))
        sched_yield();
    while (!is_at_end)
        assert_ok(table_stream_read(f->table, &reader.token, 1 << 20, replay, rows, &is_at_end));
    assert_replayed(f, rows, writers);
    end_reader(&reader);
}

/* --- random histories --- */

enum { KEYS = 8, TEXT = 16 << 10 };

static const char *const keys[KEYS] = {"a", "aa", "ab", "b", "ba", "bb", "c", "d"};
static const char *const prefixes[] = {"", "a", "b", "ab", "c", "d"};
static const char *const families[] = {"f", "g", "sum"};

/* A row: which families have cells, what is to be told of it, and what was. */
struct row_story {
    bool has[3];
    char expected[TEXT];
    char told[TEXT];
};

struct history {
    struct lives lives; /* first */
    int next;           /* value */
    struct row_story rows[KEYS];
    char token[4096];
    size_t token_size;
    int64_t watermark_us;
    /* This life's. */
    struct cluster_fixture *f;
    struct store_snapshot *snapshot;
};

static unsigned below(struct history *h, unsigned end)
{
    return lives_random(&h->lives, end);
}

static void append(char out[TEXT], const char *text)
{
    size_t size = strlen(out);
    assert_true(size + strlen(text) < TEXT);
    snprintf(out + size, TEXT - size, "%s", text);
}

static void expect(struct row_story *row, const char *text)
{
    append(row->expected, text);
    append(row->expected, " ");
}

/* "-f:-g", in the order of names, of what it has no more. */
static void expect_deletion(struct row_story *row)
{
    bool has_any = row->has[0] || row->has[1] || row->has[2];
    for (int i = 0; i < 3; i++)
        if (row->has[i]) {
            append(row->expected, ":-");
            append(row->expected, families[i]);
            row->has[i] = false;
        }
    append(row->expected, has_any ? " " : "");
}

/* Every third is so large that it lies beside its record. */
static void write_value(struct history *h)
{
    char value[400], text[LONGEST + sizeof value];
    unsigned row = below(h, KEYS), family = below(h, 2);
    int size = below(h, 3) == 0 ? 300 : 4;
    snprintf(value, sizeof value, "%0*d", size, ++h->next);
    set_in(h->f, keys[row], family + 1, "q", 1 + (int64_t)below(h, 2), value);
    h->rows[row].has[family] = true;
    snprintf(text, sizeof text, ":%s.q=%s", families[family], value);
    expect(&h->rows[row], text);
}

static void add_some(struct history *h)
{
    unsigned row = below(h, KEYS);
    uint8_t state[8] = {[7] = (uint8_t)(1 + below(h, 3))};
    char text[LONGEST];
    struct row_change *change = row_change_create(h->f->arena);
    row_change_add(change, ENTRY_SUM, FAMILY_SUM, bytes_of("n"), 0,
                   arena_copy(h->f->arena, bytes_make(state, sizeof state)));
    assert_ok(try_write(h->f, keys[row], change));
    h->rows[row].has[2] = true;
    snprintf(text, sizeof text, ":sum.n+%d", state[7]);
    expect(&h->rows[row], text);
}

static void delete_some(struct history *h)
{
    unsigned row = below(h, KEYS);
    delete_row(h->f, keys[row]);
    expect_deletion(&h->rows[row]);
}

static void update_some(struct history *h)
{
    struct row_story *row;
    unsigned at = below(h, KEYS);
    row = &h->rows[at];
    update_row(h->f, keys[at]);
    if (row->has[0] || row->has[1] || row->has[2])
        return;
    row->has[0] = true;
    expect(row, ":f.q=new");
}

static void drop_some(struct history *h)
{
    const char *prefix = prefixes[below(h, sizeof prefixes / sizeof *prefixes)];
    if (is_telling(h->f)) {
        assert_status(drop(h->f, prefix), STATUS_UNAVAILABLE);
        return;
    }
    assert_ok(drop(h->f, prefix));
    for (int i = 0; i < KEYS; i++)
        if (bytes_start_with(bytes_of(keys[i]), bytes_of(prefix)))
            expect_deletion(&h->rows[i]);
}

static int place_of(bytes key)
{
    int at = 0;
    while (!bytes_equal(key, bytes_of(keys[at])))
        assert_true(++at < KEYS);
    return at;
}

/* What a row is told is what is expected of it, from its beginning. */
static status meet(void *context, const struct stream_record *record, bool *enough)
{
    struct history *h = context;
    struct row_story *row = &h->rows[place_of(record->row_key)];
    struct list_reader list;
    struct list_mutation mutation;
    struct buffer text = {0};
    list_reader_start(&list, record->list);
    while (list_reader_next(&list, &mutation))
        tell_mutation(&text, &mutation);
    buffer_append_bytes(&text, bytes_of(" "));
    buffer_append_byte(&text, 0);
    append(row->told, (const char *)text.data);
    buffer_free(&text);
    if (strncmp(row->told, row->expected, strlen(row->told)) != 0)
        fail_msg("row %.*s was told%s instead of%s", (int)record->row_key.size,
                 record->row_key.data, row->told, row->expected);
    assert_true(version_time_us(record->version) > h->watermark_us);
    *enough = record->position.sequence % 3 == 0;
    return status_ok();
}

static void keep_token(struct history *h, const struct stream_token *token)
{
    struct buffer string = {0};
    stream_token_write(&string, token);
    assert_true(string.size <= sizeof h->token);
    memcpy(h->token, string.data, string.size);
    h->token_size = string.size;
    buffer_free(&string);
    assert_true(token->time_us >= h->watermark_us);
    h->watermark_us = token->time_us;
}

static void read_more(struct history *h, unsigned reads)
{
    bool is_at_end = false;
    for (unsigned i = 0; i < reads && !is_at_end; i++) {
        struct stream_token token;
        assert_ok(stream_token_read(bytes_make(h->token, h->token_size), h->f->arena, &token));
        assert_ok(table_stream_read(h->f->table, &token, 1 << 10, meet, h, &is_at_end));
        keep_token(h, &token);
    }
}

static void let_go(struct history *h)
{
    if (h->snapshot != NULL)
        row_drops_let_go(space_of(h->f)->drops);
    store_snapshot_release(h->snapshot);
    h->snapshot = NULL;
}

/* As a backup that is being made. */
static void hold_or_let_go(struct history *h)
{
    if (h->snapshot != NULL) {
        let_go(h);
        return;
    }
    pthread_mutex_lock(&h->f->cluster->admin);
    row_drops_hold(space_of(h->f)->drops);
    h->snapshot = store_snapshot_create(h->f->cluster->home->store);
    pthread_mutex_unlock(&h->f->cluster->admin);
    assert_non_null(h->snapshot);
}

/* Every other time by a kill. All that was done is acknowledged, and nothing is under way. */
static void start_anew(struct history *h)
{
    if (below(h, 2) == 0)
        kill(getpid(), SIGKILL);
    let_go(h);
    reopen_test_cluster(h->f);
}

static void reshape(struct history *h)
{
    static const char *const places[] = {"aa", "b", "c"};
    const char *at = places[below(h, 3)];
    struct tablet *tablet = table_route(h->f->table, bytes_of(at));
    bool begins = bytes_equal(tablet->start, bytes_of(at));
    tablet_release(tablet);
    if (begins)
        merge_at(h->f, at);
    else
        split_at(h->f, at);
}

static void take_step(struct history *h)
{
    struct keyspace *keyspace = space_of(h->f)->keyspace;
    unsigned kind = below(h, 40);
    if (kind < 9)
        write_value(h);
    else if (kind < 13)
        add_some(h);
    else if (kind < 15)
        delete_some(h);
    else if (kind < 17)
        update_some(h);
    else if (kind < 21)
        drop_some(h);
    else if (kind < 27 && is_telling(h->f))
        tell_piece(h->f);
    else if (kind < 29)
        assert_ok(keyspace_flush(keyspace));
    else if (kind < 31)
        assert_ok(keyspace_compact(keyspace, bytes_of(""), bytes_of("")));
    else if (kind < 32)
        run_passes(h->f);
    else if (kind < 33)
        hold_or_let_go(h);
    else if (kind < 34)
        start_anew(h);
    else if (kind < 36)
        reshape(h);
    else
        read_more(h, 1 + below(h, 4));
}

/* Rows that have cells are those that a scan finds. */
static void compare(struct history *h)
{
    struct buffer found = {0}, expected = {0};
    const struct key_range all = {.is_point = false};
    assert_ok(scan_text(h->f, &all, 1, false, 0, &found));
    for (int i = 0; i < KEYS; i++)
        if (h->rows[i].has[0] || h->rows[i].has[1] || h->rows[i].has[2])
            buffer_append_format(&expected, "%s=", keys[i]);
    buffer_append_byte(&expected, 0);
    const char *at = (const char *)found.data;
    for (int i = 0; i < KEYS; i++) {
        char name[8];
        snprintf(name, sizeof name, "%s=", keys[i]);
        bool has = h->rows[i].has[0] || h->rows[i].has[1] || h->rows[i].has[2];
        bool is_there = strncmp(at, name, strlen(name)) == 0;
        assert_int_equal(is_there, has);
        const char *next =
            is_there ? memchr(at, ' ', (size_t)((const char *)found.data + found.size - at)) : at;
        at = next == NULL ? "" : is_there ? next + 1 : at;
    }
    buffer_free(&found);
    buffer_free(&expected);
}

static struct cluster_fixture *open_life(struct history *h)
{
    bool is_first = h->lives.count++ == 0;
    struct cluster_fixture *f = cluster_fixture_create_at(h->lives.directory);
    f->options.maintenance_by_hand = true;
    f->options.piece_bytes = 1;
    open_test_cluster(f);
    if (!is_first) {
        assert_ok(cluster_table(f->cluster, bytes_of(TEST_TABLE), &f->table));
        return f;
    }
    f->table = create_test_table(f->cluster, NULL);
    switch_stream(f, RETENTION_US);
    struct reader reader = reader_of(f, "", "");
    keep_token(h, &reader.token);
    return f;
}

static void assert_all_told(const struct history *h)
{
    for (int i = 0; i < KEYS; i++)
        assert_string_equal(h->rows[i].told, h->rows[i].expected);
}

static void live(struct lives *lives)
{
    struct history *h = (struct history *)(void *)lives;
    h->f = open_life(h);
    h->snapshot = NULL;
    compare(h);
    while (h->lives.step < run.changes) {
        h->lives.step++;
        take_step(h);
        compare(h);
    }
    let_go(h);
    tell_all(h->f);
    run_passes(h->f);
    read_more(h, UINT32_MAX);
    assert_all_told(h);
    compare(h);
    cluster_fixture_destroy(h->f);
}

/* The first test (lives_testing.h). */
static void each_row_is_told_what_became_of_it(void **state)
{
    (void)state;
    lives_tell("telling_test", &run, sizeof(struct history), live);
}

#define TELLING_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_told_what_became_of_it),
        TELLING_TEST(rows_are_gone_at_once_and_told_later),
        TELLING_TEST(another_drop_is_refused_meanwhile),
        TELLING_TEST(a_write_is_told_behind_what_it_overtakes),
        TELLING_TEST(a_deletion_of_the_row_is_the_drops),
        TELLING_TEST(groups_of_rows_tell_theirs),
        TELLING_TEST(an_update_sees_no_dropped_row_and_tells_it),
        TELLING_TEST(it_goes_on_at_the_next_start),
        TELLING_TEST(many_rows_may_be_overtaken),
        TELLING_TEST(what_is_to_be_told_stays_over_compactions),
        TELLING_TEST(a_stream_that_is_off_is_not_told),
        TELLING_TEST(a_stream_of_another_life_is_not_told),
        TELLING_TEST(no_watermark_passes_what_is_to_be_told),
        TELLING_TEST(rows_go_to_the_tablets_that_there_are),
        TELLING_TEST(writers_that_go_on_are_told_in_order),
    };
    take_test_run(&run, a_thousand, argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
