/* Rules over the counted calls of a database's clients: which of them could cost less, or do not
 * end. Of several kinds the worst is told, with the number of others. */
#include "advisor/advice_private.h"
#include "advisor/database.h"

static unsigned long long minutes_of(const struct advice_database_usage *usage)
{
    int64_t minutes = (usage->span_us + MINUTE_US - 1) / MINUTE_US;
    return (unsigned long long)(minutes < 1 ? 1 : minutes);
}

static const char *plural(unsigned long long count)
{
    return count == 1 ? "" : "s";
}

/* How bad it is for a kind; 0: it is not. */
typedef uint64_t measure(const struct advice_kind_usage *kind);

static const struct advice_kind_usage *find_worst(const struct advice_database_usage *usage,
                                                  measure *measure, size_t *count)
{
    const struct advice_kind_usage *worst = NULL;
    *count = 0;
    for (size_t i = 0; i < usage->kind_count; i++) {
        uint64_t bad = measure(&usage->kinds[i]);
        *count += bad > 0;
        if (bad > 0 && (worst == NULL || bad > measure(worst)))
            worst = &usage->kinds[i];
    }
    return worst;
}

/* The pattern with the kind in place of each '?'. */
static status make_words(struct advisor *advisor, const char *pattern, const char *kind, bytes *out)
{
    struct buffer text = {0};
    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at == '?')
            buffer_append_bytes(&text, bytes_of(kind));
        else
            buffer_append_byte(&text, (uint8_t)*at);
    }
    return keep_text(advisor, &text, out);
}

/* An example of what might be asked instead. */
static status add_example(struct advisor *advisor, struct advice_finding *finding, const char *kind,
                          const char *now, const char *better)
{
    bytes from, to;
    TRY(make_words(advisor, now, kind, &from));
    TRY(make_words(advisor, better, kind, &to));
    finding_add_better(finding, from, to);
    return status_ok();
}

/* --- offsets --- */

static uint64_t skips(const struct advice_kind_usage *kind)
{
    bool skips_much = kind->offsets >= OFFSET_QUERIES && kind->skipped >= OFFSET_SKIPPED &&
                      kind->skipped >= OFFSET_TIMES * kind->offset_results;
    return skips_much ? kind->skipped : 0;
}

static status advise_on_offsets(struct advisor *advisor, const struct advice_database_usage *usage)
{
    size_t count;
    struct advice_finding *finding;
    const struct advice_kind_usage *worst = find_worst(usage, skips, &count);
    if (worst == NULL)
        return status_ok();
    TRY(advise(advisor, RULE_query_offsets, &finding,
               "%zu kind%s; in the last %llu minutes %llu queries of the kind %s skipped %llu "
               "results by an offset and gave %llu: %llu were read and thrown away for each that "
               "was wanted.",
               count, plural(count), minutes_of(usage), (unsigned long long)worst->offsets,
               worst->kind, (unsigned long long)worst->skipped,
               (unsigned long long)worst->offset_results,
               (unsigned long long)(worst->skipped /
                                    (worst->offset_results == 0 ? 1 : worst->offset_results))));
    finding_add_key(finding, bytes_of(worst->kind));
    return add_example(advisor, finding, worst->kind, "SELECT * FROM ? LIMIT 20 OFFSET 1000",
                       "SELECT * FROM ? LIMIT 20 OFFSET @cursor");
}

/* --- whole kinds --- */

static uint64_t scans(const struct advice_kind_usage *kind)
{
    bool scans_much = kind->scans >= SCANS && kind->scanned >= kind->scans * SCANNED;
    return scans_much ? kind->scanned : 0;
}

static status advise_on_scans(struct advisor *advisor, const struct advice_database_usage *usage)
{
    size_t count;
    struct advice_finding *finding;
    const struct advice_kind_usage *worst = find_worst(usage, scans, &count);
    if (worst == NULL)
        return status_ok();
    TRY(advise(advisor, RULE_kind_scans, &finding,
               "%zu kind%s; in the last %llu minutes the kind %s was read from its first entity to "
               "its last %llu times, and %llu whole entities were handed out. Would their keys, a "
               "projection or an aggregation do?",
               count, plural(count), minutes_of(usage), worst->kind,
               (unsigned long long)worst->scans, (unsigned long long)worst->scanned));
    finding_add_key(finding, bytes_of(worst->kind));
    TRY(add_example(advisor, finding, worst->kind, "SELECT * FROM ?", "SELECT __key__ FROM ?"));
    return add_example(advisor, finding, worst->kind, "SELECT * FROM ?", "SELECT COUNT(*) FROM ?");
}

/* --- single calls --- */

static bool are_loops(uint64_t in_loops, uint64_t single)
{
    return in_loops >= LOOP_CALLS && in_loops * 100 >= single * LOOP_PERCENT;
}

static uint64_t loops(const struct advice_kind_usage *kind)
{
    return (are_loops(kind->lookups_in_loops, kind->single_lookups) ? kind->lookups_in_loops : 0) +
           (are_loops(kind->writes_in_loops, kind->single_writes) ? kind->writes_in_loops : 0);
}

static void append_loops(struct buffer *out, uint64_t in_loops, uint64_t single, const char *what)
{
    if (are_loops(in_loops, single))
        buffer_append_format(out, "%s%llu of %llu %s", out->size == 0 ? "" : ", and ",
                             (unsigned long long)in_loops, (unsigned long long)single, what);
}

