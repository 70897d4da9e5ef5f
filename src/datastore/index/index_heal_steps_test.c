/* Repair of a database with a damaged file, with a disk that fails, at each of its steps.
 *
 * Entities with index rows are in one table file, of which a block is damaged: of index rows, or of
 * entities. A repair is told again and again, with the faults and ends of steps_testing.h. Whatever
 * becomes of it,
 *
 *     nothing is out of service, and the indexes say what the entities say; or something is; and
 *     a repair without faults brings all back into service, with indexes that do, and with all
 *     entities that were not hit. */
#include "cluster/testing/damaged_testing.h"
#include "datastore/commit/rows_write.h"
#include "datastore/index/index_check.h"
#include "datastore/index/index_heal.h"
#include "datastore/index/index_rows.h"
#include "google/datastore/v1/datastore.pb-c.h"
#include "trestle/datastore.pb-c.h"
#include "wire/proto.h"

enum { ENTITIES = 240, MOMENT_US = 1000000, EVERY = 3 /* operation is made to fail */ };

static const char NAME[] = "projects/p/databases/d";

/* --- a database --- */

static void create_database(struct cluster_fixture *f)
{
    const struct gc_rule newest = {.kind = GC_MAX_VERSIONS, .max_versions = 1};
    const struct gc_rule recent = {.kind = GC_MAX_AGE, .max_age_us = DS_KEPT_US};
    const struct family families[] = {{.id = 1, .name = bytes_of(DS_FAMILY_IS), .gc = &newest},
                                      {.id = 2, .name = bytes_of(DS_FAMILY_WAS), .gc = &recent}};
    struct schema *schema;
    assert_ok(schema_create(GRANULARITY_MICROS, families, 2, 3, &schema));
    struct table_spec spec = {.name = NAME, .schema = schema};
    assert_ok(cluster_create_table(f->cluster, &spec, &f->table));
    schema_destroy(schema);
}

static bytes encode_record(const Ds__Entity *entity, struct arena *arena)
{
    Datastore__Record record = DATASTORE__RECORD__INIT;
    struct buffer encoded = {0}, whole = {0};
    proto_encode(&entity->base, &encoded);
    record.entity = proto_data(buffer_bytes(&encoded));
    proto_encode(&record.base, &whole);
    bytes out = arena_copy(arena, buffer_bytes(&whole));
    buffer_free(&encoded);
    buffer_free(&whole);
    return out;
}

/* K/"k0001" with a value that is not compressed away, which is indexed; or its index rows alone. */
static void put_rows(struct cluster_fixture *f, unsigned i, unsigned of_value, bool has_entity)
{
    char name[8], text[VALUE + 1], property_name[] = "a", kind[] = "K", project[] = "p", id[] = "d";
    Ds__Value value = DS__VALUE__INIT;
    Ds__Entity__PropertiesEntry property = DS__ENTITY__PROPERTIES_ENTRY__INIT;
    Ds__Entity__PropertiesEntry *properties[] = {&property};
    Ds__Key__PathElement element = DS__KEY__PATH_ELEMENT__INIT;
    Ds__Key__PathElement *path[] = {&element};
    Ds__PartitionId partition = DS__PARTITION_ID__INIT;
    Ds__Key key = DS__KEY__INIT;
    Ds__Entity entity = DS__ENTITY__INIT;
    struct ds_index_rows index_rows;
    struct ds_row_write rows[8] = {0};
    struct buffer row_key = {0};
    key_of(name, i);
    value_of(text, of_value);
    value.value_type_case = DS__VALUE__VALUE_TYPE_STRING_VALUE;
    value.string_value = text;
    property.key = property_name;
    property.value = &value;
    element.kind = kind;
    element.id_type_case = DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
    element.name = name;
    partition.project_id = project;
    partition.database_id = id;
    key.partition_id = &partition;
    key.path = path;
    key.n_path = 1;
    entity.key = &key;
    entity.properties = properties;
    entity.n_properties = 1;
    arena_reset(f->arena);
    ds_entity_row(&row_key, &key);
    rows[0] = (struct ds_row_write){
        .key = buffer_bytes(&row_key), .is = true, .now = encode_record(&entity, f->arena)};
    assert_ok(ds_index_rows(&entity, NULL, 0, f->arena, &index_rows));
    assert_in_range(index_rows.count, 2, 7);
    for (size_t at = 0; at < index_rows.count; at++)
        rows[1 + at] = (struct ds_row_write){
            .key = index_rows.rows[at].key, .is = true, .now = index_rows.rows[at].types};
    size_t first = has_entity ? 0 : 1;
    assert_ok(
        ds_rows_write(f->table, rows + first, 1 + index_rows.count - first, MOMENT_US, f->arena));
    buffer_free(&row_key);
}

static void put_entity(struct cluster_fixture *f, unsigned i)
{
    put_rows(f, i, i, true);
}

static void fill(struct cluster_fixture *f)
{
    open_test_cluster(f);
    create_database(f);
    for (unsigned i = 0; i < ENTITIES; i++)
        put_entity(f, i);
    assert_ok(keyspace_flush(f->table->tablets[0]->keyspace));
    end_life(f);
}

static void begin_database(struct cluster_fixture *f)
{
    open_test_cluster(f);
    assert_ok(cluster_table(f->cluster, bytes_of(NAME), &f->table));
}

/* --- what is so --- */

static status count_range(void *context, const struct lost_rows *lost)
{
    unsigned *count = context;
    (void)lost;
    *count += 1;
    return status_ok();
}

static unsigned closed_ranges(struct cluster_fixture *f)
{
    unsigned count = 0;
    assert_ok(cluster_list_damage(f->cluster, count_range, &count));
    return count;
}

