/* Indexes that sampled entities have rows in, and that no query uses. Where it says "never" it says
 * since when uses have been recorded. */
#include "advisor/advice_private.h"
#include "advisor/database.h"
#include "base/clock.h"

#include <string.h>

/* The unused indexes of a kind. */
struct unused {
    const char *kind;
    size_t indexes; /* all that there are, also used ones */
    size_t count;   /* that are unused */
    double rows;    /* of an entity in them */
    double all_rows;
    double bytes;
    uint64_t stored;  /* bytes that they take in all; 0: not known */
    int64_t since_us; /* the last use of one of them, or since when one looks */
};

static const struct advice_kind_usage *usage_of(const struct advice_database *database,
                                                const char *kind)
{
    for (size_t i = 0; i < database->usage.kind_count; i++)
        if (strcmp(database->usage.kinds[i].kind, kind) == 0)
            return &database->usage.kinds[i];
    return NULL;
}

static int64_t since_of(const struct advice_database *database, const struct advice_index_use *use)
{
    return use->used_us > database->uses_since_us ? use->used_us : database->uses_since_us;
}

static bool is_unused(const struct advice_database *database, const struct advice_index_use *use,
                      int64_t until_us)
{
    return since_of(database, use) <= until_us;
}

/* Sums up the kind's indexes that were not used since `until_us`. */
static struct unused look_at(const struct advice_database *database, const char *kind,
                             int64_t until_us)
{
    struct unused found = {.kind = kind};
    for (size_t i = 0; i < database->index_use_count; i++) {
        const struct advice_index_use *use = &database->index_uses[i];
        if (strcmp(use->kind, kind) != 0)
            continue;
        found.indexes++;
        found.all_rows += use->rows;
        if (!is_unused(database, use, until_us))
            continue;
        int64_t since_us = since_of(database, use);
        found.count++;
        found.rows += use->rows;
        found.bytes += use->bytes;
        found.stored += use->stored;
        found.since_us = since_us > found.since_us ? since_us : found.since_us;
    }
    return found;
}

/* The kind's, a week old; else all that were never used, if they are many beside queries. */
static struct unused unused_of(const struct advisor *advisor,
                               const struct advice_database *database, const char *kind,
                               int64_t *until_us)
{
    const struct advice_kind_usage *usage = usage_of(database, kind);
    *until_us = advisor->seen->now_us - UNUSED_US;
    if (usage == NULL || usage->commits + usage->queries == 0)
        return (struct unused){.kind = kind};
    struct unused found = look_at(database, kind, *until_us);
    if (found.count > 0)
        return found;
    *until_us = database->uses_since_us;
    found = look_at(database, kind, *until_us);
    bool are_many = found.count >= UNUSED_EARLY &&
                    found.count * 100 >= found.indexes * UNUSED_PERCENT &&
                    usage->queries >= UNUSED_QUERIES;
    return are_many ? found : (struct unused){.kind = kind};
}

/* Whether it comes before the other among those that are named: by what they take, then by place.
 */
static bool comes_before(const struct advice_index_use *use, const struct advice_index_use *other)
{
    return use->stored != other->stored ? use->stored > other->stored : use < other;
}

/* The first that comes behind `last`; NULL: there is no more, or, for `last`, none was before. */
static const struct advice_index_use *next_unused(const struct advice_database *database,
                                                  const char *kind, int64_t until_us,
                                                  const struct advice_index_use *last)
{
    const struct advice_index_use *next = NULL;
    for (size_t i = 0; i < database->index_use_count; i++) {
        const struct advice_index_use *use = &database->index_uses[i];
        bool is_left = strcmp(use->kind, kind) == 0 && is_unused(database, use, until_us) &&
                       (last == NULL || comes_before(last, use));
        if (is_left && (next == NULL || comes_before(use, next)))
            next = use;
    }
    return next;
}

static void append_size(struct buffer *out, uint64_t size)
{
    const double mib = 1 << 20, kib = 1 << 10;
    bool is_small = (double)size < mib / 10;
    buffer_append_format(out, is_small ? "%.1f KiB" : "%.1f MiB",
                         (double)size / (is_small ? kib : mib));
}

