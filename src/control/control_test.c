/* Tests of control.h and operations.h, over a cluster of their own, whose files a test can make
 * fail (steps_testing.h). */
#include "control/control.h"

#include "base/testing/failmalloc.h"
#include "base/testing/testing_clock.h"
#include "cluster/lost_records.h"
#include "cluster/testing/steps_testing.h"
#include "control/operations.h"
#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "google/longrunning/operations.pb-c.h"

#define INSTANCE "projects/p/instances/i"

/* --- fixture --- */

struct fixture {
    struct cluster_fixture base;
    struct ahead_clock clock;
    struct control *control;
    const struct operation_kind *kinds;
    size_t kind_count;
};

static void open_control(struct fixture *f)
{
    open_test_cluster(&f->base);
    assert_ok(control_open(f->base.cluster, &f->base.log, &f->control));
    assert_ok(operations_start(f->control, f->kinds, f->kind_count));
}

static void close_control(struct fixture *f)
{
    control_close(f->control);
    close_test_cluster(&f->base);
}

static void reopen(struct fixture *f)
{
    close_control(f);
    open_control(f);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    struct cluster_fixture *base = &f->base;
    snprintf(base->directory, sizeof base->directory, "/tmp/trestle-control-XXXXXX");
    assert_non_null(mkdtemp(base->directory));
    base->log = (struct log){.fd = -1, .level = LOG_ERROR, .clock = clock_system()};
    base->arena = arena_create(1 << 24);
    f->clock.clock = (struct clock)AHEAD_CLOCK;
    assert_ok(pool_create(1, 16, "test", &base->pool));
    base->options = test_cluster_options(base->directory);
    base->options.log = &base->log;
    base->options.pool = base->pool;
    base->options.clock = &f->clock.clock;
    open_control(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    close_control(f);
    pool_destroy(f->base.pool);
    arena_destroy(f->base.arena);
    remove_test_directory(f->base.directory);
    free(f);
    return 0;
}

/* --- edits --- */

/* The changes of one edit: names separated by blanks, in kinds of one letter each; "-" before the
 * letter deletes. "i:projects/p/instances/i -c:projects/…" */
static status put_named(struct edit *edit, char kind, const char *name)
{
    BtAdmin__Instance instance = BT_ADMIN__INSTANCE__INIT;
    instance.name = name; /* field 1 of every kind here */
    return edit_create(edit, (enum resource_kind)kind, name, &instance.base, bytes_of(""));
}

static status follow(void *context, struct edit *edit)
{
    char script[512];
    char *rest = script;
    snprintf(script, sizeof script, "%s", (const char *)context);
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        if (word[0] == '-')
            TRY(edit_delete(edit, (enum resource_kind)word[1], word + 3));
        else
            TRY(put_named(edit, word[0], word + 2));
    }
    return status_ok();
}

static status edit(struct fixture *f, const char *script)
{
    union {
        const char *given;
        void *wanted;
    } context = {.given = script};
    return control_edit(f->control, follow, context.wanted);
}

static bool add_name(void *context, struct resource *resource)
{
    struct buffer *out = context;
    buffer_append_format(out, "%s ", resource->name);
    return true;
}

static void assert_listed(struct fixture *f, char kind, const char *parent, const char *after,
                          const char *expected)
{
    struct buffer names = {0};
    assert_ok(control_list(f->control, (enum resource_kind)kind, parent, after, add_name, &names));
    buffer_append_byte(&names, 0);
    assert_string_equal((char *)names.data, expected);
    buffer_free(&names);
}

static void test_an_instance_with_what_it_has_is_one_edit(void **state)
{
    struct fixture *f = *state;
    assert_ok(edit(f, "i:" INSTANCE " c:" INSTANCE "/clusters/a p:" INSTANCE "/appProfiles/d"));
    assert_status(edit(f, "c:" INSTANCE "/clusters/b c:" INSTANCE "/clusters/a"),
                  STATUS_ALREADY_EXISTS);
    assert_status(edit(f, "c:projects/p/instances/none/clusters/a"), STATUS_NOT_FOUND);
    for (unsigned life = 0; life < 2; life++) {
        assert_listed(f, 'c', INSTANCE, "", INSTANCE "/clusters/a ");
        assert_listed(f, 'p', INSTANCE, "", INSTANCE "/appProfiles/d ");
        reopen(f);
    }
    assert_ok(edit(f, "-i:" INSTANCE));
    for (unsigned life = 0; life < 2; life++) {
        assert_false(control_has(f->control, RESOURCE_INSTANCE, INSTANCE));
        assert_listed(f, 'c', "projects/p/instances/-", "", "");
        reopen(f);
    }
}

