/* Rules over what is kept: versions that are written too often, or that nothing removes, and what
 * was deleted and still takes space.
 *
 * A column's versions are seen as far as garbage collection has left them: what a rule has removed
 * gives no finding. */
#include "advisor/advice_private.h"

#include <stdlib.h>

/* Cells of one column of a row, the newest first. */
struct column {
    const struct advice_row *row;
    const struct advice_cell *cells;
    size_t count;
};

/* Steps to the next column; `cells` is NULL before the first. False: there is none. */
static bool next_column(struct column *column)
{
    const struct advice_row *row = column->row;
    if (row->cell_count == 0)
        return false;
    const struct advice_cell *end = row->cells + row->cell_count;
    const struct advice_cell *at =
        column->cells == NULL ? row->cells : column->cells + column->count;
    column->cells = at;
    for (column->count = 0; at + column->count < end; column->count++) {
        const struct advice_cell *cell = at + column->count;
        if (cell->family != at->family || !bytes_equal(cell->qualifier, at->qualifier))
            break;
    }
    return column->count > 0;
}

/* --- cells that are rewritten --- */

/* The most versions within an hour. */
static size_t versions_within_an_hour(const struct column *column)
{
    size_t most = 0, oldest = 0;
    for (size_t newest = 0; newest < column->count; newest++) {
        int64_t at = column->cells[newest].timestamp_us;
        while (oldest < column->count && column->cells[oldest].timestamp_us >= FIRST_TIME_US &&
               at - column->cells[oldest].timestamp_us <= HOUR_US)
            oldest++;
        if (oldest > newest && oldest - newest > most)
            most = oldest - newest;
    }
    return most;
}

static bool has_aggregates(const struct advice_observations *seen)
{
    for (size_t i = 0; i < seen->family_count; i++)
        if (seen->families[i].is_aggregate)
            return true;
    return false;
}

/* Counts do not tell which family was written, and aggregates are made for many writes. */
status advise_on_counted_rewrites(struct advisor *advisor)
{
    const struct advice_rewritten *row = &advisor->seen->rewritten;
    struct advice_finding *finding;
    if (row->writes < ROW_WRITES || has_aggregates(advisor->seen))
        return status_ok();
    TRY(advise(advisor, RULE_cell_rewrites, &finding, "One row was written %llu times or more %s.",
               (unsigned long long)row->writes, advisor->period));
    finding_add_key(finding, row->key);
    return status_ok();
}

static status advise_on_rewrites(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    struct column worst = {0};
    size_t most = 0, rows = 0;
    for (size_t i = 0; i < seen->row_count; i++) {
        struct column column = {.row = &seen->rows[i]};
        bool is_rewritten = false;
        while (next_column(&column)) {
            size_t versions = seen->families[column.cells->family].is_aggregate
                                  ? 0
                                  : versions_within_an_hour(&column);
            is_rewritten |= versions >= REWRITES;
            if (versions > most) {
                most = versions;
                worst = column;
            }
        }
        rows += is_rewritten;
    }
    if (rows == 0)
        return advise_on_counted_rewrites(advisor);
    TRY(advise(advisor, RULE_cell_rewrites, &finding,
               "%zu of %zu sampled rows have such a column; one in the family %s has %zu versions "
               "within an hour.",
               rows, seen->row_count, seen->families[worst.cells->family].name, most));
    finding_add_key(finding, worst.row->key);
    return status_ok();
}

/* --- garbage collection --- */

struct kept {
    size_t columns;
    size_t cells;
    size_t most; /* of one column */
    const struct advice_row *row_of_most;
    size_t old; /* replaced, and older than a year */
};

static double versions_on_average(const struct kept *kept)
{
    return kept->columns == 0 ? 0 : (double)kept->cells / (double)kept->columns;
}

static void count_column(const struct column *column, int64_t now_us, struct kept *out)
{
    out->columns++;
    out->cells += column->count;
    if (column->count > out->most) {
        out->most = column->count;
        out->row_of_most = column->row;
    }
    for (size_t i = 1; i < column->count; i++) {
        int64_t at = column->cells[i].timestamp_us;
        out->old += at >= FIRST_TIME_US && now_us - at > YEAR_US;
    }
}

static void count_versions(const struct advice_observations *seen, struct kept *by_family)
{
    for (size_t i = 0; i < seen->row_count; i++)
        for (struct column column = {.row = &seen->rows[i]}; next_column(&column);)
            count_column(&column, seen->now_us, &by_family[column.cells->family]);
}

static bool piles_up(const struct advice_family *family, const struct kept *kept)
{
    return !family->has_rule && !family->is_aggregate && kept->columns >= COLUMNS_LEAST &&
           (kept->most >= VERSIONS_WITHOUT_RULE || kept->cells >= 2 * kept->columns);
}

static bool keeps_many(const struct advice_family *family, const struct kept *kept)
{
    return family->has_rule && !family->is_aggregate && versions_on_average(kept) >= VERSIONS_MANY;
}

