/* What Datastore's past was not, and when.
 *
 * Read in the core by somebody who looked for lost writes:
 *  - What is kept of an index row that has ended had the types of what came after it, and readers
 *    believed it: see test_projections_of_what_has_changed.py. Disks hold such cells.
 *  - The past was kept for exactly as long as it may be read. A transaction as of almost an hour
 * ago found entities missing a minute later, without an error.
 *  - A commit has a moment of its own also while the clock stands, which is then ahead of the
 * clock: to read as of it was refused, since it was in the future.
 *  - Who read while the clock was set ahead by an hour found what was at his moment gone, half way:
 *    entities were missing, or index rows without them were "damage".
 *  - A transaction that had begun before its database came to be did not see the first commit as a
 *    change, if that had the same microsecond. */
#include "datastore_fixture.h"

#include "datastore/commit/rows_write.h"
#include "google/datastore/v1/datastore.pb-c.h"

/* --- types --- */

static void assert_type_at(struct datastore_fixture *f, int64_t at_us, uint8_t type)
{
    struct ds_row_found row;
    size_t count;
    assert_ok(read_rows_of(f, DS_ASCENDING_ROW, at_us, &count, &row));
    assert_int_equal(count, 1);
    assert_int_equal(row.value.size, 1);
    assert_int_equal(row.value.data[0], type);
}

static void what_was_has_the_types_of_then(void **state)
{
    struct datastore_fixture *f = *state;
    int64_t text_us = put_property(f, "'v': {'stringValue': 'abc'}");
    int64_t blob_us = put_property(f, "'v': {'blobValue': 'YWJj'}");
    put_property(f, "'v': {'integerValue': 5}");
    assert_type_at(f, text_us, DS__VALUE__VALUE_TYPE_STRING_VALUE);
    assert_type_at(f, blob_us, DS__VALUE__VALUE_TYPE_BLOB_VALUE);
    assert_type_at(f, INT64_MAX, DS__VALUE__VALUE_TYPE_INTEGER_VALUE);
}

/* As a former version wrote it, when the row went. */
static void what_is_kept_without_types_is_shown_with_them(void **state)
{
    struct datastore_fixture *f = *state;
    struct ds_row_found row;
    size_t count;
    int64_t text_us = put_property(f, "'v': {'stringValue': 'abc'}");
    assert_ok(read_rows_of(f, DS_ASCENDING_ROW, INT64_MAX, &count, &row));
    int64_t later_us = put_property(f, "'v': {'integerValue': 5}");
    const struct ds_row_write without = {.key = row.key, .was = true};
    assert_ok(ds_rows_write(open_test_database(f)->table, &without, 1, later_us, f->arena));
    assert_type_at(f, text_us, DS__VALUE__VALUE_TYPE_STRING_VALUE);
}

/* --- ages --- */

static status begin(struct datastore_fixture *f, bool is_read_only, int64_t at_us,
                    struct ds_transaction **out)
{
    Ds__TransactionOptions options = DS__TRANSACTION_OPTIONS__INIT;
    Ds__TransactionOptions__ReadOnly read_only = DS__TRANSACTION_OPTIONS__READ_ONLY__INIT;
    Ds__TransactionOptions__ReadWrite read_write = DS__TRANSACTION_OPTIONS__READ_WRITE__INIT;
    Pb__Timestamp time = PB__TIMESTAMP__INIT;
    struct ds_call call = test_call(f);
    time.seconds = at_us / 1000000;
    time.nanos = (int32_t)(at_us % 1000000) * 1000;
    options.mode_case = is_read_only ? DS__TRANSACTION_OPTIONS__MODE_READ_ONLY
                                     : DS__TRANSACTION_OPTIONS__MODE_READ_WRITE;
    read_only.read_time = at_us == 0 ? NULL : &time;
    if (is_read_only)
        options.read_only = &read_only;
    else
        options.read_write = &read_write;
    return ds_begin(&call, &options, out);
}

/* What a request of the transaction finds in K/1; `*out` is 0 if it is not there. */
static status read_in(struct datastore_fixture *f, bytes id, int64_t *out)
{
    Ds__ReadOptions options = DS__READ_OPTIONS__INIT;
    struct ds_call call = test_call(f);
    struct ds_reading reading;
    struct ds_version version;
    options.consistency_type_case = DS__READ_OPTIONS__CONSISTENCY_TYPE_TRANSACTION;
    options.transaction = proto_data(id);
    TRY(ds_read_begin(&call, &options, &reading));
    status s =
        ds_snapshot_get(&reading.snapshot, test_key(f->arena, "", "K/1"), f->arena, &version);
    ds_read_end(&reading);
    TRY(s);
    *out = version.entity == NULL ? 0 : version.entity->properties[0]->value->integer_value;
    return s;
}