static void test_names_that_begin_alike_are_told_apart(void **state)
{
    struct fixture *f = *state;
    assert_ok(edit(f,
                   "i:projects/p/instances/i i:projects/p/instances/i-2 "
                   "i:projects/p2/instances/i c:projects/p/instances/i/clusters/c "
                   "c:projects/p/instances/i-2/clusters/c c:projects/p2/instances/i/clusters/c"));
    assert_listed(f, 'i', "projects/p", "", "projects/p/instances/i projects/p/instances/i-2 ");
    assert_listed(f, 'c', "projects/p/instances/i", "", "projects/p/instances/i/clusters/c ");
    assert_listed(f, 'c', "projects/p/instances/-", "",
                  "projects/p/instances/i-2/clusters/c projects/p/instances/i/clusters/c ");
    assert_listed(f, 'c', "projects/p/instances/-", "projects/p/instances/i-2/clusters/c",
                  "projects/p/instances/i/clusters/c ");
    assert_ok(edit(f, "-i:projects/p/instances/i"));
    assert_listed(f, 'c', "projects/-/instances/-", "",
                  "projects/p/instances/i-2/clusters/c projects/p2/instances/i/clusters/c ");
}

/* A page goes on after a name, whether or not that is still there. */
static void test_a_listing_goes_on_after_what_is_gone(void **state)
{
    struct fixture *f = *state;
    assert_ok(
        edit(f, "i:projects/p/instances/a i:projects/p/instances/b i:projects/p/instances/c"));
    assert_ok(edit(f, "-i:projects/p/instances/b i:projects/p/instances/bb"));
    assert_listed(f, 'i', "projects/p", "projects/p/instances/b",
                  "projects/p/instances/bb projects/p/instances/c ");
    assert_listed(f, 'i', "projects/p", "projects/p/instances/c", "");
}

static uint64_t version_of(struct fixture *f, const char *name)
{
    struct resource *resource;
    assert_ok(control_find(f->control, RESOURCE_INSTANCE, name, &resource));
    uint64_t version = resource->version;
    resource_release(resource);
    return version;
}

static void test_versions_are_never_given_twice(void **state)
{
    struct fixture *f = *state;
    uint64_t last = 0;
    for (unsigned i = 0; i < 4; i++) {
        assert_ok(edit(f, "i:" INSTANCE));
        assert_true(version_of(f, INSTANCE) > last);
        last = version_of(f, INSTANCE);
        assert_ok(edit(f, "-i:" INSTANCE));
        f->clock.wall_ahead_us -= 1000000;
        if (i % 2 == 1)
            reopen(f);
    }
}

/* Of a catalog that has lost the record of the last version, those of the resources count. */
static void test_versions_rise_without_their_record(void **state)
{
    struct fixture *f = *state;
    struct catalog_txn *txn = catalog_txn_create(cluster_catalog(f->base.cluster));
    f->clock.wall_ahead_us = 3600 * INT64_C(1000000);
    assert_ok(edit(f, "i:" INSTANCE));
    uint64_t last = version_of(f, INSTANCE);
    f->clock.wall_ahead_us = 0;
    catalog_txn_delete(txn, bytes_of("V"));
    assert_ok(catalog_txn_write_unserved(txn, f->base.cluster->home->store));
    catalog_txn_destroy(txn);
    reopen(f);
    assert_ok(edit(f, "i:" INSTANCE "2"));
    assert_true(version_of(f, INSTANCE "2") > last);
}

static status put_as_is(void *context, struct edit *edit)
{
    return edit_put_as_is(edit, context);
}

/* A peer's resource keeps its version, and none is given here that may be the peer's next. */
static void test_a_resource_may_bring_its_version(void **state)
{
    struct fixture *f = *state;
    assert_ok(edit(f, "i:" INSTANCE "2"));
    const uint64_t ahead = version_of(f, INSTANCE "2") + 3600 * UINT64_C(1000000);
    const uint64_t behind = 5;
    struct resource *standing, *resource;
    assert_ok(control_find(f->control, RESOURCE_INSTANCE, INSTANCE "2", &standing));
    for (unsigned i = 0; i < 2; i++) {
        assert_ok(resource_create(RESOURCE_INSTANCE, INSTANCE, i == 0 ? ahead : behind,
                                  standing->body, bytes_of("extra"), &resource));
        assert_ok(control_edit(f->control, put_as_is, resource));
        resource_release(resource);
        reopen(f);
        assert_int_equal(version_of(f, INSTANCE), i == 0 ? ahead : behind);
    }
    resource_release(standing);
    assert_ok(edit(f, "i:" INSTANCE "3"));
    assert_true(version_of(f, INSTANCE "3") > ahead);
}

