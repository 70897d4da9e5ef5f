/* See history_keep.h. */
#include "history/history_keep.h"

#include "base/check.h"
#include "history/fold.h"

#include <stdlib.h>

enum { FOLD_MEMORY = 64 << 20, REMOVED_AT_ONCE = 256 };

void history_keep_free(struct history_keep *keep)
{
    for (size_t i = 0; i < keep->count; i++)
        free(keep->subjects[i].name);
    free(keep->subjects);
    *keep = (struct history_keep){0};
}

/* --- subjects --- */

static struct history_subject_state *find(const struct history_keep *keep, const char *name)
{
    for (size_t i = 0; i < keep->count; i++)
        if (strcmp(keep->subjects[i].name, name) == 0)
            return &keep->subjects[i];
    return NULL;
}

static status add_subject(struct history_keep *keep, const char *name,
                          struct history_subject_state **out)
{
    *out = find(keep, name);
    if (*out != NULL)
        return status_ok();
    struct history_subject_state *subjects =
        realloc(keep->subjects, (keep->count + 1) * sizeof *subjects);
    if (subjects == NULL)
        return status_out_of_memory();
    keep->subjects = subjects;
    char *copy = bytes_to_string(bytes_of(name));
    if (copy == NULL)
        return status_out_of_memory();
    *out = &subjects[keep->count++];
    **out = (struct history_subject_state){.name = copy};
    return status_ok();
}

static void forget(struct history_keep *keep, size_t at)
{
    free(keep->subjects[at].name);
    keep->subjects[at] = keep->subjects[--keep->count];
    keep->full_us = 0;
}

/* Of a start. However many there are: what is not known neither folds nor goes. */
static status note_found(void *context, const char *subject)
{
    struct history_keep *keep = context;
    struct history_subject_state *state;
    TRY(add_subject(keep, subject, &state));
    for (enum history_level level = 0; level < HISTORY_LEVELS; level++)
        state->waits[level] = true;
    return status_ok();
}

static status load(struct history_keep *keep, struct cluster *cluster)
{
    struct history_subject_state *server;
    if (keep->is_loaded)
        return status_ok();
    TRY(add_subject(keep, HISTORY_SERVER_NAME, &server)); /* it folds first */
    for (enum history_level level = 0; level < HISTORY_LEVELS; level++)
        TRY(history_store_subjects(cluster, level, note_found, keep));
    keep->is_loaded = true;
    return status_ok();
}

/* --- folding --- */

/* A level's points become those of the next. */
struct folding {
    struct cluster *cluster;
    enum history_level level;
    int64_t until_us; /* a multiple of the next level's span */
    int64_t retention_us;
    struct arena *arena;
};

/* What has not been folded yet. */
static status read_unfolded(const struct folding *folding, const char *subject,
                            struct history_points *out)
{
    enum history_level next = folding->level + 1;
    int64_t newest_us;
    *out = (struct history_points){0};
    TRY(history_store_newest(folding->cluster, next, subject, &newest_us));
    return history_store_read(folding->cluster, folding->level, subject,
                              newest_us == 0 ? 0 : newest_us + history_level_span_us(next),
                              folding->until_us, folding->arena, &out->items, &out->count);
}

/* How much the server saw of the steps of these points. */
static status read_seen(const struct folding *folding, const struct history_points *points,
                        struct history_points *out)
{
    *out = (struct history_points){0};
    if (points->count == 0)
        return status_ok();
    int64_t span_us = history_level_span_us(folding->level + 1);
    int64_t first_us = points->items[0].from_us;
    return history_store_read(folding->cluster, folding->level + 1, HISTORY_SERVER_NAME,
                              first_us - first_us % span_us, folding->until_us, folding->arena,
                              &out->items, &out->count);
}

