/* Checkpoints of a whole cluster: exact to the commit that they name, under load and while tables
 * come and go. */
#include "cluster/checkpoint.h"

#include "cluster/testing/testing.h"

struct fixture {
    struct cluster_fixture *f;
    char directory[96]; /* the checkpoint's */
};

static int set_up(void **state)
{
    struct fixture *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->f = cluster_fixture_create(NULL);
    snprintf(t->directory, sizeof t->directory, "%s/checkpoint", t->f->directory);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *t = *state;
    assert_ok(cluster_remove_checkpoint(t->f->cluster, t->directory));
    cluster_fixture_destroy(t->f);
    free(t);
    return 0;
}

/* The checkpoint as a cluster of its own, in place of the fixture's. */
static struct cluster_fixture open_copy(struct fixture *t)
{
    struct cluster_fixture copy = *t->f;
    copy.options.data_directory = t->directory;
    open_test_cluster(&copy);
    assert_ok(cluster_table(copy.cluster, bytes_of(TEST_TABLE), &copy.table));
    return copy;
}

static void close_copy(struct cluster_fixture *copy)
{
    table_release(copy->table);
    close_test_cluster(copy);
}

static void assert_rows(struct cluster_fixture *f, const char *expected)
{
    struct key_range all = {.from = bytes_of(""), .to = bytes_of("")};
    struct buffer text = {0};
    assert_ok(scan_text(f, &all, 1, false, 0, &text));
    assert_string_equal((const char *)text.data, expected);
    buffer_free(&text);
}

static void a_checkpoint_is_a_server_as_it_was(void **state)
{
    struct fixture *t = *state;
    struct checkpoint_facts facts;
    char identity[STORE_IDENTITY_SIZE];
    set_cell(t->f, "a", "1");
    set_cell(t->f, "b", "2");
    set_cell(t->f, "c", "3");
    assert_ok(table_drop_rows(t->f->table, bytes_of("b")));
    assert_ok(cluster_checkpoint(t->f->cluster, t->directory, &facts));
    set_cell(t->f, "a", "later");
    assert_true(facts.sequence < commit_applied(t->f->cluster->home->commits));
    assert_ok(cluster_identity(t->f->cluster, identity));
    assert_string_equal(facts.identity, identity);

    struct cluster_fixture copy = open_copy(t);
    assert_rows(&copy, "a=1 c=3");
    assert_ok(cluster_identity(copy.cluster, identity));
    assert_string_not_equal(facts.identity, identity);
    /* What is written there is above all that was. */
    set_cell(&copy, "a", "new");
    assert_true(commit_applied(copy.cluster->home->commits) > facts.sequence);
    assert_rows(&copy, "a=new c=3");
    close_copy(&copy);
}

/* --- exact to the commit --- */

struct load {
    struct fixture *t;
    pthread_t thread;
    atomic_bool stop;
    atomic_uint done;
};

/* Each commit writes its sequence into the catalog's keyspace, beside the catalog's records. */
struct sequence_commit {
    struct commit commit;
    struct cluster *cluster;
};

static void put_sequence(struct commit *commit, struct store_batch *batch)
{
    struct cluster *cluster = ((struct sequence_commit *)(void *)commit)->cluster;
    store_batch_put(batch, cluster->catalog, bytes_of("zz-last-sequence"),
                    bytes_make(&commit->sequence, sizeof commit->sequence));
}

static void *write_sequences(void *argument)
{
    struct load *load = argument;
    struct cluster *cluster = load->t->f->cluster;
    while (!atomic_load(&load->stop)) {
        struct sequence_commit write = {.commit = {.kind = COMMIT_CATALOG, .extend = put_sequence},
                                        .cluster = cluster};
        assert_ok(commit_and_wait(cluster->home->commits, &write.commit));
        atomic_fetch_add(&load->done, 1);
    }
    return NULL;
}

static uint64_t sequence_in(struct cluster *cluster)
{
    struct store_value value;
    enum store_presence presence;
    uint64_t sequence;
    assert_ok(store_get(cluster->catalog, NULL, bytes_of("zz-last-sequence"), STORE_READ_ANY,
                        &value, &presence));
    assert_int_equal(presence, STORE_FOUND);
    assert_int_equal(value.bytes.size, sizeof sequence);
    memcpy(&sequence, value.bytes.data, sizeof sequence);
    store_value_release(&value);
    return sequence;
}

static void a_checkpoint_is_exact_to_its_version(void **state)
{
    struct fixture *t = *state;
    struct load load = {.t = t};
    assert_int_equal(pthread_create(&load.thread, NULL, write_sequences, &load), 0);
    for (unsigned round = 0; round < 5; round++) {
        struct checkpoint_facts facts;
        unsigned before = atomic_load(&load.done);
        while (atomic_load(&load.done) < before + 20)
            sched_yield();
        assert_ok(cluster_checkpoint(t->f->cluster, t->directory, &facts));
        struct cluster_fixture copy = open_copy(t);
        assert_true(sequence_in(copy.cluster) == facts.sequence);
        close_copy(&copy);
        assert_ok(cluster_remove_checkpoint(t->f->cluster, t->directory));
    }
    atomic_store(&load.stop, true);
    pthread_join(load.thread, NULL);
}

/* --- while tables come and go --- */

static void *make_tables(void *argument)
{
    struct load *load = argument;
    struct cluster *cluster = load->t->f->cluster;
    const struct family family = {.id = FAMILY_F, .name = bytes_of("f")};
    struct schema *schema;
    assert_ok(schema_create(GRANULARITY_MICROS, &family, 1, 2, &schema));
    for (unsigned i = 0; !atomic_load(&load->stop); i++) {
        char name[64];
        struct table *table;
        snprintf(name, sizeof name, "projects/p/instances/i/tables/n%u", i);
        struct table_spec spec = {.name = name, .schema = schema};
        assert_ok(cluster_create_table(cluster, &spec, &table));
        table_release(table);
        if (i % 2 == 0)
            assert_ok(cluster_delete_table(cluster, bytes_of(name), NULL));
        atomic_fetch_add(&load->done, 1);
    }
    schema_destroy(schema);
    return NULL;
}

static void tables_that_are_named_have_their_keyspaces(void **state)
{
    struct fixture *t = *state;
    struct load load = {.t = t};
    assert_int_equal(pthread_create(&load.thread, NULL, make_tables, &load), 0);
    for (unsigned round = 0; round < 5; round++) {
        struct checkpoint_facts facts;
        unsigned before = atomic_load(&load.done);
        while (atomic_load(&load.done) < before + 5)
            sched_yield();
        assert_ok(cluster_checkpoint(t->f->cluster, t->directory, &facts));
        struct cluster_fixture copy = open_copy(t); /* refuses a tablet without a keyspace */
        close_copy(&copy);
        assert_ok(cluster_remove_checkpoint(t->f->cluster, t->directory));
    }
    atomic_store(&load.stop, true);
    pthread_join(load.thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_checkpoint_is_a_server_as_it_was, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_checkpoint_is_exact_to_its_version, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tables_that_are_named_have_their_keyspaces, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
