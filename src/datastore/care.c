/* See care.h. Only the thread touches what is watched. */
#include "datastore/care.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/siphash.h"
#include "control/control.h"
#include "datastore/admin/statistics_pass.h"
#include "datastore/admin/ttl.h"
#include "datastore/admin/ttl_pass.h"
#include "datastore/database.h"
#include "datastore/usage.h"
#include "datastore/usage_keep.h"
#include "os/thread.h"

#include <stdlib.h>

#define SECOND_US INT64_C(1000000)

/* A database without statistics gets its first at most this long after it was seen first, and what
 * has expired in it is looked for. */
#define FIRST_STATISTICS_US (3600 * SECOND_US)
#define FIRST_LOOK_US       (60 * SECOND_US)

#define NAME_START  "projects/"
#define NAME_MIDDLE "/databases/"

/* A database that was found. */
struct watched {
    struct watched *next;
    char *project;
    char *id;
    struct ds_open_database *open; /* NULL: it has not been looked at */
    int64_t statistics_due_us;     /* clock_steady_us */
    int64_t ttl_due_us;
    unsigned ttl_looks;            /* since all entities were looked at */
    struct fingerprint ttl_fields; /* of the names of those by which entities expire */
};

struct ds_care {
    struct datastore *datastore;
    struct ds_care_options options;
    const struct log *log;
    struct watched *watched;
    int64_t working_since_us; /* clock_steady_us */
    pthread_t thread;
    struct thread_stop stop;
};

static int64_t steady_us(const struct ds_care *care)
{
    return clock_steady_us(care->datastore->clock);
}

/* --- resting --- */

static void collect_usage(struct ds_care *care)
{
    if (care->datastore->usage != NULL)
        ds_usage_collect(care->datastore->usage);
}

status ds_care_rest(struct ds_care *care)
{
    int64_t worked_us = steady_us(care) - care->working_since_us;
    bool goes_on = thread_rest(&care->stop, worked_us > 0 ? worked_us : 0);
    care->working_since_us = steady_us(care);
    collect_usage(care);
    return goes_on ? status_ok() : status_make(STATUS_CANCELLED, "The server stops.");
}

/* --- which databases there are --- */

static struct watched *find(const struct ds_care *care, bytes project, bytes id)
{
    struct watched *at = care->watched;
    while (at != NULL &&
           (!bytes_equal(bytes_of(at->project), project) || !bytes_equal(bytes_of(at->id), id)))
        at = at->next;
    return at;
}

static void free_watched(struct watched *watched)
{
    free(watched->project);
    free(watched->id);
    free(watched);
}

/* Without memory it is found another time. */
static void watch(struct ds_care *care, bytes project, bytes id)
{
    struct watched *made = calloc(1, sizeof *made);
    if (made == NULL)
        return;
    made->project = strndup((const char *)project.data, project.size);
    made->id = strndup((const char *)id.data, id.size);
    if (made->project == NULL || made->id == NULL) {
        free_watched(made);
        return;
    }
    made->next = care->watched;
    care->watched = made;
}

/* `projects/P/databases/D`; Bigtable's tables have other names. */
static bool visit_table(void *context, struct table *table)
{
    struct ds_care *care = context;
    const char *project = table_name(table) + strlen(NAME_START);
    const char *end = strchr(project, '/');
    if (end == NULL || strncmp(end, NAME_MIDDLE, strlen(NAME_MIDDLE)) != 0)
        return true;
    const char *id = end + strlen(NAME_MIDDLE);
    bytes of = bytes_make((const uint8_t *)project, (size_t)(end - project));
    bytes name = strcmp(id, "(default)") == 0 ? bytes_of("") : bytes_of(id);
    if (find(care, of, name) == NULL)
        watch(care, of, name);
    return true;
}

static void complain(const struct ds_care *care, const struct watched *watched, const char *what,
                     status s)
{
    if (!status_is_ok(s) && s.code != STATUS_CANCELLED)
        log_warn(care->log, what, LOG_STR("project", watched->project),
                 LOG_STR("database", watched->id), LOG_STR("cause", status_message(s)));
    status_free(s);
}

/* --- statistics --- */