/* "p1 (1.5 MiB), p2 (0.5 MiB) and 3 more" */
static void append_names(const struct advice_database *database, const struct unused *unused,
                         int64_t until_us, struct buffer *out)
{
    const struct advice_index_use *use = NULL;
    size_t named = 0;
    for (; named < UNUSED_NAMED && named < unused->count; named++) {
        use = next_unused(database, unused->kind, until_us, use);
        buffer_append_format(out, "%s%s", named == 0 ? "" : ", ", use->name);
        if (use->stored == 0)
            continue;
        buffer_append_bytes(out, bytes_of(" ("));
        append_size(out, use->stored);
        buffer_append_byte(out, ')');
    }
    if (unused->count > named)
        buffer_append_format(out, " and %zu more", unused->count - named);
}

/* Appends how much can be saved, also of other kinds. */
static void append_total(const struct unused *unused, const struct unused *all, size_t kinds,
                         struct buffer *out)
{
    if (unused->stored == 0)
        return;
    buffer_append_bytes(out, bytes_of(" They take about "));
    append_size(out, unused->stored);
    buffer_append_bytes(out, bytes_of(" in all"));
    if (kinds > 1) {
        buffer_append_format(out, "; the %zu unused indexes of %zu kinds about ", all->count,
                             kinds);
        append_size(out, all->stored);
    }
    buffer_append_byte(out, '.');
}

/* Of the kind that could save the most, and of `kinds` together. */
static status tell(struct advisor *advisor, const struct advice_database *database,
                   const struct unused *unused, int64_t until_us, const struct unused *all,
                   size_t kinds)
{
    char since[CLOCK_DATE_SIZE];
    struct buffer text = {0}, sum = {0};
    struct advice_finding *finding;
    bytes names, total;
    bool is_all_time = unused->since_us <= database->uses_since_us;
    append_names(database, unused, until_us, &text);
    append_total(unused, all, kinds, &sum);
    status s = keep_text(advisor, &text, &names);
    if (!status_is_ok(s)) {
        buffer_free(&sum);
        return s;
    }
    TRY(keep_text(advisor, &sum, &total));
    TRY(advise(
        advisor, RULE_index_unused, &finding,
        "Of %zu indexes of the kind %s that sampled entities have rows in, %zu have answered "
        "no query since %s%s: %.*s.%.*s Of the %.1f rows that an entity has in all of these, "
        "%.1f are there, with keys of %.0f bytes.",
        unused->indexes, unused->kind, unused->count, clock_date(unused->since_us, since),
        is_all_time ? ", when they began to be looked at" : "", (int)names.size, names.data,
        (int)total.size, total.data, unused->all_rows, unused->rows, unused->bytes));
    finding_add_key(finding, bytes_of(unused->kind));
    return status_ok();
}

/* Whether the index is the first of its kind that there is. */
static bool begins_kind(const struct advice_database *database, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(database->index_uses[i].kind, database->index_uses[at].kind) == 0)
            return false;
    return true;
}

static bool is_worse(const struct unused *unused, const struct unused *other)
{
    return unused->stored != other->stored ? unused->stored > other->stored
                                           : unused->rows > other->rows;
}

status advise_on_index_uses(struct advisor *advisor, const struct advice_database *database)
{
    struct unused worst = {.kind = NULL}, all = {.kind = NULL};
    int64_t worst_until_us = 0;
    size_t kinds = 0;
    if (database->uses_since_us == 0)
        return status_ok();
    for (size_t i = 0; i < database->index_use_count; i++) {
        int64_t until_us;
        if (!begins_kind(database, i))
            continue;
        struct unused unused =
            unused_of(advisor, database, database->index_uses[i].kind, &until_us);
        if (unused.count == 0)
            continue;
        kinds++;
        all.count += unused.count;
        all.stored += unused.stored;
        if (worst.kind != NULL && !is_worse(&unused, &worst))
            continue;
        worst = unused;
        worst_until_us = until_us;
    }
    return worst.kind == NULL ? status_ok()
                              : tell(advisor, database, &worst, worst_until_us, &all, kinds);
}
