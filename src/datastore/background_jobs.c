/* See background_work.h. Only the thread touches what is watched. */
#include "datastore/background_jobs.h"

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

struct ds_background {
    struct datastore *datastore;
    struct ds_background_options options;
    const struct log *log;
    struct watched *watched;
    int64_t working_since_us; /* clock_steady_us */
    pthread_t thread;
    struct thread_stop stop;
};

static int64_t steady_us(const struct ds_background *background)
{
    return clock_steady_us(background->datastore->clock);
}

/* --- resting --- */

static void collect_usage(struct ds_background *background)
{
    if (background->datastore->usage != NULL)
        ds_usage_collect(background->datastore->usage);
}

status ds_background_rest(struct ds_background *background)
{
    int64_t worked_us = steady_us(background) - background->working_since_us;
    bool goes_on = thread_rest(&background->stop, worked_us > 0 ? worked_us : 0);
    background->working_since_us = steady_us(background);
    collect_usage(background);
    return goes_on ? status_ok() : status_make(STATUS_CANCELLED, "The server stops.");
}

/* --- which databases there are --- */

static struct watched *find(const struct ds_background *background, bytes project, bytes id)
{
    struct watched *at = background->watched;
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
static void watch(struct ds_background *background, bytes project, bytes id)
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
    made->next = background->watched;
    background->watched = made;
}

/* `projects/P/databases/D`; Bigtable's tables have other names. */
static bool visit_table(void *context, struct table *table)
{
    struct ds_background *background = context;
    const char *project = table_name(table) + strlen(NAME_START);
    const char *end = strchr(project, '/');
    if (end == NULL || strncmp(end, NAME_MIDDLE, strlen(NAME_MIDDLE)) != 0)
        return true;
    const char *id = end + strlen(NAME_MIDDLE);
    bytes of = bytes_make((const uint8_t *)project, (size_t)(end - project));
    bytes name = strcmp(id, "(default)") == 0 ? bytes_of("") : bytes_of(id);
    if (find(background, of, name) == NULL)
        watch(background, of, name);
    return true;
}

static void complain(const struct ds_background *background, const struct watched *watched,
                     const char *what, status s)
{
    if (!status_is_ok(s) && s.code != STATUS_CANCELLED)
        log_warn(background->log, what, LOG_STR("project", watched->project),
                 LOG_STR("database", watched->id), LOG_STR("cause", status_message(s)));
    status_free(s);
}

/* --- statistics --- */

static int64_t shorter(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* When it is seen first: one interval after the last ones, which may be of before the start. */
static status begin_watch(struct ds_background *background, struct watched *watched)
{
    const struct ds_database database = {watched->project, watched->id};
    int64_t interval_us = background->options.statistics_interval_us;
    int64_t made_us, wait_us = shorter(interval_us, FIRST_STATISTICS_US);
    TRY(ds_database_visit(background->datastore, &database, &watched->open));
    if (watched->open == NULL)
        return status_ok();
    TRY(ds_statistics_time(watched->open, &made_us));
    if (made_us > 0)
        wait_us = shorter(interval_us,
                          made_us + interval_us - cluster_wall_us(background->datastore->cluster));
    watched->statistics_due_us = steady_us(background) + wait_us;
    watched->ttl_due_us =
        steady_us(background) + shorter(background->options.ttl_interval_us, FIRST_LOOK_US);
    return status_ok();
}

static void make_statistics(struct ds_background *background, struct watched *watched)
{
    int64_t interval_us = background->options.statistics_interval_us;
    if (interval_us == 0 || steady_us(background) < watched->statistics_due_us)
        return;
    watched->statistics_due_us = steady_us(background) + interval_us;
    complain(background, watched, "no statistics of a database were made",
             ds_statistics_run(background->datastore, watched->open, background));
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

static status delete_expired(struct ds_background *background, struct watched *watched,
                             struct arena *arena)
{
    const struct ds_database database = {watched->project, watched->id};
    struct vector fields = {0}; /* of struct ds_field_name */
    int64_t deleted = 0;
    TRY(ds_ttl_list(background->datastore->control, &database, arena, &fields));
    if (fields.count == 0)
        return status_ok();
    status s = ds_ttl_run(background->datastore, watched->open, &fields,
                          is_all_due(watched, &fields), background, &deleted);
    if (deleted > 0)
        log_info(background->log, "expired entities were deleted",
                 LOG_STR("project", watched->project), LOG_STR("database", watched->id),
                 LOG_INT("entities", deleted));
    return s;
}

static void look_for_expired(struct ds_background *background, struct watched *watched)
{
    int64_t interval_us = background->options.ttl_interval_us;
    if (interval_us == 0 || steady_us(background) < watched->ttl_due_us)
        return;
    watched->ttl_due_us = steady_us(background) + interval_us;
    struct arena *arena = arena_create(ARENA_BYTES);
    status s = arena == NULL ? status_out_of_memory() : delete_expired(background, watched, arena);
    complain(background, watched, "expired entities are kept for now", s);
    arena_destroy(arena);
}

/* --- the thread --- */

static void look_after(struct ds_background *background, struct watched *watched)
{
    if (watched->open == NULL)
        complain(background, watched, "a database cannot be looked after",
                 begin_watch(background, watched));
    if (watched->open == NULL)
        return;
    ds_usage_keep(watched->open);
    look_for_expired(background, watched);
    make_statistics(background, watched);
}

static void look(struct ds_background *background)
{
    background->working_since_us = steady_us(background);
    collect_usage(background);
    status_ignore(cluster_list_tables(background->datastore->cluster, bytes_of(NAME_START),
                                      bytes_of(""), visit_table, background));
    for (struct watched *each = background->watched; each != NULL; each = each->next)
        look_after(background, each);
}

static void *run(void *argument)
{
    struct ds_background *background = argument;
    do {
        look(background);
    } while (thread_rest(&background->stop, SECOND_US));
    return NULL;
}

static void destroy(struct ds_background *background)
{
    while (background->watched != NULL) {
        struct watched *first = background->watched;
        background->watched = first->next;
        free_watched(first);
    }
    thread_stop_destroy(&background->stop);
    free(background);
}

status ds_background_start(struct datastore *datastore, const struct ds_background_options *options,
                           struct ds_background **out)
{
    struct ds_background *background = calloc(1, sizeof *background);
    *out = NULL;
    if (background == NULL)
        return status_out_of_memory();
    background->datastore = datastore;
    background->options = *options;
    background->log = control_log(datastore->control);
    thread_stop_init(&background->stop);
    status s = thread_start(&background->thread, "datastore-care", run, background);
    if (status_is_ok(s))
        *out = background;
    else
        destroy(background);
    return s;
}

void ds_background_stop(struct ds_background *background)
{
    if (background == NULL)
        return;
    thread_stop_now(&background->stop);
    pthread_join(background->thread, NULL);
    destroy(background);
}
