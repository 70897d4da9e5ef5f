/* Tests of schema_snapshot.h: what is in a picture, when two are the same, and their way. */
#include "replica/testing/schema_testing.h"

#include "base/testing/failmalloc.h"

struct fixture {
    struct schema_peer one;
    struct schema_peer other;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    make_peer(&f->one, 1);
    make_peer(&f->other, 2);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    end_peer(&f->one);
    end_peer(&f->other);
    free(f);
    return 0;
}

/* Of all that a picture has, and of all that it has not. */
static void make_everything(struct schema_peer *peer)
{
    put(peer, RESOURCE_INSTANCE, INSTANCE);
    put(peer, RESOURCE_CLUSTER, INSTANCE "/clusters/c");
    put(peer, RESOURCE_APP_PROFILE, INSTANCE "/appProfiles/a");
    put(peer, RESOURCE_POLICY, TABLE_T);
    put(peer, RESOURCE_AUTHORIZED_VIEW, TABLE_T "/authorizedViews/v");
    put(peer, RESOURCE_MATERIALIZED_VIEW, INSTANCE "/materializedViews/m");
    make_table(peer, TABLE_T);
    put(peer, RESOURCE_POLICY, INSTANCE "/clusters/c/backups/b");
    put(peer, RESOURCE_OPERATION, "operations/projects/p/instances/i/locations/l/operations/1");
    put(peer, RESOURCE_FIELD, "projects/p/databases/d/collectionGroups/k/fields/f");
    put(peer, RESOURCE_POLICY, "projects/p/databases/d");
    make_table(peer, "projects/p/databases/d/entities");
    make_table(peer, CLUSTER_OWN_TABLES "notes");
}

static void a_picture_has_what_peers_share(void **state)
{
    struct fixture *f = *state;
    make_everything(&f->one);
    struct schema_snapshot *snapshot = picture(&f->one);
    assert_int_equal(snapshot->tables.count, 1);
    assert_int_equal(snapshot->resources.count, 6);
    const struct shared_table *table = schema_snapshot_table(snapshot, TABLE_T);
    assert_non_null(table);
    assert_int_equal(table->uid, uid_at(&f->one, TABLE_T));
    assert_int_equal(table->split_count, 2);
    assert_null(schema_snapshot_table(snapshot, TABLE_T "2"));
    assert_non_null(schema_snapshot_resource(snapshot, RESOURCE_POLICY, TABLE_T));
    assert_null(schema_snapshot_resource(snapshot, RESOURCE_INSTANCE, TABLE_T));
    schema_snapshot_release(snapshot);
}

static void assert_differs(struct schema_peer *peer, struct schema_snapshot **before)
{
    struct schema_snapshot *after = picture(peer);
    assert_false(bytes_equal(schema_snapshot_digest(*before), schema_snapshot_digest(after)));
    schema_snapshot_release(*before);
    *before = after;
}

static void assert_is_the_same(struct schema_peer *peer, const struct schema_snapshot *before)
{
    struct schema_snapshot *after = picture(peer);
    assert_true(bytes_equal(schema_snapshot_digest(before), schema_snapshot_digest(after)));
    schema_snapshot_release(after);
}

static void each_change_is_another_digest(void **state)
{
    struct fixture *f = *state;
    struct family_change change = {.count = 1};
    struct schema_snapshot *before = picture(&f->one);
    put(&f->one, RESOURCE_INSTANCE, INSTANCE);
    assert_differs(&f->one, &before);
    put(&f->one, RESOURCE_INSTANCE, INSTANCE); /* another version */
    assert_differs(&f->one, &before);
    make_table(&f->one, TABLE_T);
    assert_differs(&f->one, &before);
    change_table(&f->one, TABLE_T, change);
    assert_differs(&f->one, &before);
    change.is_anew = true;
    change_table(&f->one, TABLE_T, change);
    assert_differs(&f->one, &before);
    change.is_anew = false;
    change.has_stream = true;
    change_table(&f->one, TABLE_T, change);
    assert_differs(&f->one, &before);
    change.has_stream = false;
    change_table(&f->one, TABLE_T, change);
    assert_differs(&f->one, &before);
    delete_table_at(&f->one, TABLE_T);
    assert_differs(&f->one, &before);
    make_table(&f->one, TABLE_T); /* another one */
    assert_differs(&f->one, &before);
    schema_snapshot_release(before);
}

