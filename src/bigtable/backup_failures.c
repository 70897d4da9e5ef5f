/* See backup_failures.h. */
#include "bigtable/backup_failures.h"

#include "base/limits.h"

#include <pthread.h>
#include <stdlib.h>

static const char OTHERS[] = "other";

/* Series: those of tables that are named, and one of the others. */
enum { MOST = LIMIT_TABLE_METRICS + 1 };

struct backup_failures {
    struct metrics *metrics;
    pthread_mutex_t lock; /* of what follows */
    struct metric_series series[MOST];
    char *tables[MOST]; /* owned */
    size_t count;
};

status backup_failures_create(struct metrics *metrics, struct backup_failures **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    (*out)->metrics = metrics;
    pthread_mutex_init(&(*out)->lock, NULL);
    return status_ok();
}

void backup_failures_destroy(struct backup_failures *failures)
{
    if (failures == NULL)
        return;
    for (size_t i = 0; i < failures->count; i++)
        free(failures->tables[i]);
    pthread_mutex_destroy(&failures->lock);
    free(failures);
}

static struct metric_series *find(struct backup_failures *failures, const char *table,
                                  const char *cause)
{
    for (size_t i = 0; i < failures->count; i++) {
        struct metric_series *at = &failures->series[i];
        if (strcmp(at->labels[0], table) == 0 && strcmp(at->labels[1], cause) == 0)
            return at;
    }
    return NULL;
}

/* NULL: no room, or no memory. */
static struct metric_series *add(struct backup_failures *failures, const char *table,
                                 const char *cause, size_t most)
{
    char *copy = failures->count < most ? strdup(table) : NULL;
    if (copy == NULL)
        return NULL;
    struct metric_series *at = &failures->series[failures->count];
    failures->tables[failures->count++] = copy;
    *at = (struct metric_series){.labels = {copy, cause}};
    return at;
}

static struct metric_series *find_or_add(struct backup_failures *failures, const char *table,
                                         const char *cause)
{
    struct metric_series *at = find(failures, table, cause);
    if (at == NULL)
        at = add(failures, table, cause, LIMIT_TABLE_METRICS);
    if (at == NULL)
        at = find(failures, OTHERS, OTHERS);
    return at != NULL ? at : add(failures, OTHERS, OTHERS, MOST);
}

/* A failure that cannot be shown for want of memory is shown with the next one. */
void backup_failures_note(struct backup_failures *failures, const char *table, bool by_policy)
{
    metrics_add(failures->metrics, METRIC_backup_failures_total, 1);
    pthread_mutex_lock(&failures->lock);
    struct metric_series *at =
        find_or_add(failures, table != NULL ? table : OTHERS, by_policy ? "policy" : "request");
    if (at != NULL)
        at->value++;
    status_ignore(metrics_replace(failures->metrics, METRIC_BY_table_backup_failures_total,
                                  failures->series, failures->count));
    pthread_mutex_unlock(&failures->lock);
}