static void assert_too_old(status s)
{
    assert_string_equal(status_message(s), "The requested 'read_time' is too old.");
    assert_status(s, STATUS_FAILED_PRECONDITION);
}

static void what_was_an_hour_ago_is_there_or_refused(void **state)
{
    struct datastore_fixture *f = *state;
    struct ds_transaction *transaction;
    struct ds_row_found row;
    size_t count;
    int64_t n = 0, then_us = put_property(f, "'n': {'integerValue': 1}");
    pass(f, 1000);
    put_property(f, "'n': {'integerValue': 2}");
    pass(f, HOUR_US - 30 * 1000000);
    assert_ok(begin(f, true, then_us, &transaction));
    bytes id = arena_copy(f->arena, bytes_make(transaction->id, DS_TRANSACTION_ID_SIZE));
    ds_transaction_give_back(f->datastore.transactions, transaction);
    assert_ok(read_in(f, id, &n));
    assert_int_equal(n, 1);
    pass(f, 50 * 1000000);
    assert_too_old(read_in(f, id, &n));
    assert_too_old(begin(f, true, then_us, &transaction));
    /* A request that began before goes on for a while. */
    assert_int_equal(read_at(f, then_us, "K/1").entity->properties[0]->value->integer_value, 1);
    assert_ok(read_rows_of(f, DS_ASCENDING_ROW, then_us, &count, &row));
    assert_int_equal(count, 1);
    pass(f, 10 * 60 * 1000000);
    assert_too_old(read_rows_of(f, DS_ASCENDING_ROW, then_us, &count, &row));
}

/* As of a moment, `at_us`, or of the present: 0. */
static status begin_reading(struct datastore_fixture *f, struct ds_call *call, int64_t at_us,
                            struct ds_reading *out)
{
    Ds__ReadOptions options = DS__READ_OPTIONS__INIT;
    Pb__Timestamp time = PB__TIMESTAMP__INIT;
    *call = test_call(f);
    time.seconds = at_us / 1000000;
    time.nanos = (int32_t)(at_us % 1000000) * 1000;
    options.consistency_type_case = DS__READ_OPTIONS__CONSISTENCY_TYPE_READ_TIME;
    options.read_time = &time;
    return ds_read_begin(call, at_us == 0 ? NULL : &options, out);
}

static void what_goes_while_it_is_read_is_not_missed(void **state)
{
    struct datastore_fixture *f = *state;
    struct ds_reading reading;
    struct ds_call call;
    int64_t then_us = put_property(f, "'n': {'integerValue': 1}");
    pass(f, 1000);
    put_property(f, "'n': {'integerValue': 2}");
    assert_ok(begin_reading(f, &call, then_us, &reading));
    pass(f, 2 * HOUR_US);
    assert_null(read_at(f, then_us, "K/1").entity);
    status s = status_ok();
    assert_false(ds_reading_again(&reading, &s));
    assert_too_old(s);
    s = status_make(STATUS_INTERNAL, "an index row without its entity");
    assert_false(ds_reading_again(&reading, &s));
    assert_too_old(s);
    s = status_make(STATUS_CANCELLED, "by the client");
    assert_false(ds_reading_again(&reading, &s));
    assert_status(s, STATUS_CANCELLED);
    ds_read_end(&reading);
}

static void who_asked_for_no_moment_reads_again(void **state)
{
    struct datastore_fixture *f = *state;
    struct ds_reading reading;
    struct ds_call call;
    status s = status_ok();
    put_property(f, "'n': {'integerValue': 1}");
    assert_ok(begin_reading(f, &call, 0, &reading));
    assert_false(ds_reading_again(&reading, &s));
    assert_ok(s);
    pass(f, 1000);
    int64_t later_us = put_property(f, "'n': {'integerValue': 2}");
    pass(f, 2 * HOUR_US);
    assert_true(ds_reading_again(&reading, &s));
    assert_ok(s);
    assert_true(reading.snapshot.at_us >= later_us + 2 * HOUR_US);
    assert_int_equal(reading.read_time_us, reading.snapshot.at_us);
    s = status_make(STATUS_INTERNAL, "of another cause");
    assert_false(ds_reading_again(&reading, &s));
    assert_status(s, STATUS_INTERNAL);
    ds_read_end(&reading);
}