/* Neither a start nor what each has for itself, such as a stream that was begun again. */
static void what_is_each_ones_own_changes_no_digest(void **state)
{
    struct fixture *f = *state;
    struct family_change change = {.count = 1, .has_stream = true};
    make_everything(&f->one);
    change_table(&f->one, TABLE_T, change);
    struct schema_snapshot *before = picture(&f->one);
    reopen_peer(&f->one);
    assert_is_the_same(&f->one, before);
    put(&f->one, RESOURCE_POLICY, INSTANCE "/clusters/c/backups/b2");
    make_table(&f->one, CLUSTER_OWN_TABLES "more");
    change.has_stream = false;
    change_table(&f->one, TABLE_T, change);
    change.has_stream = true;
    change_table(&f->one, TABLE_T, change);
    assert_is_the_same(&f->one, before);
    schema_snapshot_release(before);
}

/* --- the way --- */

static void what_arrives_is_what_was_sent(void **state)
{
    struct fixture *f = *state;
    struct way way;
    make_everything(&f->one);
    struct schema_snapshot *sent = picture(&f->one), *received = carried(sent, &way);
    assert_int_equal(way.pieces, 1);
    assert_true(bytes_equal(schema_snapshot_digest(sent), schema_snapshot_digest(received)));
    assert_int_equal(received->tables.count, 1);
    assert_int_equal(received->resources.count, 6);
    const struct shared_table *here = sent->tables.items, *there = received->tables.items;
    assert_string_equal(here->name, there->name);
    assert_true(here->uid == there->uid && bytes_equal(here->record, there->record));
    assert_int_equal(there->split_count, 2);
    assert_true(bytes_equal(here->split_keys[1], there->split_keys[1]));
    struct resource *const *left = sent->resources.items, *const *right = received->resources.items;
    for (size_t i = 0; i < received->resources.count; i++) {
        assert_int_equal(resource_compare(left[i], right[i]->kind, right[i]->name), 0);
        assert_true(left[i]->version == right[i]->version);
        assert_true(bytes_equal(left[i]->body, right[i]->body));
    }
    schema_snapshot_release(sent);
    schema_snapshot_release(received);
}

static status put_large(void *context, struct edit *edit)
{
    char name[128];
    BtAdmin__Instance body = BT_ADMIN__INSTANCE__INIT;
    for (unsigned i = 0; i < 6; i++) {
        snprintf(name, sizeof name, INSTANCE "%u", i);
        body.name = name;
        body.display_name = context;
        TRY(edit_put(edit, RESOURCE_INSTANCE, name, &body.base, bytes_of("")));
    }
    return status_ok();
}

static void large_ones_come_in_pieces(void **state)
{
    struct fixture *f = *state;
    struct way way;
    char *text = calloc(1, 300001);
    assert_non_null(text);
    memset(text, 'x', 300000);
    assert_ok(control_edit(f->one.control, put_large, text));
    free(text);
    struct schema_snapshot *sent = picture(&f->one), *received = carried(sent, &way);
    assert_int_equal(way.pieces, 2);
    assert_true(way.largest <= 1 << 20);
    assert_int_equal(received->resources.count, 6);
    schema_snapshot_release(sent);
    schema_snapshot_release(received);
}

static void nothing_at_all_is_one_piece(void **state)
{
    struct fixture *f = *state;
    struct way way;
    struct schema_snapshot *sent = picture(&f->one), *received = carried(sent, &way);
    assert_int_equal(way.pieces, 1);
    assert_true(bytes_equal(schema_snapshot_digest(sent), schema_snapshot_digest(received)));
    schema_snapshot_release(sent);
    schema_snapshot_release(received);
}

/* --- what is none --- */

static enum status_code add_piece(const Replica__PullSchemaResponse *piece)
{
    struct schema_snapshot *snapshot;
    bool is_whole;
    assert_ok(schema_snapshot_create(&snapshot));
    status s = schema_snapshot_add(snapshot, piece, &is_whole);
    enum status_code code = s.code;
    status_free(s);
    schema_snapshot_release(snapshot);
    return code;
}

static enum status_code add_tables(Replica__SharedTable *a, Replica__SharedTable *b)
{
    Replica__PullSchemaResponse piece = REPLICA__PULL_SCHEMA_RESPONSE__INIT;
    Replica__SharedTable *tables[] = {a, b};
    piece.tables = tables;
    piece.n_tables = b == NULL ? 1 : 2;
    return add_piece(&piece);
}

static enum status_code add_resources(Replica__SharedResource *a, Replica__SharedResource *b)
{
    Replica__PullSchemaResponse piece = REPLICA__PULL_SCHEMA_RESPONSE__INIT;
    Replica__SharedResource *resources[] = {a, b};
    piece.resources = resources;
    piece.n_resources = b == NULL ? 1 : 2;
    return add_piece(&piece);
}