static status look_for_2(void *context)
{
    struct fixture *f = context;
    return control_has(f->control, RESOURCE_INSTANCE, INSTANCE "2")
               ? status_ok()
               : status_make(STATUS_NOT_FOUND, "none");
}

static void test_edits_are_counted_and_looked_between(void **state)
{
    struct fixture *f = *state;
    uint64_t before = control_edit_count(f->control);
    assert_status(control_look(f->control, look_for_2, f), STATUS_NOT_FOUND);
    assert_int_equal(control_edit_count(f->control), before);
    assert_ok(edit(f, "i:" INSTANCE "2"));
    assert_ok(control_look(f->control, look_for_2, f));
    assert_int_equal(control_edit_count(f->control), before + 1);
    assert_status(edit(f, "i:" INSTANCE "2"), STATUS_ALREADY_EXISTS);
    assert_int_equal(control_edit_count(f->control), before + 2);
}

/* Each kind has words for when its records are lost. */
static void test_lost_resources_are_told_by_their_kinds(void **state)
{
    const struct resource_type *type;
    (void)state;
    for (size_t i = 0; (type = resource_type_at(i)) != NULL; i++) {
        const uint8_t from[] = {RESOURCE_KEY, (uint8_t)type->kind};
        const uint8_t to[] = {RESOURCE_KEY, (uint8_t)(type->kind + 1)};
        struct buffer words = {0};
        lost_records_kinds(bytes_make(from, sizeof from), bytes_make(to, sizeof to), &words);
        assert_true(words.size > 0);
        assert_null(memchr(words.data, ',', words.size));
        buffer_free(&words);
    }
}

/* --- what fails --- */

/* Whether it was done. */
static bool edit_without_memory(struct fixture *f)
{
    status s = edit(f, "i:" INSTANCE " c:" INSTANCE "/clusters/a");
    bool is_done = status_is_ok(s);
    if (!is_done)
        assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    return is_done;
}

/* Maintenance, a thread of its own, may be the one that finds no memory: then the edit is done. */
static void test_an_edit_without_memory_changes_nothing(void **state)
{
    struct fixture *f = *state;
    bool ran_out = true;
    for (size_t count = 0; ran_out; count++) {
        assert_true(count < 1000);
        failmalloc_start(count);
        bool is_done = edit_without_memory(f);
        ran_out = failmalloc_stop();
        assert_true(is_done || ran_out);
        assert_listed(f, 'i', "projects/p", "", is_done ? INSTANCE " " : "");
        assert_listed(f, 'c', INSTANCE, "", is_done ? INSTANCE "/clusters/a " : "");
        if (is_done)
            assert_ok(edit(f, "-i:" INSTANCE));
    }
}

static void find_all_or_nothing(struct fixture *f)
{
    bool has = control_has(f->control, RESOURCE_INSTANCE, INSTANCE);
    assert_listed(f, 'c', INSTANCE, "", has ? INSTANCE "/clusters/a " INSTANCE "/clusters/b " : "");
    assert_ok(has ? edit(f, "-i:" INSTANCE) : status_ok());
}

/* With each operation on files failing in turn: memory says what was, and the next start finds all
 * of the edit or nothing. */
static void fail_each(struct fixture *f, enum fault_operation operation)
{
    bool came = true;
    for (unsigned pass = 0; came; pass++) {
        assert_true(pass < 100);
        close_control(f);
        faults = fault_fs_create();
        open_control(f);
        fault_fs_fail(faults, operation, ".log", FAULT_IO, pass);
        status s = edit(f, "i:" INSTANCE " c:" INSTANCE "/clusters/a c:" INSTANCE "/clusters/b");
        came = fault_fs_failures(faults) > 0;
        assert_int_equal(control_has(f->control, RESOURCE_INSTANCE, INSTANCE), status_is_ok(s));
        assert_true(came || status_is_ok(s));
        status_free(s);
        fault_fs_heal(faults);
        close_control(f);
        end_faults();
        open_control(f);
        find_all_or_nothing(f);
    }
}

static void test_a_failing_disk_finds_all_or_nothing(void **state)
{
    fail_each(*state, FAULT_APPEND);
    fail_each(*state, FAULT_SYNC);
}