/* The rule of a table that a former version made. */
static void make_old_table(struct datastore_fixture *f)
{
    const struct gc_rule newest = {.kind = GC_MAX_VERSIONS, .max_versions = 1};
    const struct gc_rule hour = {.kind = GC_MAX_AGE, .max_age_us = HOUR_US};
    const struct family families[] = {{.id = 1, .name = bytes_of(DS_FAMILY_IS), .gc = &newest},
                                      {.id = 2, .name = bytes_of(DS_FAMILY_WAS), .gc = &hour}};
    struct schema *schema;
    struct table *table;
    assert_ok(schema_create(GRANULARITY_MICROS, families, 2, 3, &schema));
    struct table_spec spec = {.name = "projects/p/databases/(default)", .schema = schema};
    assert_ok(cluster_create_table(f->datastore.cluster, &spec, &table));
    table_release(table);
    schema_destroy(schema);
}

static void assert_rules(struct datastore_fixture *f)
{
    const struct schema *schema = table_schema(open_test_database(f)->table);
    const struct family *is = schema_family_named(schema, bytes_of(DS_FAMILY_IS));
    const struct family *was = schema_family_named(schema, bytes_of(DS_FAMILY_WAS));
    assert_int_equal(is->id, 1);
    assert_int_equal(is->gc->max_versions, 1);
    assert_int_equal(was->id, 2);
    assert_int_equal(was->gc->max_age_us, HOUR_US + 600 * INT64_C(1000000));
}

static void databases_of_former_versions_keep_it_longer(void **state)
{
    struct datastore_fixture *f = *state;
    make_old_table(f);
    int64_t then_us = put_property(f, "'n': {'integerValue': 1}");
    pass(f, 1000);
    put_property(f, "'n': {'integerValue': 2}");
    assert_ok(ds_databases_keep_longer(&f->datastore));
    assert_rules(f);
    close_datastore(f);
    open_datastore(f);
    assert_ok(ds_databases_keep_longer(&f->datastore));
    assert_rules(f);
    pass(f, HOUR_US + 60 * 1000000);
    assert_int_equal(read_at(f, then_us, "K/1").entity->properties[0]->value->integer_value, 1);
}

/* --- moments --- */

static void a_commit_is_in_the_past_while_the_clock_stands(void **state)
{
    struct datastore_fixture *f = *state;
    struct ds_transaction *transaction;
    int64_t first_us = put_property(f, "'n': {'integerValue': 1}");
    for (int n = 0; n < 10; n++)
        put_property(f, n % 2 == 0 ? "'n': {'integerValue': 2}" : "'n': {'integerValue': 3}");
    int64_t last_us = read_at(f, INT64_MAX, "K/1").version_us;
    assert_true(last_us >= first_us + 10);
    assert_ok(begin(f, true, last_us, &transaction));
    assert_int_equal(transaction->at_us, last_us);
    ds_transaction_end(f->datastore.transactions, transaction);
    status s = begin(f, true, last_us + 1000000, &transaction);
    assert_string_equal(status_message(s), "The requested 'read_time' cannot be in the future.");
    assert_status(s, STATUS_INVALID_ARGUMENT);
}

static void the_first_commit_is_after_who_began_before_it(void **state)
{
    struct datastore_fixture *f = *state;
    struct ds_transaction *transaction;
    bool has_changed;
    static const uint8_t all = 0;
    assert_ok(begin(f, false, 0, &transaction));
    int64_t first_us = put_property(f, "'n': {'integerValue': 1}");
    assert_true(transaction->at_us < first_us);
    const struct ds_snapshot then = snapshot_at(f, transaction->at_us);
    assert_ok(ds_changed_since(&then, bytes_make(&all, 1), bytes_of(""), f->arena, &has_changed));
    assert_true(has_changed);
    ds_transaction_end(f->datastore.transactions, transaction);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_datastore, teardown_datastore)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_has_the_types_of_then),
        TEST(what_is_kept_without_types_is_shown_with_them),
        TEST(what_was_an_hour_ago_is_there_or_refused),
        TEST(what_goes_while_it_is_read_is_not_missed),
        TEST(who_asked_for_no_moment_reads_again),
        TEST(databases_of_former_versions_keep_it_longer),
        TEST(a_commit_is_in_the_past_while_the_clock_stands),
        TEST(the_first_commit_is_after_who_began_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
