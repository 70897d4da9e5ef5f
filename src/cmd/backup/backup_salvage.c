/* See backup_salvage.h. */
#include "cmd/backup/backup_salvage.h"

#include "backup/unfinished.h"
#include "base/condition.h"
#include "server/offline_cluster.h"
#include "store/old_data_words.h"

#include <stdio.h>
#include <string.h>

/* --- what is told --- */

status backup_salvage_tell_closed(void *context, const struct lost_rows *lost)
{
    struct backup_salvage *salvage = context;
    salvage->named++;
    printf("out of service: %s\n", lost->words);
    return status_ok();
}

static void tell_lost(struct backup_salvage *salvage, const char *words)
{
    salvage->named++;
    printf("lost: %s\n", words);
}

/* Tells what the log or the catalog has lost. */
static void tell_condition(struct backup_salvage *salvage, struct cluster *cluster)
{
    struct condition_view view;
    condition_look(cluster_condition(cluster), &view);
    for (size_t i = 0; i < view.count; i++)
        if (view.reasons[i].reason == REASON_salvaged)
            tell_lost(salvage, view.reasons[i].text);
}

/* Nothing in the directory knows these: without a list of files none of them is missing. */
static void tell_files(struct backup_salvage *salvage, const struct whole_harm *harm)
{
    for (const struct whole_harmed *one = harm->first; one != NULL; one = one->next) {
        if (!one->is_table)
            continue;
        salvage->named++;
        printf("lost: what the table file %s had, and no other file has: %s\n", one->name,
               one->wrong);
    }
}

/* The words begin with advice for a server that would start there. */
static void tell_old_data(struct backup_salvage *salvage, const char *words)
{
    const char *rest = words == NULL ? NULL : strstr(words, STORE_OLD_DATA_ADVICE);
    tell_lost(salvage, "which tables' files count: what all of them have is taken for true, and "
                       "what was deleted or overwritten may be there again");
    if (rest != NULL && strncmp(rest + strlen(STORE_OLD_DATA_ADVICE), "; ", 2) == 0)
        tell_lost(salvage, rest + strlen(STORE_OLD_DATA_ADVICE) + 2);
}

/* --- without a list of tables --- */

/* The log would give a server's advice. */
static status make_of_all(struct backup_salvage *salvage, const char *directory)
{
    const struct log silent = {.fd = -1, .level = LOG_ERROR, .clock = clock_system()};
    struct offline_cluster offline;
    TRY(offline_cluster_open(directory, "restore", clock_system(), &silent, true, &offline));
    tell_old_data(salvage, cluster_old_data(offline.cluster));
    offline_cluster_close(&offline);
    return store_accept_old_data(directory);
}

/* What it was made of is in the place still. */
static status remove_replaced(const char *directory)
{
    struct buffer path = {0};
    buffer_append_format(&path, "%s/" STORE_REPLACED_DIRECTORY "%c", directory, 0);
    status s = path.failed ? status_out_of_memory()
                           : unfinished_remove(files_of_system(), (const char *)path.data);
    buffer_free(&path);
    return s;
}

static status accept_old_data(struct backup_salvage *salvage, const char *directory,
                              const struct whole_harm *harm)
{
    const struct store_options options = offline_store_options(directory, salvage->log);
    enum store_old_data_state state;
    TRY(store_look_for_old_data(&options, NULL, &state));
    if (state == STORE_OLD_DATA_NONE)
        return status_ok();
    if (!salvage->accepts_old_data)
        return status_make(STATUS_DATA_LOSS,
                           "what says which of the backup's table files count (MANIFEST and its "
                           "copy) is damaged in the place: nothing is restored. With --salvage "
                           "--accept-old-data what all of them have is taken for true, which may "
                           "bring back what was deleted or overwritten. Another backup may be "
                           "whole: name it");
    tell_files(salvage, harm);
    TRY(make_of_all(salvage, directory));
    return remove_replaced(directory);
}

/* --- of all kinds --- */

static status tell_all(struct backup_salvage *salvage, struct cluster *cluster)
{
    TRY(cluster_look_for_damage(cluster));
    tell_condition(salvage, cluster);
    return cluster_list_damage(cluster, backup_salvage_tell_closed, salvage);
}

status backup_salvage(void *context, const char *directory, const struct whole_harm *harm)
{
    struct backup_salvage *salvage = context;
    struct offline_cluster offline;
    TRY(accept_old_data(salvage, directory, harm));
    TRY(offline_cluster_salvage(directory, "restore", clock_system(), salvage->log, &offline));
    status s = tell_all(salvage, offline.cluster);
    offline_cluster_close(&offline);
    return s;
}