static bool keeps_old(const struct advice_family *family, const struct kept *kept)
{
    return family->has_rule && !family->is_aggregate && family->most_age_us == INT64_MAX &&
           kept->old >= OLD_LEAST && kept->old * 100 >= (kept->cells - kept->columns) * OLD_PERCENT;
}

/* The family that is worst, of those that break the rule; -1: none. `*count`: how many do. */
static ptrdiff_t worst_family(const struct advice_observations *seen, const struct kept *by_family,
                              bool (*breaks)(const struct advice_family *, const struct kept *),
                              size_t *count)
{
    ptrdiff_t worst = -1;
    *count = 0;
    for (size_t i = 0; i < seen->family_count; i++) {
        if (!breaks(&seen->families[i], &by_family[i]))
            continue;
        ++*count;
        if (worst < 0 || by_family[i].cells > by_family[worst].cells)
            worst = (ptrdiff_t)i;
    }
    return worst;
}

static status advise_on_missing_rules(struct advisor *advisor, const struct kept *by_family)
{
    size_t count;
    struct advice_finding *finding;
    ptrdiff_t worst = worst_family(advisor->seen, by_family, piles_up, &count);
    if (worst < 0)
        return status_ok();
    const struct kept *kept = &by_family[worst];
    TRY(advise(advisor, RULE_gc_none, &finding,
               "%zu famil%s no rule and several versions; in %s, %zu sampled columns have %.1f on "
               "average and up to %zu.",
               count, count == 1 ? "y has" : "ies have", advisor->seen->families[worst].name,
               kept->columns, versions_on_average(kept), kept->most));
    finding_add_key(finding, kept->row_of_most->key);
    return status_ok();
}

static status advise_on_rules(struct advisor *advisor, const struct kept *by_family)
{
    size_t count;
    struct advice_finding *finding;
    ptrdiff_t worst = worst_family(advisor->seen, by_family, keeps_many, &count);
    if (worst >= 0) {
        TRY(advise(advisor, RULE_gc_versions, &finding,
                   "In the family %s, %zu sampled columns have %.0f versions on average.",
                   advisor->seen->families[worst].name, by_family[worst].columns,
                   versions_on_average(&by_family[worst])));
        finding_add_key(finding, by_family[worst].row_of_most->key);
    }
    worst = worst_family(advisor->seen, by_family, keeps_old, &count);
    if (worst < 0)
        return status_ok();
    const struct kept *kept = &by_family[worst];
    TRY(advise(advisor, RULE_gc_old, &finding,
               "In the family %s, %zu of %zu sampled versions that newer ones have replaced are "
               "older than a year.",
               advisor->seen->families[worst].name, kept->old, kept->cells - kept->columns));
    finding_add_key(finding, kept->row_of_most->key);
    return status_ok();
}

/* --- what was deleted --- */

static bool is_mostly_gone(const struct advice_range *range)
{
    return range->stored >= TOMBSTONE_BYTES && range->stored / TOMBSTONE_TIMES >= range->read;
}

static status advise_on_gap(struct advisor *advisor)
{
    const struct advice_gap *gap = &advisor->seen->gap;
    struct advice_finding *finding;
    if (gap->passed < TOMBSTONE_ROWS || gap->passed < TOMBSTONE_TIMES * (uint64_t)gap->rows)
        return status_ok();
    TRY(advise(advisor, RULE_tombstones, &finding,
               "A read from the first key on passed over about %llu rows that hold nothing any "
               "more, and found %zu.",
               (unsigned long long)gap->passed, gap->rows));
    finding_set_range(finding, gap->start, gap->end);
    finding_add_keys_of_range(finding, advisor->seen);
    return status_ok();
}

static status advise_on_tombstones(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    const struct advice_range *worst = NULL;
    struct advice_finding *finding;
    size_t count = 0;
    for (size_t i = 0; i < seen->range_count; i++) {
        const struct advice_range *range = &seen->ranges[i];
        if (!is_mostly_gone(range))
            continue;
        count++;
        if (worst == NULL || range->stored > worst->stored)
            worst = range;
    }
    if (worst == NULL)
        return advise_on_gap(advisor);
    TRY(advise(advisor, RULE_tombstones, &finding,
               "%zu of %zu ranges that were read whole; the largest takes about %.0f MiB and has "
               "%zu rows of %llu bytes.",
               count, seen->range_count, (double)worst->stored / (1 << 20), worst->rows,
               (unsigned long long)worst->read));
    finding_set_range(finding, worst->start, worst->end);
    finding_add_keys_of_range(finding, seen);
    return status_ok();
}

status advise_on_versions(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    struct kept *by_family =
        arena_zalloc(advisor->arena, (seen->family_count + 1) * sizeof *by_family);
    if (by_family == NULL)
        return status_out_of_memory();
    count_versions(seen, by_family);
    TRY(advise_on_rewrites(advisor));
    TRY(advise_on_missing_rules(advisor, by_family));
    TRY(advise_on_rules(advisor, by_family));
    return advise_on_tombstones(advisor);
}