static int64_t shorter(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When it is seen first: one interval after the last ones, which may be of before the start. */
static status begin_watch(struct ds_care *care, struct watched *watched)
{
    const struct ds_database database = {watched->project, watched->id};
    int64_t interval_us = care->options.statistics_interval_us;
    int64_t made_us, wait_us = shorter(interval_us, FIRST_STATISTICS_US);
    TRY(ds_database_visit(care->datastore, &database, &watched->open));
    if (watched->open == NULL)
        return status_ok();
    TRY(ds_statistics_time(watched->open, &made_us));
    if (made_us > 0)
        wait_us =
            shorter(interval_us, made_us + interval_us - cluster_wall_us(care->datastore->cluster));
    watched->statistics_due_us = steady_us(care) + wait_us;
    watched->ttl_due_us = steady_us(care) + shorter(care->options.ttl_interval_us, FIRST_LOOK_US);
    return status_ok();
}

static void make_statistics(struct ds_care *care, struct watched *watched)
{
    int64_t interval_us = care->options.statistics_interval_us;
    if (interval_us == 0 || steady_us(care) < watched->statistics_due_us)
        return;
    watched->statistics_due_us = steady_us(care) + interval_us;
    complain(care, watched, "no statistics of a database were made",
             ds_statistics_run(care->datastore, watched->open, care));
}

/* --- what expires --- */

/* Entities whose property is in no index are found by looking at all of them: once in so many
 * looks, and when there are other properties than before. */
enum { LOOKS_AT_INDEXES = 24, ARENA_BYTES = 16 << 20 };

static bool is_all_due(struct watched *watched, const struct vector *fields)
{
    const struct ds_field_name *items = fields->items;
    struct siphash hash;
    siphash_start(&hash);
    for (size_t i = 0; i < fields->count; i++)
        siphash_add(&hash, bytes_of(items[i].name));
    struct fingerprint print = siphash_finish(&hash);
    bool is_due = watched->ttl_looks == 0 || !fingerprint_equal(print, watched->ttl_fields);
    watched->ttl_fields = print;
    watched->ttl_looks = is_due ? 1 : (watched->ttl_looks + 1) % LOOKS_AT_INDEXES;
    return is_due;
}

static status delete_expired(struct ds_care *care, struct watched *watched, struct arena *arena)
{
    const struct ds_database database = {watched->project, watched->id};
    struct vector fields = {0}; /* of struct ds_field_name */
    int64_t deleted = 0;
    TRY(ds_ttl_list(care->datastore->control, &database, arena, &fields));
    if (fields.count == 0)
        return status_ok();
    status s = ds_ttl_run(care->datastore, watched->open, &fields, is_all_due(watched, &fields),
                          care, &deleted);
    if (deleted > 0)
        log_info(care->log, "expired entities were deleted", LOG_STR("project", watched->project),
                 LOG_STR("database", watched->id), LOG_INT("entities", deleted));
    return s;
}

static void look_for_expired(struct ds_care *care, struct watched *watched)
{
    int64_t interval_us = care->options.ttl_interval_us;
    if (interval_us == 0 || steady_us(care) < watched->ttl_due_us)
        return;
    watched->ttl_due_us = steady_us(care) + interval_us;
    struct arena *arena = arena_create(ARENA_BYTES);
    status s = arena == NULL ? status_out_of_memory() : delete_expired(care, watched, arena);
    complain(care, watched, "expired entities are kept for now", s);
    arena_destroy(arena);
}

/* --- the thread --- */

static void look_after(struct ds_care *care, struct watched *watched)
{
    if (watched->open == NULL)
        complain(care, watched, "a database cannot be looked after", begin_watch(care, watched));
    if (watched->open == NULL)
        return;
    ds_usage_keep(watched->open);
    look_for_expired(care, watched);
    make_statistics(care, watched);
}

static void look(struct ds_care *care)
{
    care->working_since_us = steady_us(care);
    collect_usage(care);
    status_ignore(cluster_list_tables(care->datastore->cluster, bytes_of(NAME_START), bytes_of(""),
                                      visit_table, care));
    for (struct watched *each = care->watched; each != NULL; each = each->next)
        look_after(care, each);
}

static void *run(void *argument)
{
    struct ds_care *care = argument;
    do {
        look(care);
    } while (thread_rest(&care->stop, SECOND_US));
    return NULL;
}

static void destroy(struct ds_care *care)
{
    while (care->watched != NULL) {
        struct watched *first = care->watched;
        care->watched = first->next;
        free_watched(first);
    }
    thread_stop_destroy(&care->stop);
    free(care);
}

status ds_care_start(struct datastore *datastore, const struct ds_care_options *options,
                     struct ds_care **out)
{
    struct ds_care *care = calloc(1, sizeof *care);
    *out = NULL;
    if (care == NULL)
        return status_out_of_memory();
    care->datastore = datastore;
    care->options = *options;
    care->log = control_log(datastore->control);
    thread_stop_init(&care->stop);
    status s = thread_start(&care->thread, "datastore-care", run, care);
    if (status_is_ok(s))
        *out = care;
    else
        destroy(care);
    return s;
}

void ds_care_stop(struct ds_care *care)
{
    if (care == NULL)
        return;
    thread_stop_now(&care->stop);
    pthread_join(care->thread, NULL);
    destroy(care);
}