/* An instance and a table in it, in one batch: made if there are none, deleted if there are. */
static status make_both(struct fixture *f, struct edit *edit)
{
    const struct family family = {.id = FAMILY_F, .name = bytes_of("f")};
    struct table_spec spec = {.name = TEST_TABLE};
    struct schema *schema;
    struct table *table;
    TRY(put_named(edit, 'i', INSTANCE));
    TRY(edit_txn(edit, &spec.txn));
    assert_ok(schema_create(GRANULARITY_MICROS, &family, 1, 2, &schema));
    spec.schema = schema;
    status s = cluster_create_table(f->base.cluster, &spec, &table);
    schema_destroy(schema);
    if (status_is_ok(s))
        table_release(table);
    return s;
}

static status make_or_delete_both(void *context, struct edit *edit)
{
    struct fixture *f = context;
    struct catalog_txn *txn;
    if (edit_find(edit, RESOURCE_INSTANCE, INSTANCE) == NULL)
        return make_both(f, edit);
    TRY(edit_delete(edit, RESOURCE_INSTANCE, INSTANCE));
    TRY(edit_txn(edit, &txn));
    return cluster_delete_tables(f->base.cluster, bytes_of(INSTANCE "/tables/"), txn);
}

/* Whether both are there; fails if one is alone. */
static bool has_both(struct fixture *f)
{
    struct table *table;
    status s = cluster_table(f->base.cluster, bytes_of(TEST_TABLE), &table);
    bool has = status_is_ok(s);
    if (has)
        table_release(table);
    status_free(s);
    assert_int_equal(control_has(f->control, RESOURCE_INSTANCE, INSTANCE), has);
    return has;
}

/* Runs the edit, which turns what `is_there` says, with an operation on files failing, and then
 * begins a new life. Returns whether it came to the failure. */
static bool edit_on_failing_disk(struct fixture *f, edit_function *change,
                                 bool (*is_there)(struct fixture *f), unsigned pass)
{
    close_control(f);
    faults = fault_fs_create();
    open_control(f);
    bool before = is_there(f);
    fault_fs_fail(faults, pass % 2 == 0 ? FAULT_APPEND : FAULT_SYNC, ".log", FAULT_IO, pass / 4);
    status s = control_edit(f->control, change, f);
    bool came = fault_fs_failures(faults) > 0;
    assert_int_equal(is_there(f), before != status_is_ok(s));
    status_free(s);
    fault_fs_heal(faults);
    close_control(f);
    end_faults();
    open_control(f);
    return came;
}

/* Each life begins by what the last one left, with the next operation on files failing. */
static void test_tables_and_resources_come_and_go_together(void **state)
{
    struct fixture *f = *state;
    unsigned seen[2] = {0};
    bool came = true;
    for (unsigned pass = 0; came || pass < 8; pass++) {
        assert_true(pass < 100);
        came = edit_on_failing_disk(f, make_or_delete_both, has_both, pass);
        seen[has_both(f)]++;
    }
    assert_true(seen[0] > 0 && seen[1] > 0);
}

/* --- what a deleted table had --- */

#define BUNDLE_OF_TABLE INSTANCE "/tables/t/schemaBundles/s"

static status delete_and_keep(void *context, struct edit *edit)
{
    struct fixture *f = context;
    struct table *table;
    struct catalog_txn *txn;
    TRY(cluster_table(f->base.cluster, bytes_of(TEST_TABLE), &table));
    status s = edit_keep_under(edit, TEST_TABLE, table_id(table));
    table_release(table);
    TRY(s);
    TRY(edit_txn(edit, &txn));
    return cluster_delete_table(f->base.cluster, bytes_of(TEST_TABLE), txn);
}

static status bring_back_in(struct edit *edit, struct cluster *cluster, struct table *table)
{
    struct catalog_txn *txn;
    TRY(edit_put_back(edit, table_id(table)));
    TRY(edit_txn(edit, &txn));
    return cluster_undelete_table(cluster, table, txn);
}

static status bring_back(void *context, struct edit *edit)
{
    struct cluster *cluster = ((struct fixture *)context)->base.cluster;
    struct table *table;
    TRY(cluster_deleted_table(cluster, bytes_of(TEST_TABLE), &table));
    status s = bring_back_in(edit, cluster, table);
    table_release(table);
    return s;
}

static uint64_t version_of_bundle(struct fixture *f)
{
    struct resource *resource;
    assert_ok(control_find(f->control, RESOURCE_SCHEMA_BUNDLE, BUNDLE_OF_TABLE, &resource));
    uint64_t version = resource->version;
    resource_release(resource);
    return version;
}