static status advise_on_entity_calls(struct advisor *advisor,
                                     const struct advice_database_usage *usage)
{
    size_t count;
    struct advice_finding *finding;
    struct buffer text = {0};
    bytes words;
    const struct advice_kind_usage *worst = find_worst(usage, loops, &count);
    if (worst == NULL)
        return status_ok();
    append_loops(&text, worst->lookups_in_loops, worst->single_lookups,
                 "lookups of a single entity");
    append_loops(&text, worst->writes_in_loops, worst->single_writes, "commits of a single one");
    TRY(keep_text(advisor, &text, &words));
    TRY(advise(advisor, RULE_entity_calls, &finding,
               "%zu kind%s; of those of the kind %s that were followed in the last %llu minutes, "
               "%.*s came one after the other from one caller. Could they be batches?",
               count, plural(count), worst->kind, minutes_of(usage), (int)words.size, words.data));
    finding_add_key(finding, bytes_of(worst->kind));
    if (are_loops(worst->writes_in_loops, worst->single_writes))
        return add_example(advisor, finding, worst->kind, "put(?) 500 times",
                           "put_multi([?, ...]) of 500");
    return add_example(advisor, finding, worst->kind, "get(?) 500 times",
                       "get_multi([?, ...]) of 500");
}

/* --- transactions --- */

static uint64_t left(const struct advice_kind_usage *kind)
{
    return kind->left + kind->open;
}

static status advise_on_open_transactions(struct advisor *advisor,
                                          const struct advice_database_usage *usage)
{
    size_t count;
    uint64_t expired = 0, open = 0;
    struct advice_finding *finding;
    const struct advice_kind_usage *worst = find_worst(usage, left, &count);
    for (size_t i = 0; i < usage->kind_count; i++) {
        expired += usage->kinds[i].left;
        open += usage->kinds[i].open;
    }
    if (expired + open < LEFT || (expired + open) * 100 < usage->begun * LEFT_PERCENT)
        return status_ok();
    bool is_known = worst->kind[0] != '\0';
    TRY(advise(advisor, RULE_open_transactions, &finding,
               "Of %llu transactions that were begun in the last %llu minutes and may write, %llu "
               "expired, and %llu have been left alone for ten seconds or more; most of them read "
               "%s%s first.",
               (unsigned long long)usage->begun, minutes_of(usage), (unsigned long long)expired,
               (unsigned long long)open, is_known ? "the kind " : "nothing",
               is_known ? worst->kind : ""));
    finding_add_key(finding, bytes_of(worst->kind));
    return add_example(advisor, finding, worst->kind, "begin, read ?, an exception",
                       "begin, read ?, an exception, rollback");
}

static uint64_t contends(const struct advice_kind_usage *kind)
{
    bool is_much = kind->aborted >= ABORTED &&
                   kind->aborted * 100 >= (kind->commits + kind->aborted) * ABORTED_PERCENT;
    return is_much ? kind->aborted : 0;
}

static status advise_on_contention(struct advisor *advisor,
                                   const struct advice_database_usage *usage)
{
    size_t count;
    struct advice_finding *finding;
    const struct advice_counted_key *group = &usage->aborted;
    const struct advice_kind_usage *worst = find_worst(usage, contends, &count);
    if (worst == NULL)
        return status_ok();
    TRY(advise(advisor, RULE_contention, &finding,
               "%zu kind%s; of %llu commits of entities of the kind %s in the last %llu minutes "
               "%llu were aborted, most of them of the group of %.*s (%llu).",
               count, plural(count), (unsigned long long)(worst->commits + worst->aborted),
               worst->kind, minutes_of(usage), (unsigned long long)worst->aborted,
               (int)group->words.size, group->words.data, (unsigned long long)group->calls));
    if (group->words.size == 0)
        return status_ok();
    finding_add_key(finding, group->words);
    return finding_add_shards(advisor, finding, group->words);
}

/* --- one entity --- */

static bool is_told(const struct advisor *advisor, enum advice_rule_number rule)
{
    for (size_t i = 0; i < advisor->out->count; i++)
        if (advisor->out->findings[i].rule == &advice_rules[rule])
            return true;
    return false;
}

static status advise_on_hot_entity(struct advisor *advisor,
                                   const struct advice_database_usage *usage)
{
    struct advice_finding *finding;
    const struct advice_counted_key *entity = &usage->entity;
    if (entity->words.size == 0 || entity->calls < HOT_LOOKUPS ||
        entity->calls * 2 < usage->lookups || is_told(advisor, RULE_hot_key))
        return status_ok();
    TRY(advise(advisor, RULE_hot_entity, &finding,
               "Of %llu lookups in the last %llu minutes %llu or more had %.*s among their keys.",
               (unsigned long long)usage->lookups, minutes_of(usage),
               (unsigned long long)entity->calls, (int)entity->words.size, entity->words.data));
    finding_add_key(finding, entity->words);
    return finding_add_shards(advisor, finding, entity->words);
}

status advise_on_database_usage(struct advisor *advisor, const struct advice_database *database)
{
    const struct advice_database_usage *usage = &database->usage;
    TRY(advise_on_offsets(advisor, usage));
    TRY(advise_on_scans(advisor, usage));
    TRY(advise_on_entity_calls(advisor, usage));
    TRY(advise_on_open_transactions(advisor, usage));
    TRY(advise_on_contention(advisor, usage));
    return advise_on_hot_entity(advisor, usage);
}
