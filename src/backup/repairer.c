/* See repairer.h. */
#include "backup/repairer.h"

#include "aws/bucket.h"
#include "backup/runner.h"
#include "backup/whole_repair.h"
#include "cluster/checkpoint.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char SCRATCH_DIRECTORY[] = "repairing";

struct whole_repairer {
    struct whole_repairer_options options;
    struct buffer scratch; /* where what is taken is read from, with a NUL */
    pthread_mutex_t busy;  /* the thread that repairs has it */
};

/* --- a table --- */

struct filling {
    const struct repair_order *order;
    const struct whole_repair *repair;
};

static status tell(void *context, const struct lost_rows *lost)
{
    const struct filling *filling = context;
    struct lost_rows told = *lost;
    struct buffer words = {0};
    uint64_t count;
    status s = whole_repair_describe(filling->repair, lost, &words, &count);
    told.words = (const char *)words.data;
    if (status_is_ok(s))
        s = filling->order->tell(filling->order->context, &told, count);
    buffer_free(&words);
    return s;
}

static void note_former(const struct whole_repair *repair, struct repair_former *former)
{
    const char *name = whole_repair_name(repair, &former->instant_us);
    snprintf(former->name, sizeof former->name, "%s", name);
}

/* Without a source nothing was out of service: what has been found since is not given up. */
static status fill(struct whole_repair *repair, const struct repair_order *order,
                   struct repair_former *former)
{
    struct filling filling = {order, repair};
    struct table_repair_options how = {.is_trial = order->is_trial,
                                       .lost = tell,
                                       .context = &filling,
                                       .heal = order->heal,
                                       .heal_context = order->heal_context};
    TRY(whole_repair_begin_table(repair, order->table, false, &how.source));
    if (how.source == NULL)
        return status_ok();
    note_former(repair, former);
    return table_repair(order->table, &how);
}

/* --- from a place --- */

static status repair_from(const struct whole_repairer *repairer, const struct repair_order *order,
                          struct place *place, struct repair_former *former)
{
    char server[STORE_IDENTITY_SIZE];
    struct whole_work work = {.clock = cluster_clock(repairer->options.cluster),
                              .bytes_per_second = repairer->options.bytes_per_second,
                              .goes_on = order->goes_on,
                              .context = order->context};
    const struct whole_repair_options options = {.place = place,
                                                 .name = order->backup[0] == '\0' ? NULL
                                                                                  : order->backup,
                                                 .server = server,
                                                 .files = files_of_system(),
                                                 .scratch = (const char *)repairer->scratch.data,
                                                 .work = &work};
    struct whole_repair *repair;
    TRY(cluster_identity(repairer->options.cluster, server));
    TRY(whole_repair_create(&options, &repair));
    status s = fill(repair, order, former);
    whole_repair_destroy(repair);
    return s;
}

static status check_place(const struct whole_repairer *repairer, const char *place)
{
    if (whole_place_is_allowed(repairer->options.places, place))
        return status_ok();
    return status_make(STATUS_PERMISSION_DENIED, "%s is in none of the server's --backup-places",
                       place);
}

static status open_and_repair(const struct whole_repairer *repairer,
                              const struct repair_order *order, struct repair_former *former)
{
    struct place *place;
    TRY(place_of_name_with_key(files_of_system(), order->place, repairer->options.key_file,
                               &place));
    status s = repair_from(repairer, order, place, former);
    place_close(place);
    return s;
}

static status repair(void *context, const struct repair_order *order, struct repair_former *former)
{
    struct whole_repairer *repairer = context;
    *former = (struct repair_former){.instant_us = 0};
    TRY(check_place(repairer, order->place));
    if (pthread_mutex_trylock(&repairer->busy) != 0)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "a table is being repaired from a backup: one at a time");
    status s = open_and_repair(repairer, order, former);
    pthread_mutex_unlock(&repairer->busy);
    return s;
}

struct repair_source whole_repairer_source(struct whole_repairer *repairer)
{
    return (struct repair_source){.repair = repair, .context = repairer};
}

/* --- life --- */

status whole_repairer_create(const struct whole_repairer_options *options,
                             struct whole_repairer **out)
{
    struct whole_repairer *repairer = *out = calloc(1, sizeof *repairer);
    if (repairer == NULL)
        return status_out_of_memory();
    repairer->options = *options;
    pthread_mutex_init(&repairer->busy, NULL);
    buffer_append_format(&repairer->scratch, "%s/%s%c", options->data_directory, SCRATCH_DIRECTORY,
                         0);
    return repairer->scratch.failed ? status_out_of_memory()
                                    : files_remove_flat_directory(
                                          files_of_system(), (const char *)repairer->scratch.data);
}

void whole_repairer_destroy(struct whole_repairer *repairer)
{
    if (repairer == NULL)
        return;
    pthread_mutex_destroy(&repairer->busy);
    buffer_free(&repairer->scratch);
    free(repairer);
}