/* Whether the table is there, with all that it has; fails if it is in parts. */
static bool is_whole(struct fixture *f)
{
    struct table *table;
    status s = cluster_table(f->base.cluster, bytes_of(TEST_TABLE), &table);
    bool is = status_is_ok(s);
    if (is)
        table_release(table);
    status_free(s);
    assert_int_equal(control_has(f->control, RESOURCE_POLICY, TEST_TABLE), is);
    assert_int_equal(control_has(f->control, RESOURCE_POLICY, BUNDLE_OF_TABLE), is);
    assert_int_equal(control_has(f->control, RESOURCE_SCHEMA_BUNDLE, BUNDLE_OF_TABLE), is);
    return is;
}

/* Each life begins by what the last one left, with the next operation on files failing. */
static void test_what_a_deleted_table_had_comes_back_with_it(void **state)
{
    struct fixture *f = *state;
    unsigned seen[2] = {0};
    f->base.options.undelete_window_us = INT64_C(3600) * 1000000;
    reopen(f);
    assert_ok(control_edit(f->control, make_or_delete_both, f));
    assert_ok(edit(f, "y:" INSTANCE "/tables/t s:" BUNDLE_OF_TABLE " y:" BUNDLE_OF_TABLE));
    uint64_t version = version_of_bundle(f);
    bool came = true;
    for (unsigned pass = 0; came || pass < 8; pass++) {
        assert_true(pass < 100);
        came = edit_on_failing_disk(f, is_whole(f) ? delete_and_keep : bring_back, is_whole, pass);
        assert_true(!is_whole(f) || version_of_bundle(f) == version);
        seen[is_whole(f)]++;
    }
    assert_true(seen[0] > 0 && seen[1] > 0);
}

/* --- operations --- */

/* A kind that counts: its argument is what it does. */
struct counter {
    atomic_uint runs;
    atomic_uint recoveries;
    atomic_uint abandoned;
    atomic_bool is_held; /* "wait" waits while it is */
};

static status put_result(void *context, struct edit *edit)
{
    struct operation *operation = context;
    BtAdmin__Instance result = BT_ADMIN__INSTANCE__INIT;
    BtAdmin__UpdateAppProfileMetadata metadata = BT_ADMIN__UPDATE_APP_PROFILE_METADATA__INIT;
    result.name = INSTANCE;
    TRY(edit_put(edit, RESOURCE_INSTANCE, INSTANCE, &result.base, bytes_of("")));
    return operation_finish(operation, edit, &metadata.base, &result.base);
}

static bool is_free(void *context)
{
    struct operation *operation = ((void **)context)[0];
    struct counter *counter = ((void **)context)[1];
    return operation_is_cancelled(operation) || !atomic_load(&counter->is_held);
}

static status run_counter(void *context, struct operation *operation)
{
    struct counter *counter = context;
    atomic_fetch_add(&counter->runs, 1);
    if (bytes_equal(operation_argument(operation), bytes_of("fail")))
        return status_make(STATUS_FAILED_PRECONDITION, "it was told to fail");
    BtAdmin__UpdateInstanceMetadata progress = BT_ADMIN__UPDATE_INSTANCE_METADATA__INIT;
    TRY(operation_report(operation, &progress.base));
    void *both[] = {operation, counter};
    assert_true(thread_wait_for(is_free, both, INT64_C(60) * 1000000));
    if (operation_is_cancelled(operation))
        return status_make(STATUS_CANCELLED, "The operation was cancelled");
    return control_edit(operation_control(operation), put_result, operation);
}

static status recover_counter(void *context, const char *name, bytes argument)
{
    struct counter *counter = context;
    assert_non_null(name);
    atomic_fetch_add(&counter->recoveries, 1);
    if (bytes_equal(argument, bytes_of("once")))
        return status_make(STATUS_ABORTED, "it does not go on");
    return status_ok();
}

static status abandon_counter(void *context, const char *name, bytes argument)
{
    struct counter *counter = context;
    assert_non_null(name);
    assert_true(bytes_equal(argument, bytes_of("again")));
    atomic_fetch_add(&counter->abandoned, 1);
    return status_ok();
}

struct beginning {
    struct arena *arena;
    const char *argument;
    const ProtobufCMessage *operation;
};

static status begin_counting(void *context, struct edit *edit)
{
    struct beginning *beginning = context;
    BtAdmin__UpdateAppProfileMetadata metadata = BT_ADMIN__UPDATE_APP_PROFILE_METADATA__INIT;
    struct operation_spec spec = {.parent = "operations/" INSTANCE "/locations/local",
                                  .metadata = &metadata.base,
                                  .kind = "count",
                                  .argument = bytes_of(beginning->argument)};
    return operation_begin(edit, &spec, beginning->arena, &beginning->operation);
}

