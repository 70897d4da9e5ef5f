/* See database.h. */
#include "datastore/database.h"

#include "base/limits.h"
#include "datastore/index/index_check.h"
#include "datastore/index/indexes.h"
#include "datastore/usage.h"
#include "datastore/usage_keep.h"

#include <stdlib.h>

enum { DESCRIPTION_BYTES = 16 << 20 };

static status table_name_of(const struct ds_database *database, struct buffer *out)
{
    buffer_append_format(out, "projects/%s/databases/%s", database->project,
                         database->id[0] == '\0' ? "(default)" : database->id);
    buffer_append_byte(out, '\0');
    return out->failed ? status_out_of_memory() : status_ok();
}

/* --- the table --- */

static const struct gc_rule recent = {.kind = GC_MAX_AGE, .max_age_us = DS_KEPT_US};

static status make_table(struct datastore *datastore, const char *name, struct table **out)
{
    static const struct gc_rule newest = {.kind = GC_MAX_VERSIONS, .max_versions = 1};
    const struct family families[] = {{.id = 1, .name = bytes_of(DS_FAMILY_IS), .gc = &newest},
                                      {.id = 2, .name = bytes_of(DS_FAMILY_WAS), .gc = &recent}};
    struct schema *schema;
    TRY(schema_create(GRANULARITY_MICROS, families, 2, 3, &schema));
    struct table_spec spec = {.name = name, .schema = schema};
    status s = cluster_create_table(datastore->cluster, &spec, out);
    schema_destroy(schema);
    return s;
}

/* Its commits are groups of rows. */
static status check_shard(struct table **table)
{
    if (table_is_in_one_shard(*table))
        return status_ok();
    status s =
        status_make(STATUS_FAILED_PRECONDITION,
                    "%s is a Datastore database, and lies in several shards", table_name(*table));
    table_release(*table);
    *table = NULL;
    return s;
}

/* `*out` NULL: there is none. */
static status hold_table(struct datastore *datastore, const char *name, bool make,
                         struct table **out)
{
    status s = cluster_table(datastore->cluster, bytes_of(name), out);
    if (status_is_ok(s))
        return check_shard(out);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    *out = NULL;
    return make ? make_table(datastore, name, out) : status_ok();
}

/* --- tables that were made before --- */

static bool keeps_long_enough(const struct schema *schema)
{
    const struct family *was = schema_family_named(schema, bytes_of(DS_FAMILY_WAS));
    return was == NULL || (was->gc != NULL && was->gc->kind == recent.kind &&
                           was->gc->max_age_us >= recent.max_age_us);
}

/* The rest of the table's description stays. */
static status with_longer_past(void *context, const struct table_info *now, struct arena *arena,
                               struct table_change *next)
{
    (void)context;
    const struct schema *schema = now->schema;
    struct family *families = arena_alloc(arena, schema->family_count * sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < schema->family_count; i++) {
        families[i] = schema->families[i];
        if (bytes_equal(families[i].name, bytes_of(DS_FAMILY_WAS)))
            families[i].gc = &recent;
    }
    *next = (struct table_change){.families = families,
                                  .family_count = schema->family_count,
                                  .deletion_protection = now->deletion_protection,
                                  .extra = now->extra};
    return status_ok();
}

static bool keep_longer(void *context, struct table *table)
{
    status *result = context;
    if (!ds_is_database_table(table_name(table)) || keeps_long_enough(table_schema(table)))
        return true;
    struct arena *arena = arena_create(DESCRIPTION_BYTES);
    *result = arena == NULL ? status_out_of_memory()
                            : table_change_schema(table, arena, with_longer_past, NULL);
    arena_destroy(arena);
    return status_is_ok(*result);
}

status ds_databases_keep_longer(struct datastore *datastore)
{
    status result = status_ok();
    status s = cluster_list_tables(datastore->cluster, bytes_of("projects/"), bytes_of(""),
                                   keep_longer, &result);
    if (status_is_ok(s))
        return result;
    status_free(result);
    return s;
}

