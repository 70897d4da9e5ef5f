/* Tests of edits_file.h: what is kept of what was administered at a former leader; and of
 * schema_state.h: which of two servers has more of it. */
#include "replica/edits_file.h"

#include "base/testing/failmalloc.h"
#include "cluster/catalog_txn.h"
#include "os/file.h"
#include "replica/schema_state.h"
#include "replica/testing/schema_testing.h"

#include <unistd.h>

/* The peers of schema_state_tell: one alone, which leads or not, and has led or not. */
struct peers {
    unsigned own;
    unsigned leader;
    uint64_t epoch;
    uint64_t led_epoch;
};

unsigned peers_own_number(const struct peers *peers)
{
    return peers->own;
}

uint64_t peers_led_epoch(struct peers *peers)
{
    return peers->led_epoch;
}

status peers_list(struct peers *peers, struct arena *arena, const Replica__PeerList **out)
{
    Replica__PeerList *list;
    *out = NULL;
    PROTO_NEW(arena, list, REPLICA__PEER_LIST__INIT);
    list->leader = peers->leader;
    list->epoch = peers->epoch;
    *out = list;
    return status_ok();
}

struct fixture {
    struct schema_peer here;
    struct schema_peer there;
    char path[PATH_MAX];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    make_peer(&f->here, 1);
    make_peer(&f->there, 2);
    snprintf(f->path, sizeof f->path, "%s/edits-of-epoch-3.json", f->here.base->directory);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    (void)unlink(f->path);
    end_peer(&f->here);
    end_peer(&f->there);
    free(f);
    return 0;
}

static struct edits_file file_of(const struct fixture *f)
{
    return (struct edits_file){.directory = f->here.base->directory, .epoch = 3, .follows = 2};
}

static size_t write_edits(struct fixture *f)
{
    size_t count;
    const struct edits_file file = file_of(f);
    struct schema_snapshot *here = picture(&f->here), *there = picture(&f->there);
    assert_ok(edits_file_write(&file, here, there, &count));
    schema_snapshot_release(here);
    schema_snapshot_release(there);
    return count;
}

static void assert_file(struct fixture *f, const char *const *parts)
{
    struct buffer text = {0};
    assert_ok(file_read(f->path, 1 << 20, 0, &text));
    buffer_append_byte(&text, '\0');
    for (; *parts != NULL; parts++)
        assert_non_null(strstr((const char *)text.data, *parts));
    buffer_free(&text);
}

static void make_some(struct schema_peer *peer)
{
    put(peer, RESOURCE_INSTANCE, INSTANCE);
    put(peer, RESOURCE_CLUSTER, INSTANCE "/clusters/c");
}

static void what_differs_is_kept(void **state)
{
    struct fixture *f = *state;
    make_some(&f->here);
    make_table(&f->here, TABLE_T);
    put(&f->there, RESOURCE_INSTANCE, "projects/p/instances/other");
    assert_int_equal(write_edits(f), 4);
    const char *const parts[] = {
        "{\"epoch\": \"3\", \"follows\": 2, \"differences\": [",
        "{\"kind\": \"Instance\", \"name\": \"" INSTANCE "\", \"here\": {",
        "{\"kind\": \"Instance\", \"name\": \"projects/p/instances/other\", \"there\": {",
        "{\"kind\": \"table\", \"name\": \"" TABLE_T "\", \"uid\": \"",
        "\"here\": {\"name\":\"" TABLE_T "\",\"families\":[{",
        "}]}\n",
        NULL,
    };
    assert_file(f, parts);
}

static void without_a_difference_there_is_no_file(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(write_edits(f), 0);
    assert_int_equal(access(f->path, F_OK), -1);
}

/* What is here then is on its way to what the other one has: it would not be all of it. */
static void a_file_that_is_there_stays(void **state)
{
    struct fixture *f = *state;
    make_some(&f->here);
    assert_int_equal(write_edits(f), 2);
    take_away(&f->here, RESOURCE_CLUSTER, INSTANCE "/clusters/c");
    assert_int_equal(write_edits(f), 0);
    const char *const parts[] = {INSTANCE "/clusters/c", NULL};
    assert_file(f, parts);
}

static void a_file_that_cannot_be_written_is_told(void **state)
{
    struct fixture *f = *state;
    size_t count;
    struct edits_file file = file_of(f);
    file.directory = "/nowhere/at/all";
    make_some(&f->here);
    struct schema_snapshot *here = picture(&f->here), *there = picture(&f->there);
    status s = edits_file_write(&file, here, there, &count);
    assert_false(status_is_ok(s));
    status_free(s);
    schema_snapshot_release(here);
    schema_snapshot_release(there);
}

struct writing {
    struct fixture *f;
    struct schema_snapshot *here;
    struct schema_snapshot *there;
};

static void write_without_memory(void *context)
{
    const struct writing *writing = context;
    const struct edits_file file = file_of(writing->f);
    size_t count;
    status s = edits_file_write(&file, writing->here, writing->there, &count);
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    assert_true(!status_is_ok(s) || count == 3);
    status_free(s);
    (void)unlink(writing->f->path);
}