static const char *begin(struct fixture *f, const char *argument)
{
    struct beginning beginning = {.arena = f->base.arena, .argument = argument};
    assert_ok(control_edit(f->control, begin_counting, &beginning));
    return ((const Lro__Operation *)(const void *)beginning.operation)->name;
}

static const Lro__Operation *operation_now(struct fixture *f, const char *name)
{
    struct resource *resource;
    ProtobufCMessage *message;
    assert_ok(control_find(f->control, RESOURCE_OPERATION, name, &resource));
    assert_ok(resource_decode(resource, f->base.arena, &message));
    resource_release(resource);
    return (const void *)message;
}

static const Lro__Operation *wait_for(struct fixture *f, const char *name)
{
    operation_wait(f->control, name, clock_steady_us(clock_system()) + 60000000);
    const Lro__Operation *operation = operation_now(f, name);
    assert_true(operation->done);
    return operation;
}

static void use_counter(struct fixture *f, struct counter *counter, struct operation_kind *kind)
{
    *kind = (struct operation_kind){.name = "count",
                                    .context = counter,
                                    .run = run_counter,
                                    .recover = recover_counter,
                                    .abandon = abandon_counter};
    f->kinds = kind;
    f->kind_count = 1;
    reopen(f);
}

static void test_an_operation_runs_to_its_end(void **state)
{
    struct fixture *f = *state;
    struct counter counter = {0};
    struct operation_kind kind;
    use_counter(f, &counter, &kind);
    const char *name = begin(f, "");
    assert_int_equal(wait_for(f, name)->result_case, LRO__OPERATION__RESULT_RESPONSE);
    assert_true(control_has(f->control, RESOURCE_INSTANCE, INSTANCE));
    assert_ok(operation_cancel(f->control, name)); /* too late, and no harm */
    assert_ok(operation_forget(f->control, name));
    assert_status(operation_forget(f->control, name), STATUS_NOT_FOUND);
    assert_status(operation_cancel(f->control, name), STATUS_NOT_FOUND);
}

/* It is asked again and again, and ends when what it waits for is there. */
static status run_awaited(void *context, struct operation *operation)
{
    struct counter *counter = context;
    atomic_fetch_add(&counter->runs, 1);
    if (operation_is_cancelled(operation))
        return status_make(STATUS_CANCELLED, "The operation was cancelled");
    if (atomic_load(&counter->is_held))
        return status_ok();
    return control_edit(operation_control(operation), put_result, operation);
}

static struct operation_kind awaited_kind(struct counter *counter)
{
    return (struct operation_kind){.name = "count",
                                   .context = counter,
                                   .run = run_awaited,
                                   .recover = recover_counter,
                                   .is_awaited = true};
}

static bool has_run_often(void *context)
{
    return atomic_load(&((struct counter *)context)->runs) > 20;
}

static bool runs_none(void *context)
{
    return operations_running(context) == 0;
}

static void test_operations_that_are_awaited_keep_nobody_from_a_thread(void **state)
{
    enum { AWAITED = 5 };
    struct fixture *f = *state;
    struct counter counter = {0}, waiting = {.is_held = true};
    struct operation_kind kinds[2];
    use_counter(f, &counter, &kinds[1]);
    kinds[0] = awaited_kind(&waiting);
    kinds[1].name = "work";
    f->kinds = kinds;
    f->kind_count = 2;
    reopen(f);
    const char *awaited[AWAITED];
    for (size_t i = 0; i < AWAITED; i++)
        awaited[i] = begin(f, "");
    assert_ok(operation_cancel(f->control, awaited[2]));
    assert_int_equal(wait_for(f, awaited[2])->error->code, STATUS_CANCELLED);
    assert_true(thread_wait_for(has_run_often, &waiting, INT64_C(60) * 1000000));
    kinds[0].name = "other"; /* what `begin` begins is now of the other kind */
    kinds[1].name = "count";
    assert_int_equal(wait_for(f, begin(f, ""))->result_case, LRO__OPERATION__RESULT_RESPONSE);
    assert_false(operation_now(f, awaited[0])->done);
    assert_true(operations_running(f->control) >= AWAITED - 1);
    atomic_store(&waiting.is_held, false);
    for (size_t i = 0; i < AWAITED; i++)
        (void)wait_for(f, awaited[i]);
    assert_true(thread_wait_for(runs_none, f->control, INT64_C(60) * 1000000));
}