static void tables_are_checked(void **state)
{
    (void)state;
    uint8_t key[] = "k";
    ProtobufCBinaryData keys[] = {{1, key}, {1, key}};
    Replica__SharedTable a = REPLICA__SHARED_TABLE__INIT, b = REPLICA__SHARED_TABLE__INIT;
    a.name = TABLE_T;
    assert_int_equal(add_tables(&a, NULL), STATUS_INVALID_ARGUMENT);
    a.uid = 1;
    assert_int_equal(add_tables(&a, NULL), STATUS_OK);
    b.uid = 2;
    assert_int_equal(add_tables(&a, &b), STATUS_INVALID_ARGUMENT);
    b.name = TABLE_T "2";
    assert_int_equal(add_tables(&a, &b), STATUS_OK);
    assert_int_equal(add_tables(&b, &a), STATUS_INVALID_ARGUMENT);
    assert_int_equal(add_tables(&a, &a), STATUS_INVALID_ARGUMENT);
    a.split_keys = keys;
    a.n_split_keys = 1;
    assert_int_equal(add_tables(&a, NULL), STATUS_OK);
    a.n_split_keys = 2;
    assert_int_equal(add_tables(&a, NULL), STATUS_INVALID_ARGUMENT);
    keys[0].len = 0;
    assert_int_equal(add_tables(&a, NULL), STATUS_INVALID_ARGUMENT);
}

static void resources_are_checked(void **state)
{
    (void)state;
    uint8_t garbage[] = {0xff, 0xff};
    Replica__SharedResource a = REPLICA__SHARED_RESOURCE__INIT, b = REPLICA__SHARED_RESOURCE__INIT;
    a.kind = 'i';
    a.name = INSTANCE;
    assert_int_equal(add_resources(&a, NULL), STATUS_INVALID_ARGUMENT); /* no version */
    a.version = b.version = 1;
    assert_int_equal(add_resources(&a, NULL), STATUS_OK);
    b.kind = 'c';
    b.name = INSTANCE "/clusters/c";
    assert_int_equal(add_resources(&a, &b), STATUS_INVALID_ARGUMENT);
    assert_int_equal(add_resources(&b, &a), STATUS_OK);
    a.body = (ProtobufCBinaryData){2, garbage};
    assert_int_equal(add_resources(&a, NULL), STATUS_INVALID_ARGUMENT);
    a.kind = '?'; /* a later program's */
    assert_int_equal(add_resources(&a, NULL), STATUS_OK);
    b.kind = 'o';
    b.name = "operations/projects/p/instances/i/operations/1";
    assert_int_equal(add_resources(&b, NULL), STATUS_INVALID_ARGUMENT);
    b.kind = 'y';
    b.name = INSTANCE "/clusters/c/backups/b";
    assert_int_equal(add_resources(&b, NULL), STATUS_INVALID_ARGUMENT);
}

static void a_digest_has_its_size(void **state)
{
    (void)state;
    uint8_t digest[64] = {0};
    Replica__PullSchemaResponse piece = REPLICA__PULL_SCHEMA_RESPONSE__INIT;
    piece.digest = (ProtobufCBinaryData){31, digest};
    assert_int_equal(add_piece(&piece), STATUS_INVALID_ARGUMENT);
    piece.digest.len = 32;
    assert_int_equal(add_piece(&piece), STATUS_OK);
}

/* --- without memory --- */

static void take_and_carry(void *context)
{
    struct schema_peer *peer = context;
    struct schema_snapshot *snapshot;
    struct way way = {0};
    status s = schema_snapshot_take(peer->control, &snapshot);
    if (status_is_ok(s))
        s = schema_snapshot_create(&way.received);
    if (status_is_ok(s))
        s = schema_snapshot_send(snapshot, 7, carry, &way);
    if (!status_is_ok(s))
        assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    schema_snapshot_release(snapshot);
    schema_snapshot_release(way.received);
}

static void memory_may_run_out(void **state)
{
    struct fixture *f = *state;
    make_everything(&f->one);
    failmalloc_each(take_and_carry, &f->one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
        CASE(a_picture_has_what_peers_share),
        CASE(each_change_is_another_digest),
        CASE(what_is_each_ones_own_changes_no_digest),
        CASE(what_arrives_is_what_was_sent),
        CASE(large_ones_come_in_pieces),
        CASE(nothing_at_all_is_one_piece),
        cmocka_unit_test(tables_are_checked),
        cmocka_unit_test(resources_are_checked),
        cmocka_unit_test(a_digest_has_its_size),
        CASE(memory_may_run_out),
    };
    return cmocka_run_group_tests_name("schema_snapshot", tests, NULL, NULL);
}