static status note_wrong(void *context, const struct ds_index_damage *damage)
{
    (void)context;
    fail_msg("%c: %s", damage->row_key.data[0], damage->what);
    return status_ok();
}

/* The indexes are right; how many entities there are. */
static uint64_t check_indexes(struct cluster_fixture *f)
{
    struct ds_index_check check = {.store = f->cluster->home->store,
                                   .keyspace = f->table->tablets[0]->keyspace,
                                   .schema = table_schema(f->table),
                                   .now_us = MOMENT_US,
                                   .report = note_wrong};
    assert_ok(ds_index_check_run(&check));
    return check.entities;
}

static status repair(struct cluster_fixture *f)
{
    struct arena *arena = arena_create(1 << 20);
    struct ds_heal heal;
    assert_ok(ds_heal_open(NULL, f->table, arena, &heal));
    const struct table_repair_options options = {
        .lost = ignore_lost, .heal = ds_heal_run, .heal_context = &heal};
    status s = table_repair(f->table, &options);
    arena_destroy(arena);
    return s;
}

/* --- the story --- */

static off_t flipped_at;    /* in the file */
static uint64_t left_there; /* entities, after a repair without faults */

static void recover(struct cluster_fixture *f)
{
    begin_database(f);
    assert_ok(cluster_look_for_damage(f->cluster));
    if (closed_ranges(f) == 0)
        assert_int_equal(check_indexes(f), left_there);
    assert_ok(repair(f));
    assert_int_equal(closed_ranges(f), 0);
    assert_int_equal(check_indexes(f), left_there);
    end_life(f);
    begin_database(f);
    assert_int_equal(closed_ranges(f), 0);
    assert_int_equal(check_indexes(f), left_there);
    end_life(f);
}

static void begin_damaged(struct cluster_fixture *f)
{
    char path[512];
    make_steps_fixture(f);
    fill(f);
    find_table_file(f->directory, path);
    flip_at(path, flipped_at);
    faults = fault_fs_create();
    begin_database(f);
    assert_ok(cluster_look_for_damage(f->cluster));
    assert_int_equal(closed_ranges(f), 1);
}

/* False if the fault did not come. */
static bool repair_with_fault(enum fault_operation operation, unsigned pass, enum ending ending)
{
    struct cluster_fixture f;
    char copy[64];
    make_steps_directory(copy, sizeof copy);
    begin_damaged(&f);
    fault_fs_fail(faults, operation, "", FAULT_IO, pass);
    status s = repair(&f);
    bool failed = !status_is_ok(s);
    bool came = failed || fault_fs_failures(faults) > 0;
    status_free(s);
    if (ending != STOP && failed)
        cut_power(&f, copy, ending);
    fault_fs_heal(faults);
    if (f.options.data_directory == f.directory && closed_ranges(&f) == 0)
        assert_int_equal(check_indexes(&f), left_there);
    end_life(&f);
    end_faults();
    recover(&f);
    remove_test_directory(copy);
    free_steps_fixture(&f);
    return came;
}

static void tell_with_faults(enum fault_operation operation)
{
    enum { MOST = 500 };
    unsigned pass = 0;
    bool came = true;
    for (; came && pass < MOST; pass += EVERY)
        came = repair_with_fault(operation, pass, (enum ending)(pass / EVERY % ENDINGS));
    assert_false(came);
    assert_true(pass > EVERY);
}

/* How many entities are left; they are as many as there were if index rows alone are hit. */
static void repair_without_faults(off_t at)
{
    struct cluster_fixture f;
    flipped_at = at;
    begin_damaged(&f);
    assert_ok(repair(&f));
    assert_int_equal(closed_ranges(&f), 0);
    left_there = check_indexes(&f);
    end_life(&f);
    end_faults();
    recover(&f);
    free_steps_fixture(&f);
}

static void test_index_rows_are_made_again(void **state)
{
    (void)state;
    repair_without_faults(1000);
    assert_int_equal(left_there, ENTITIES);
    tell_with_faults(FAULT_APPEND);
    tell_with_faults(FAULT_SYNC);
}

static void test_index_rows_of_lost_entities_go(void **state)
{
    (void)state;
    repair_without_faults(70000);
    assert_in_range(left_there, 1, ENTITIES - 1);
    tell_with_faults(FAULT_APPEND);
    tell_with_faults(FAULT_SYNC);
}

/* A backup has had them of what the entity was then, hours ago: nothing else says that it was so.
 */
static void test_index_rows_of_a_backup_fit_the_entities(void **state)
{
    enum { FEW = 9 };
    const struct given_up all_index_rows = {.from = bytes_of("A"), .to = bytes_of("B")};
    struct cluster_fixture f;
    struct arena *arena = arena_create(1 << 20);
    struct ds_heal heal;
    (void)state;
    make_steps_fixture(&f);
    faults = fault_fs_create();
    open_test_cluster(&f);
    create_database(&f);
    for (unsigned i = 0; i < FEW; i++)
        put_entity(&f, i);
    put_rows(&f, 3, FEW + 3, false);
    assert_ok(ds_heal_open(NULL, f.table, arena, &heal));
    heal.is_filled = true;
    assert_ok(ds_heal_run(&heal, &all_index_rows, 1));
    assert_int_equal(heal.removed, 1);
    assert_int_equal(check_indexes(&f), FEW);
    arena_destroy(arena);
    end_life(&f);
    end_faults();
    free_steps_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index_rows_of_a_backup_fit_the_entities),
        cmocka_unit_test(test_index_rows_are_made_again),
        cmocka_unit_test(test_index_rows_of_lost_entities_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
