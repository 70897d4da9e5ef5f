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
    if (keep->count == HISTORY_SUBJECTS_MOST)
        return status_make(STATUS_RESOURCE_EXHAUSTED, "there are too many subjects");
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

bool history_keep_note(struct history_keep *keep, const char *subject)
{
    struct history_subject_state *state;
    status s = add_subject(keep, subject, &state);
    bool is_kept = status_is_ok(s);
    if (is_kept)
        state->waits[HISTORY_TEN_SECONDS] = true;
    status_free(s);
    return is_kept;
}

/* Of a start. Too many cannot be there: so many were kept by whoever wrote them. */
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

/* Whether any level has a point of it. */
static status has_points(struct cluster *cluster, const char *subject, bool *out)
{
    *out = false;
    for (enum history_level level = 0; level < HISTORY_LEVELS && !*out; level++) {
        int64_t newest_us;
        TRY(history_store_newest(cluster, level, subject, &newest_us));
        *out = newest_us > 0;
    }
    return status_ok();
}

static void forget(struct history_keep *keep, size_t at)
{
    free(keep->subjects[at].name);
    keep->subjects[at] = keep->subjects[--keep->count];
}

static status remove_old(struct history_keep *keep, const struct folding *folding, int64_t now_us)
{
    for (size_t i = keep->count; i-- > 0;) {
        struct history_subject_state *subject = &keep->subjects[i];
        bool is_there = true;
        for (enum history_level level = 0; level < HISTORY_LEVELS; level++) {
            int64_t kept_us = history_level_kept_us(level, folding->retention_us);
            TRY(remove_level(folding->cluster, subject, level, now_us - kept_us, folding->arena));
            arena_reset(folding->arena);
        }
        if (i > 0) /* not the server */
            TRY(has_points(folding->cluster, subject->name, &is_there));
        if (!is_there && !subject->waits[HISTORY_TEN_SECONDS])
            forget(keep, i);
    }
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
