/* Reading: see history.h. The finest level that reaches back, or the coarsest that is fine enough;
 * what it has not got yet, since it is folded behind the others, comes from these. */
#include "base/check.h"
#include "base/vector.h"
#include "history/history.h"

enum { RECALL_MEMORY = 1 << 20 };

/* Behind the newest point of a level comes what a finer one has. */
static status read_levels(struct cluster *cluster, enum history_level coarsest, const char *subject,
                          const struct history_question *question, struct arena *arena,
                          struct history_points *out)
{
    struct vector all = {0};
    int64_t from_us = question->from_us;
    for (int level = (int)coarsest; level >= 0; level--) {
        struct history_points found;
        TRY(history_store_read(cluster, (enum history_level)level, subject, from_us,
                               question->until_us, arena, &found.items, &found.count));
        for (size_t i = 0; i < found.count; i++)
            TRY(vector_add(&all, arena, &found.items[i], sizeof found.items[i]));
        if (found.count > 0)
            from_us = found.items[found.count - 1].from_us +
                      history_level_span_us((enum history_level)level);
    }
    *out = (struct history_points){all.items, all.count};
    return status_ok();
}

/* `now_us`: when the newest point may be of. */
static enum history_level level_of(const struct history_question *question, int64_t wanted_us,
                                   int64_t now_us)
{
    enum history_level level = HISTORY_TEN_SECONDS;
    while (level + 1 < HISTORY_LEVELS &&
           (history_level_span_us(level + 1) <= wanted_us ||
            question->from_us < now_us - history_level_kept_us(level, INT64_MAX)))
        level++;
    return level;
}

static status read_server(struct cluster *cluster, const struct history_question *question,
                          enum history_level level, struct arena *arena, struct history_answer *out)
{
    struct history_points points;
    TRY(read_levels(cluster, level, HISTORY_SERVER_NAME, question, arena, &points));
    return history_fold(&points, out->step_us, NULL, arena, &out->points);
}

static status look_for_points(struct cluster *cluster, const char *subject, bool *is_known)
{
    int64_t newest_us;
    TRY(history_store_newest_of_all(cluster, subject, &newest_us));
    *is_known = newest_us > 0;
    return status_ok();
}

/* Of a table that has no points at all it is not known that nothing came. */
static status read_table(struct cluster *cluster, const struct history_question *question,
                         enum history_level level, struct arena *arena, struct history_answer *out)
{
    struct history_points server = out->points, points, folded;
    out->points = (struct history_points){0};
    TRY(look_for_points(cluster, question->table, &out->is_known));
    if (!out->is_known)
        return status_ok();
    TRY(read_levels(cluster, level, question->table, question, arena, &points));
    TRY(history_fold(&points, out->step_us, &server, arena, &folded));
    return history_fill(&folded, &server, arena, &out->points);
}

status history_read(struct cluster *cluster, const struct history_question *question,
                    struct arena *arena, struct history_answer *out)
{
    int64_t wanted_us = (question->until_us - question->from_us) / (int64_t)question->most;
    DCHECK(question->most > 0 && question->from_us >= 0);
    enum history_level level = level_of(question, wanted_us, question->until_us);
    int64_t span_us = history_level_span_us(level);
    *out = (struct history_answer){.step_us = (wanted_us + span_us - 1) / span_us * span_us,
                                   .is_known = true};
    if (out->step_us < span_us)
        out->step_us = span_us;
    TRY(read_server(cluster, question, level, arena, out));
    return question->table == NULL ? status_ok() : read_table(cluster, question, level, arena, out);
}

/* The newest point's, of whichever level. */
static status recall_from(struct cluster *cluster, enum history_line line, struct arena *arena,
                          double *value)
{
    struct history_points points = {0};
    int64_t newest_us;
    TRY(history_store_newest_of_all(cluster, HISTORY_SERVER_NAME, &newest_us));
    for (enum history_level level = 0; level < HISTORY_LEVELS && newest_us > 0 && points.count == 0;
         level++)
        TRY(history_store_read(cluster, level, HISTORY_SERVER_NAME, newest_us,
                               newest_us + history_level_span_us(level), arena, &points.items,
                               &points.count));
    if (points.count > 0)
        *value = points.items[points.count - 1].values[line];
    return status_ok();
}

status history_recall(struct cluster *cluster, enum history_line line, double *value)
{
    struct arena *arena = arena_create(RECALL_MEMORY);
    *value = NAN;
    if (arena == NULL)
        return status_out_of_memory();
    status s = recall_from(cluster, line, arena, value);
    arena_destroy(arena);
    return s;
}