static status write_folded(const struct folding *folding, const char *subject,
                           const struct history_points *folded)
{
    struct own_batch batch = {.arena = folding->arena};
    for (size_t i = 0; i < folded->count; i++) {
        status s = history_batch_put(&batch, folding->level + 1, subject, &folded->items[i]);
        if (!status_is_ok(s)) {
            own_batch_drop(&batch);
            return s;
        }
    }
    return history_batch_write(&batch, folding->cluster);
}

static status fold_subject(const struct folding *folding, struct history_subject_state *subject)
{
    struct history_points points, seen, folded;
    bool is_server = strcmp(subject->name, HISTORY_SERVER_NAME) == 0;
    TRY(read_unfolded(folding, subject->name, &points));
    TRY(read_seen(folding, &points, &seen));
    TRY(history_fold(&points, history_level_span_us(folding->level + 1), is_server ? NULL : &seen,
                     folding->arena, &folded));
    TRY(write_folded(folding, subject->name, &folded));
    subject->waits[folding->level] = false;
    subject->waits[folding->level + 1] = subject->waits[folding->level + 1] || folded.count > 0;
    return status_ok();
}

static status fold_all(struct history_keep *keep, struct folding *folding)
{
    for (size_t i = 0; i < keep->count; i++) {
        struct history_subject_state *subject = &keep->subjects[i];
        if (!subject->waits[folding->level])
            continue;
        TRY(fold_subject(folding, subject));
        arena_reset(folding->arena);
    }
    return status_ok();
}

/* Whether a span of the next level has ended since. */
static bool is_due(const struct history_keep *keep, enum history_level level, int64_t until_us)
{
    return until_us > keep->folded_us[level];
}

static status fold_level(struct history_keep *keep, struct folding *folding, int64_t now_us)
{
    int64_t span_us = history_level_span_us(folding->level + 1);
    folding->until_us = now_us - now_us % span_us;
    if (!is_due(keep, folding->level, folding->until_us))
        return status_ok();
    TRY(fold_all(keep, folding));
    keep->folded_us[folding->level] = folding->until_us;
    return status_ok();
}

/* --- what is too old --- */

struct removal {
    struct cluster *cluster;
    enum history_level level;
    const char *subject;
    struct own_batch batch;
};

static status remove_one(void *context, int64_t from_us)
{
    struct removal *removal = context;
    TRY(history_batch_remove(&removal->batch, removal->level, removal->subject, from_us));
    return removal->batch.rows.count < REMOVED_AT_ONCE
               ? status_ok()
               : history_batch_write(&removal->batch, removal->cluster);
}

static status remove_level(struct cluster *cluster, struct history_subject_state *subject,
                           enum history_level level, int64_t before_us, struct arena *arena)
{
    struct removal removal = {cluster, level, subject->name, {.arena = arena}};
    if (before_us <= subject->removed_us[level])
        return status_ok();
    status s = history_store_times(cluster, level, subject->name, subject->removed_us[level],
                                   before_us, remove_one, &removal);
    if (status_is_ok(s))
        s = history_batch_write(&removal.batch, cluster);
    own_batch_drop(&removal.batch);
    if (status_is_ok(s))
        subject->removed_us[level] = before_us;
    return s;
}

static status remove_old(struct history_keep *keep, const struct folding *folding, int64_t now_us)
{
    for (size_t i = keep->count; i-- > 0;) {
        struct history_subject_state *subject = &keep->subjects[i];
        int64_t newest_us = INT64_MAX;
        for (enum history_level level = 0; level < HISTORY_LEVELS; level++) {
            int64_t kept_us = history_level_kept_us(level, folding->retention_us);
            TRY(remove_level(folding->cluster, subject, level, now_us - kept_us, folding->arena));
            arena_reset(folding->arena);
        }
        if (i > 0) /* not the server */
            TRY(history_store_newest_of_all(folding->cluster, subject->name, &newest_us));
        if (newest_us == 0 && !subject->waits[HISTORY_TEN_SECONDS])
            forget(keep, i);
    }
    return status_ok();
}

/* --- places --- */