static void memory_may_run_out(void **state)
{
    struct fixture *f = *state;
    make_some(&f->here);
    make_table(&f->here, TABLE_T);
    struct writing writing = {f, picture(&f->here), picture(&f->there)};
    failmalloc_each(write_without_memory, &writing);
    schema_snapshot_release(writing.here);
    schema_snapshot_release(writing.there);
}

/* --- how much a server has --- */

static Replica__SchemaState state_of(uint64_t epoch, uint64_t as_of_us, bool is_partial)
{
    Replica__SchemaState state = REPLICA__SCHEMA_STATE__INIT;
    state.epoch = epoch;
    state.as_of_us = as_of_us;
    state.is_partial = is_partial;
    state.digest = proto_data(bytes_of(as_of_us % 2 == 0 ? "even" : "odd"));
    return state;
}

static void the_later_picture_of_the_later_epoch_is_more(void **state)
{
    (void)state;
    const Replica__SchemaState old = state_of(1, UINT64_MAX, false), early = state_of(2, 10, false),
                               late = state_of(2, 12, false), partial = state_of(2, 12, true);
    assert_true(schema_state_is_newer(&early, &old));
    assert_true(schema_state_is_newer(&late, &early));
    assert_true(schema_state_is_newer(&late, &partial));
    assert_false(schema_state_is_newer(&partial, &late) || schema_state_is_newer(&old, &early));
    assert_true(schema_state_is_same(&late, &early));
    assert_false(schema_state_is_same(&late, &old) || schema_state_is_same(&late, &partial));
}

static void what_was_mirrored_is_on_record(void **state)
{
    struct fixture *f = *state;
    struct peers peers = {.own = 1, .leader = 2, .epoch = 5};
    struct arena *arena = arena_create(1 << 20);
    Replica__SchemaState told = REPLICA__SCHEMA_STATE__INIT;
    assert_ok(schema_state_tell(f->here.control, &peers, arena, &told));
    assert_true(told.is_partial && told.epoch == 0);
    Replica__MirrorRecord record = REPLICA__MIRROR_RECORD__INIT;
    record.epoch = 4;
    record.as_of_us = 77;
    record.digest = proto_data(bytes_of("digest"));
    assert_ok(mirror_record_write(f->here.base->cluster, &record));
    reopen_peer(&f->here);
    assert_ok(schema_state_tell(f->here.control, &peers, arena, &told));
    assert_false(told.is_partial);
    assert_int_equal(told.epoch, 4);
    assert_int_equal(told.as_of_us, 77);
    assert_true(bytes_equal(proto_bytes(told.digest), bytes_of("digest")));
    arena_destroy(arena);
}

static void who_leads_or_led_has_all_of_that_epoch(void **state)
{
    struct fixture *f = *state;
    struct peers peers = {.own = 1, .leader = 1, .epoch = 5};
    struct arena *arena = arena_create(1 << 20);
    struct schema_snapshot *here = picture(&f->here);
    Replica__SchemaState told = REPLICA__SCHEMA_STATE__INIT;
    assert_ok(schema_state_tell(f->here.control, &peers, arena, &told));
    assert_true(told.epoch == 5 && told.as_of_us == UINT64_MAX && !told.is_partial);
    assert_true(bytes_equal(proto_bytes(told.digest), schema_snapshot_digest(here)));
    peers = (struct peers){.own = 1, .leader = 2, .epoch = 6, .led_epoch = 5};
    assert_ok(schema_state_tell(f->here.control, &peers, arena, &told));
    assert_true(told.epoch == 5 && told.as_of_us == UINT64_MAX);
    schema_snapshot_release(here);
    arena_destroy(arena);
}

static void a_damaged_record_is_told(void **state)
{
    struct fixture *f = *state;
    const Replica__MirrorRecord *record;
    struct arena *arena = arena_create(1 << 20);
    struct catalog_txn *txn = catalog_txn_create(cluster_catalog(f->here.base->cluster));
    catalog_txn_put(txn, bytes_of("schema-mirrored"), bytes_of("\xff"));
    assert_ok(cluster_write_catalog(f->here.base->cluster, txn));
    catalog_txn_destroy(txn);
    assert_status(mirror_record_read(f->here.base->cluster, arena, &record), STATUS_DATA_LOSS);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
        CASE(what_differs_is_kept),
        CASE(without_a_difference_there_is_no_file),
        CASE(a_file_that_is_there_stays),
        CASE(a_file_that_cannot_be_written_is_told),
        CASE(memory_may_run_out),
        cmocka_unit_test(the_later_picture_of_the_later_epoch_is_more),
        CASE(what_was_mirrored_is_on_record),
        CASE(who_leads_or_led_has_all_of_that_epoch),
        CASE(a_damaged_record_is_told),
    };
    return cmocka_run_group_tests_name("edits_file", tests, NULL, NULL);
}