static void test_awaited_operations_go_on_after_a_stop(void **state)
{
    struct fixture *f = *state;
    struct counter waiting = {.is_held = true};
    struct operation_kind kind = awaited_kind(&waiting);
    f->kinds = &kind;
    f->kind_count = 1;
    reopen(f);
    const char *name = begin(f, "");
    close_control(f);
    atomic_store(&waiting.is_held, false);
    open_control(f);
    assert_int_equal(atomic_load(&waiting.recoveries), 1);
    assert_int_equal(wait_for(f, name)->result_case, LRO__OPERATION__RESULT_RESPONSE);
}

static void test_a_failure_is_the_operations_error(void **state)
{
    struct fixture *f = *state;
    struct counter counter = {0};
    struct operation_kind kind;
    use_counter(f, &counter, &kind);
    const Lro__Operation *operation = wait_for(f, begin(f, "fail"));
    assert_int_equal(operation->result_case, LRO__OPERATION__RESULT_ERROR);
    assert_int_equal(operation->error->code, STATUS_FAILED_PRECONDITION);
    assert_string_equal(operation->error->message, "it was told to fail");
}

static void test_a_cancelled_operation_says_so(void **state)
{
    struct fixture *f = *state;
    struct counter counter = {.is_held = true};
    struct operation_kind kind;
    use_counter(f, &counter, &kind);
    const char *name = begin(f, "");
    assert_status(operation_forget(f->control, name), STATUS_FAILED_PRECONDITION);
    assert_ok(operation_cancel(f->control, name));
    assert_int_equal(wait_for(f, name)->error->code, STATUS_CANCELLED);
    assert_false(control_has(f->control, RESOURCE_INSTANCE, INSTANCE));
}

static void test_what_a_stop_cut_short_goes_on_or_ends(void **state)
{
    struct fixture *f = *state;
    struct counter counter = {.is_held = true};
    struct operation_kind kind;
    use_counter(f, &counter, &kind);
    const char *goes_on = begin(f, "again");
    const char *ends = begin(f, "once");
    close_control(f);
    atomic_store(&counter.is_held, false);
    open_control(f);
    assert_int_equal(atomic_load(&counter.recoveries), 2);
    assert_int_equal(wait_for(f, goes_on)->result_case, LRO__OPERATION__RESULT_RESPONSE);
    assert_int_equal(wait_for(f, ends)->error->code, STATUS_ABORTED);
    reopen(f);
    assert_int_equal(atomic_load(&counter.recoveries), 2);
}

static void mark_abandoned(struct fixture *f)
{
    struct catalog_txn *txn = catalog_txn_create(cluster_catalog(f->base.cluster));
    assert_non_null(txn);
    operations_mark_abandoned(txn);
    assert_ok(cluster_write_catalog(f->base.cluster, txn));
    catalog_txn_destroy(txn);
}

static void test_operations_of_a_restored_server_are_aborted_once(void **state)
{
    struct fixture *f = *state;
    struct counter counter = {.is_held = true};
    struct operation_kind kind;
    use_counter(f, &counter, &kind);
    const char *name = begin(f, "again");
    mark_abandoned(f);
    reopen(f);
    const Lro__Operation *operation = operation_now(f, name);
    assert_true(operation->done);
    assert_int_equal(operation->error->code, STATUS_ABORTED);
    assert_int_equal(atomic_load(&counter.abandoned), 1);
    assert_int_equal(atomic_load(&counter.recoveries), 0);
    /* Operations that are begun afterwards go on over starts as ever. */
    const char *next = begin(f, "again");
    close_control(f);
    atomic_store(&counter.is_held, false);
    open_control(f);
    assert_int_equal(atomic_load(&counter.recoveries), 1);
    assert_int_equal(wait_for(f, next)->result_case, LRO__OPERATION__RESULT_RESPONSE);
    assert_int_equal(atomic_load(&counter.abandoned), 1);
}

/* A release that does not know the kind any more ends the operation, too. */
static void test_an_operation_of_an_unknown_kind_ends(void **state)
{
    struct fixture *f = *state;
    struct counter counter = {.is_held = true};
    struct operation_kind kind;
    use_counter(f, &counter, &kind);
    const char *name = begin(f, "");
    f->kind_count = 0;
    reopen(f);
    assert_int_equal(operation_now(f, name)->error->code, STATUS_ABORTED);
}

static void test_old_operations_are_forgotten(void **state)
{
    struct fixture *f = *state;
    struct counter counter = {0};
    struct operation_kind kind;
    use_counter(f, &counter, &kind);
    const char *name = begin(f, "");
    wait_for(f, name);
    f->clock.wall_ahead_us += INT64_C(29) * 24 * 3600 * 1000000;
    wait_for(f, begin(f, ""));
    assert_true(control_has(f->control, RESOURCE_OPERATION, name));
    f->clock.wall_ahead_us += INT64_C(2) * 24 * 3600 * 1000000;
    wait_for(f, begin(f, ""));
    assert_false(control_has(f->control, RESOURCE_OPERATION, name));
}