static status is_gone(struct cluster *cluster, const char *name, bool *out)
{
    struct table *table;
    status s = cluster_table(cluster, bytes_of(name), &table);
    *out = s.code == STATUS_NOT_FOUND;
    if (status_is_ok(s))
        table_release(table);
    if (!*out)
        return s;
    status_free(s);
    return status_ok();
}

/* Of the tables that are gone the one that was silent longest; 0, which is the server: there is
 * none. One that has a point in the batch that is being made stays: it would come after. */
static status find_silent(const struct history_keep *keep, struct cluster *cluster, int64_t from_us,
                          size_t *out)
{
    *out = 0;
    for (size_t i = 1; i < keep->count; i++) {
        struct history_subject_state *subject = &keep->subjects[i];
        bool is_free;
        TRY(is_gone(cluster, subject->name, &is_free));
        if (!is_free)
            continue;
        if (subject->newest_us == 0)
            TRY(history_store_newest_of_all(cluster, subject->name, &subject->newest_us));
        bool is_older = *out == 0 || subject->newest_us < keep->subjects[*out].newest_us;
        if (is_older && subject->newest_us < from_us)
            *out = i;
    }
    return status_ok();
}

static status remove_all(struct cluster *cluster, struct history_subject_state *subject)
{
    status s = status_ok();
    struct arena *arena = arena_create(FOLD_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    for (enum history_level level = 0; level < HISTORY_LEVELS && status_is_ok(s); level++) {
        int64_t end_us = subject->newest_us + history_level_span_us(level);
        s = remove_level(cluster, subject, level, end_us, arena);
        arena_reset(arena);
    }
    arena_destroy(arena);
    return s;
}

/* What it fails to free stays known: no subject has points that nobody removes. */
static status make_place(struct history_keep *keep, struct cluster *cluster, int64_t from_us)
{
    while (keep->count >= HISTORY_SUBJECTS_MOST && keep->full_us != from_us) {
        size_t silent;
        TRY(find_silent(keep, cluster, from_us, &silent));
        if (silent == 0) {
            keep->full_us = from_us;
            return status_ok();
        }
        TRY(remove_all(cluster, &keep->subjects[silent]));
        forget(keep, silent);
    }
    return status_ok();
}

status history_keep_note(struct history_keep *keep, struct cluster *cluster, const char *subject,
                         int64_t from_us, bool *is_kept)
{
    struct history_subject_state *state;
    *is_kept = false;
    TRY(load(keep, cluster));
    bool is_known = find(keep, subject) != NULL;
    if (!is_known)
        TRY(make_place(keep, cluster, from_us));
    if (!is_known && keep->count >= HISTORY_SUBJECTS_MOST)
        return status_ok();
    TRY(add_subject(keep, subject, &state));
    state->waits[HISTORY_TEN_SECONDS] = true;
    state->newest_us = from_us;
    *is_kept = true;
    return status_ok();
}

/* --- what is due --- */

static status run(struct history_keep *keep, struct folding *folding, int64_t now_us)
{
    int64_t hour_us = now_us - now_us % history_level_span_us(HISTORY_HOURS);
    TRY(load(keep, folding->cluster));
    folding->level = HISTORY_TEN_SECONDS;
    TRY(fold_level(keep, folding, now_us));
    folding->level = HISTORY_MINUTES;
    TRY(fold_level(keep, folding, now_us));
    if (!is_due(keep, HISTORY_HOURS, hour_us))
        return status_ok();
    TRY(remove_old(keep, folding, now_us));
    keep->folded_us[HISTORY_HOURS] = hour_us;
    return status_ok();
}

status history_keep_run(struct history_keep *keep, struct cluster *cluster, int64_t retention_us,
                        int64_t now_us)
{
    struct folding folding = {
        .cluster = cluster, .retention_us = retention_us, .arena = arena_create(FOLD_MEMORY)};
    if (folding.arena == NULL)
        return status_out_of_memory();
    status s = run(keep, &folding, now_us);
    arena_destroy(folding.arena);
    return s;
}
