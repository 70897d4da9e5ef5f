/* See reload.h. */
#include "server/reload.h"

enum { PATHS = sizeof((struct reloadable *)0)->paths / sizeof(const char *) };

/* Whether anything has. Stamps are taken before the files are read: what changes in between is seen
 * next time. */
static bool note_changes(struct reloadable *reloadable)
{
    bool has_changed = false;
    for (int i = 0; i < PATHS; i++) {
        if (reloadable->paths[i] == NULL)
            continue;
        struct file_stamp stamp = file_stamp(reloadable->paths[i]);
        has_changed |= !file_stamp_equal(stamp, reloadable->stamps[i]);
        reloadable->stamps[i] = stamp;
    }
    return has_changed;
}

void reloadable_init(struct reloadable *reloadable)
{
    note_changes(reloadable);
}

static void count(const struct reloadable *reloadable, bool has_failed)
{
    enum metric total =
        has_failed ? METRIC_reload_failures_total_access : METRIC_reloads_total_access;
    metrics_add(reloadable->metrics, total + reloadable->kind, 1);
    metrics_set(reloadable->metrics, METRIC_reload_failed_access + reloadable->kind, has_failed);
}

void reloadable_check(struct reloadable *reloadable, bool always, const struct log *log)
{
    if (reloadable->reload == NULL || (!note_changes(reloadable) && !always))
        return;
    struct buffer changes = {0};
    status s = reloadable->reload(reloadable->context, &changes);
    count(reloadable, !status_is_ok(s));
    bytes changed = changes.size > 0 ? buffer_bytes(&changes) : bytes_of("none");
    if (status_is_ok(s))
        log_info(log, "files read again", LOG_STR("what", reloadable->what),
                 LOG_TEXT("changes", changed));
    else
        log_error(log, "cannot read files again; going on with what was read before",
                  LOG_STR("what", reloadable->what), LOG_STR("error", status_message(s)),
                  LOG_TEXT("changes", changed));
    status_free(s);
    buffer_free(&changes);
}