/* --- what the doctor asks --- */

static bool has_no_table(void *context, const char *name)
{
    (void)context, (void)name;
    return false;
}

static bool has_no_deleted_table(void *context, uint64_t id)
{
    (void)context, (void)id;
    return false;
}

static void add_report(void *context, const char *name, const char *what)
{
    buffer_append_format(context, "%s: %s; ", name, what);
}

static void test_orphans_and_damage_are_reported(void **state)
{
    struct fixture *f = *state;
    struct buffer reports = {0};
    struct control_check check = {&reports, has_no_table, has_no_deleted_table, add_report};
    size_t count;
    assert_ok(edit(f, "i:" INSTANCE " c:" INSTANCE "/clusters/a y:" INSTANCE));
    assert_ok(control_verify(cluster_catalog(f->base.cluster), &check, &count));
    assert_int_equal(count, 3);
    assert_int_equal(reports.size, 0);
    struct catalog_txn *txn = catalog_txn_create(cluster_catalog(f->base.cluster));
    catalog_txn_delete(txn, bytes_of("Ri" INSTANCE));
    catalog_txn_put(txn, bytes_of("Rixyz"), bytes_of("\xff"));
    assert_ok(cluster_write_catalog(f->base.cluster, txn));
    assert_ok(control_verify(cluster_catalog(f->base.cluster), &check, &count));
    buffer_append_byte(&reports, 0);
    assert_non_null(strstr((char *)reports.data, INSTANCE "/clusters/a: what it belongs to"));
    assert_non_null(strstr((char *)reports.data, "; " INSTANCE ": what it belongs to"));
    assert_non_null(strstr((char *)reports.data, "Rixyz: "));
    catalog_txn_destroy(txn);
    txn = catalog_txn_create(cluster_catalog(f->base.cluster));
    catalog_txn_delete(txn, bytes_of("Rixyz"));
    assert_ok(cluster_write_catalog(f->base.cluster, txn));
    catalog_txn_destroy(txn);
    buffer_free(&reports);
}

/* --- what is kept with a resource --- */

struct counted {
    struct resource_kept kept;
    int destroyed;
};

static void count_destroyed(struct resource_kept *kept)
{
    ((struct counted *)kept)->destroyed++;
}

static void test_the_first_is_kept_as_long_as_the_resource(void **state)
{
    (void)state;
    struct counted first = {.kept.destroy = count_destroyed}, second = first;
    struct resource *resource;
    bytes none = bytes_make(NULL, 0);
    assert_ok(resource_create(RESOURCE_INSTANCE, INSTANCE, 1, none, none, &resource));
    assert_ptr_equal(resource_keep(resource, &first.kept), &first);
    assert_ptr_equal(resource_keep(resource, &second.kept), &first);
    assert_int_equal(second.destroyed, 1);
    resource_retain(resource);
    resource_release(resource);
    assert_int_equal(first.destroyed, 0);
    resource_release(resource);
    assert_int_equal(first.destroyed, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_an_instance_with_what_it_has_is_one_edit),
        TEST(test_names_that_begin_alike_are_told_apart),
        TEST(test_a_listing_goes_on_after_what_is_gone),
        TEST(test_versions_are_never_given_twice),
        TEST(test_versions_rise_without_their_record),
        TEST(test_a_resource_may_bring_its_version),
        TEST(test_edits_are_counted_and_looked_between),
        cmocka_unit_test(test_lost_resources_are_told_by_their_kinds),
        TEST(test_an_edit_without_memory_changes_nothing),
        TEST(test_a_failing_disk_finds_all_or_nothing),
        TEST(test_tables_and_resources_come_and_go_together),
        TEST(test_what_a_deleted_table_had_comes_back_with_it),
        TEST(test_an_operation_runs_to_its_end),
        TEST(test_a_failure_is_the_operations_error),
        TEST(test_a_cancelled_operation_says_so),
        TEST(test_what_a_stop_cut_short_goes_on_or_ends),
        TEST(test_operations_of_a_restored_server_are_aborted_once),
        TEST(test_operations_that_are_awaited_keep_nobody_from_a_thread),
        TEST(test_awaited_operations_go_on_after_a_stop),
        TEST(test_an_operation_of_an_unknown_kind_ends),
        TEST(test_old_operations_are_forgotten),
        TEST(test_orphans_and_damage_are_reported),
        cmocka_unit_test(test_the_first_is_kept_as_long_as_the_resource),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