/* --- those that are open --- */

static void close_database(struct ds_open_database *open)
{
    if (open->table != NULL)
        table_release(open->table);
    ds_usage_database_destroy(open->usage);
    ds_indexes_destroy(open->indexes);
    ds_recent_free(&open->recent);
    ds_in_flight_free(&open->in_flight);
    ds_sequencer_free(&open->sequencer);
    ds_locks_destroy(open->locks);
    pthread_mutex_destroy(&open->ids_lock);
    free(open->project);
    free(open->id);
    free(open);
}

static status new_database(const struct datastore *datastore, const struct ds_database *database,
                           struct table *table, struct ds_open_database **out)
{
    struct ds_open_database *open = *out = calloc(1, sizeof *open);
    if (open == NULL) {
        table_release(table);
        return status_out_of_memory();
    }
    open->table = table;
    ds_sequencer_init(&open->sequencer);
    ds_in_flight_init(&open->in_flight);
    ds_recent_init(&open->recent);
    open->usage = ds_usage_database_create(datastore->usage);
    pthread_mutex_init(&open->ids_lock, NULL);
    open->project = strdup(database->project);
    open->id = strdup(database->id);
    status s = ds_locks_create(&open->locks);
    if (status_is_ok(s) && (open->project == NULL || open->id == NULL))
        s = status_out_of_memory();
    if (status_is_ok(s))
        s = ds_indexes_create(open, &open->indexes);
    if (!status_is_ok(s))
        close_database(open);
    else
        ds_usage_restore(open);
    return s;
}

/* With the lock of the list held. */
static status add(struct datastore *datastore, const struct ds_database *database, bool make,
                  struct ds_open_database **out)
{
    struct buffer name = {0};
    struct table *table = NULL;
    if (datastore->database_count == LIMIT_DS_DATABASES)
        return status_make(STATUS_RESOURCE_EXHAUSTED, "There are %d databases already.",
                           LIMIT_DS_DATABASES);
    status s = table_name_of(database, &name);
    if (status_is_ok(s))
        s = hold_table(datastore, (const char *)name.data, make, &table);
    buffer_free(&name);
    if (!status_is_ok(s) || table == NULL)
        return s;
    TRY(new_database(datastore, database, table, out));
    (*out)->next = datastore->databases;
    datastore->databases = *out;
    datastore->database_count++;
    return status_ok();
}

static struct ds_open_database *find(const struct datastore *datastore,
                                     const struct ds_database *database)
{
    struct ds_open_database *at = datastore->databases;
    while (at != NULL &&
           (strcmp(at->project, database->project) != 0 || strcmp(at->id, database->id) != 0))
        at = at->next;
    return at;
}

status ds_database_open(struct datastore *datastore, const struct ds_database *database, bool make,
                        struct ds_open_database **out)
{
    status s = status_ok();
    pthread_mutex_lock(&datastore->databases_lock);
    *out = find(datastore, database);
    if (*out == NULL)
        s = add(datastore, database, make, out);
    pthread_mutex_unlock(&datastore->databases_lock);
    return s;
}

status ds_database_visit(struct datastore *datastore, const struct ds_database *database,
                         struct ds_open_database **out)
{
    status s = status_ok();
    pthread_mutex_lock(&datastore->databases_lock);
    *out = find(datastore, database);
    if (*out == NULL && datastore->database_count < LIMIT_DS_DATABASES / 2)
        s = add(datastore, database, false, out);
    pthread_mutex_unlock(&datastore->databases_lock);
    return s;
}

void ds_databases_close(struct datastore *datastore)
{
    while (datastore->databases != NULL) {
        struct ds_open_database *open = datastore->databases;
        datastore->databases = open->next;
        ds_usage_keep(open);
        close_database(open);
    }
}
