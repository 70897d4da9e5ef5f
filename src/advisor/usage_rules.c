/* Rules over the requests that the server has seen: scans that throw most away, what is read
 * together, calls that could be others. */
#include "advisor/advice_private.h"
#include "advisor/columns.h"
#include "advisor/key_parts.h"
#include "advisor/report.h"
#include "advisor/view_statement.h"

enum { FAMILIES_MOST = 64 }; /* that are looked at */

static void append(struct buffer *out, const char *text)
{
    buffer_append_bytes(out, bytes_of(text));
}

/* "Within 26 hours "; what is known is of two days at most. */
static void append_time(const struct advice_observations *seen, struct buffer *out)
{
    int64_t minutes = (seen->now_us - seen->usage.from_us) / MINUTE_US + 1;
    if (minutes < 120)
        buffer_append_format(out, "Within %lld minutes ", (long long)minutes);
    else
        buffer_append_format(out, "Within %lld hours ", (long long)(minutes / 60));
}

static void append_column(bytes family, bytes qualifier, struct buffer *out)
{
    advice_write_key(family, out);
    append(out, ":");
    advice_write_key(qualifier, out);
}

/* The evidence, which is freed. */
static status tell(struct advisor *advisor, enum advice_rule_number rule, struct buffer *evidence,
                   struct advice_finding **out)
{
    bytes text;
    TRY(keep_text(advisor, evidence, &text));
    return advise(advisor, rule, out, "%.*s", (int)text.size, (const char *)text.data);
}

/* --- scans --- */

static void append_profile(bytes profile, struct buffer *out)
{
    if (profile.size == 0) {
        append(out, "the default app profile");
        return;
    }
    append(out, "the app profile ");
    advice_write_key(profile, out);
}

static bool throws_away(const struct advice_scans *scans)
{
    return scans->scans >= SCANS_LEAST && scans->seen >= SCANNED_LEAST &&
           scans->seen / SCANNED_TIMES >= scans->answered;
}

static uint64_t thrown_away(const struct advice_scans *scans)
{
    return scans->seen - scans->answered;
}

static const struct advice_scans *most_wasteful(const struct advice_usage *usage)
{
    const struct advice_scans *most = NULL;
    for (size_t i = 0; i < usage->scan_count; i++) {
        const struct advice_scans *scans = &usage->scans[i];
        if (throws_away(scans) && (most == NULL || thrown_away(scans) > thrown_away(most)))
            most = scans;
    }
    return most;
}

static void append_choice(const struct advice_scans *scans, struct buffer *out)
{
    if (scans->kind == ADVICE_BY_KEY)
        append(out, " choose rows by a pattern of their keys");
    else if (scans->kind == ADVICE_BY_VALUE)
        append(out, " choose rows by values");
    else
        append(out, " choose rows by the columns that they have");
    if (scans->kind != ADVICE_BY_VALUE || scans->family.size == 0)
        return;
    append(out, " of ");
    append_column(scans->family, scans->qualifier, out);
}

/* The view whose keys begin with the value that is asked for. */
static void append_view(const struct advice_observations *seen, const struct advice_scans *scans,
                        struct buffer *out)
{
    struct buffer view = {0};
    if (scans->kind == ADVICE_BY_VALUE && scans->family.size > 0)
        view_statement_append(seen->table_id, scans->family, scans->qualifier, &view);
    if (view.size > 0)
        append(out, " This view would have them in order: ");
    buffer_append_bytes(out, buffer_bytes(&view));
    out->failed = out->failed || view.failed;
    buffer_free(&view);
}

/* The last part of a key goes to its front. */
static status add_turned_keys(struct advisor *advisor, struct advice_finding *finding)
{
    struct key_parts parts;
    key_parts_find(advisor->seen, &parts);
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN && i < advisor->seen->row_count; i++) {
        struct buffer text = {0};
        bytes key = row_to_show(advisor->seen, i)->key, better;
        size_t last = key.size;
        while (parts.delimiter != 0 && last > 0 && key.data[last - 1] != parts.delimiter)
            last--;
        if (parts.delimiter == 0 || last == 0 || last == key.size)
            continue;
        buffer_append_bytes(&text, bytes_from(key, last));
        buffer_append_byte(&text, parts.delimiter);
        buffer_append_bytes(&text, bytes_make(key.data, last - 1));
        TRY(keep_text(advisor, &text, &better));
        finding_add_better(finding, key, better);
    }
    return status_ok();
}

/* The column's value goes to the front of the key. */
static status add_valued_keys(struct advisor *advisor, const struct advice_scans *scans,
                              struct advice_finding *finding)
{
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN && i < advisor->seen->row_count; i++) {
        struct buffer text = {0};
        bytes key = row_to_show(advisor->seen, i)->key, better;
        append(&text, "<value");
        if (scans->family.size > 0) {
            append(&text, " of ");
            append_column(scans->family, scans->qualifier, &text);
        }
        append(&text, ">#");
        buffer_append_bytes(&text, key);
        TRY(keep_text(advisor, &text, &better));
        finding_add_better(finding, key, better);
    }
    return status_ok();
}

static status advise_on_filtered_scans(struct advisor *advisor, const struct advice_scans *scans)
{
    struct advice_finding *finding;
    struct buffer text = {0};
    append_time(advisor->seen, &text);
    buffer_append_format(&text, "%llu ReadRows of ranges by ", (unsigned long long)scans->scans);
    append_profile(scans->profile, &text);
    buffer_append_format(&text, " read %llu rows and answered %llu, %.2f %%: they",
                         (unsigned long long)scans->seen, (unsigned long long)scans->answered,
                         100.0 * (double)scans->answered / (double)scans->seen);
    append_choice(scans, &text);
    append(&text, ".");
    append_view(advisor->seen, scans, &text);
    TRY(tell(advisor, RULE_filtered_scans, &text, &finding));
    if (scans->start.size > 0 || scans->end.size > 0)
        finding_set_range(finding, scans->start, scans->end);
    return scans->kind == ADVICE_BY_KEY ? add_turned_keys(advisor, finding)
                                        : add_valued_keys(advisor, scans, finding);
}

static const struct advice_scans *most_whole(const struct advice_usage *usage)
{
    const struct advice_scans *most = NULL;
    for (size_t i = 0; i < usage->scan_count; i++) {
        const struct advice_scans *scans = &usage->scans[i];
        bool counts = scans->whole >= WHOLE_SCANS_LEAST && !throws_away(scans) &&
                      scans->whole_seen / WHOLE_SCAN_ROWS >= scans->whole;
        if (counts && (most == NULL || scans->whole_seen > most->whole_seen))
            most = scans;
    }
    return most;
}

static status advise_on_whole_scans(struct advisor *advisor, const struct advice_scans *scans)
{
    struct advice_finding *finding;
    struct buffer text = {0};
    append_time(advisor->seen, &text);
    buffer_append_format(&text, "%llu ReadRows by ", (unsigned long long)scans->whole);
    append_profile(scans->profile, &text);
    buffer_append_format(&text, " were of the whole table, and read %llu rows each, on average.",
                         (unsigned long long)(scans->whole_seen / scans->whole));
    return tell(advisor, RULE_whole_scans, &text, &finding);
}

static status advise_on_scans(struct advisor *advisor)
{
    const struct advice_scans *wasteful = most_wasteful(&advisor->seen->usage);
    const struct advice_scans *whole = most_whole(&advisor->seen->usage);
    if (wasteful != NULL)
        TRY(advise_on_filtered_scans(advisor, wasteful));
    return whole == NULL ? status_ok() : advise_on_whole_scans(advisor, whole);
}

/* --- columns --- */

static const struct advice_family *family_named(const struct advice_observations *seen, bytes name)
{
    for (size_t i = 0; i < seen->family_count; i++)
        if (bytes_equal(bytes_of(seen->families[i].name), name))
            return &seen->families[i];
    return NULL;
}

static bool live_alike(const struct advice_family *a, const struct advice_family *b)
{
    return a->has_rule == b->has_rule && a->is_aggregate == b->is_aggregate &&
           a->most_age_us == b->most_age_us && a->most_versions == b->most_versions;
}

/* Whether they are columns of two families or more, which live alike. */
static bool lie_apart(const struct advice_observations *seen, const struct advice_asked *asked)
{
    const struct advice_family *first = NULL;
    bool are_several = false;
    for (size_t i = 0; i < asked->count; i++) {
        const struct advice_family *family = family_named(seen, asked->columns[i].family);
        if (family == NULL || !asked->columns[i].has_qualifier)
            return false;
        if (first == NULL)
            first = family;
        if (!live_alike(first, family))
            return false;
        are_several |= family != first;
    }
    return are_several;
}

static status tell_of_columns(struct advisor *advisor, const struct advice_asked *asked)
{
    struct advice_finding *finding;
    struct buffer text = {0};
    append_time(advisor->seen, &text);
    buffer_append_format(&text, "%.0f %% of %llu ReadRows asked for just",
                         100.0 * (double)asked->reads / (double)advisor->seen->usage.reads,
                         (unsigned long long)advisor->seen->usage.reads);
    for (size_t i = 0; i < asked->count; i++) {
        append(&text, i == 0 ? " " : i + 1 < asked->count ? ", " : " and ");
        append_column(asked->columns[i].family, asked->columns[i].qualifier, &text);
    }
    append(&text, ".");
    return tell(advisor, RULE_columns_apart, &text, &finding);
}

/* --- families of one column --- */

/* Of the families that the sample has: how many have one column each; 0 if they do not live alike.
 */
static size_t families_of_one(const struct advice_observations *seen,
                              const struct column_summaries *columns, bool is_of_one[FAMILIES_MOST])
{
    const struct advice_family *first = NULL;
    size_t counts[FAMILIES_MOST] = {0}, count = 0;
    for (size_t i = 0; i < columns->count; i++)
        if (columns->all[i].family < FAMILIES_MOST)
            counts[columns->all[i].family]++;
    for (size_t i = 0; i < seen->family_count && i < FAMILIES_MOST; i++) {
        is_of_one[i] = counts[i] == 1;
        if (!is_of_one[i])
            continue;
        if (first != NULL && !live_alike(first, &seen->families[i]))
            return 0;
        first = &seen->families[i];
        count++;
    }
    return count;
}

static bool has_family(const struct advice_asked *asked, const char *name)
{
    for (size_t i = 0; i < asked->count; i++)
        if (bytes_equal(asked->columns[i].family, bytes_of(name)))
            return true;
    return false;
}

static bool asks_for_all(const struct advice_observations *seen, const struct advice_asked *asked,
                         const bool is_of_one[FAMILIES_MOST])
{
    for (size_t i = 0; i < seen->family_count && i < FAMILIES_MOST && asked->count > 0; i++)
        if (is_of_one[i] && !has_family(asked, seen->families[i].name))
            return false;
    return true;
}

static status advise_on_small_families(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    struct column_summaries columns;
    bool is_of_one[FAMILIES_MOST] = {false};
    struct advice_finding *finding;
    uint64_t together = 0;
    if (seen->row_count < COLUMNS_LEAST)
        return status_ok();
    TRY(columns_summarize(advisor, &columns));
    size_t families = families_of_one(seen, &columns, is_of_one);
    for (size_t i = 0; i < seen->usage.asked_count; i++)
        if (asks_for_all(seen, &seen->usage.asked[i], is_of_one))
            together += seen->usage.asked[i].reads;
    if (families < FAMILIES_OF_ONE || together * 100 < seen->usage.reads * ASKED_ALL_PERCENT)
        return status_ok();
    struct buffer text = {0};
    append_time(seen, &text);
    buffer_append_format(&text,
                         "%.0f %% of %llu ReadRows asked for all of %zu families that have one "
                         "column each; none was seen to read one of them apart.",
                         100.0 * (double)together / (double)seen->usage.reads,
                         (unsigned long long)seen->usage.reads, families);
    return tell(advisor, RULE_columns_apart, &text, &finding);
}

static status advise_on_asked(struct advisor *advisor)
{
    const struct advice_usage *usage = &advisor->seen->usage;
    const struct advice_asked *most = NULL;
    if (usage->reads < ASKED_LEAST)
        return status_ok();
    for (size_t i = 0; i < usage->asked_count; i++)
        if (lie_apart(advisor->seen, &usage->asked[i]) &&
            (most == NULL || usage->asked[i].reads > most->reads))
            most = &usage->asked[i];
    if (most != NULL && most->reads * 100 >= usage->reads * ASKED_PERCENT)
        return tell_of_columns(advisor, most);
    return advise_on_small_families(advisor);
}

/* --- rows --- */

static size_t common_end(bytes a, bytes b)
{
    size_t size = 0;
    while (size < a.size && size < b.size && a.data[a.size - 1 - size] == b.data[b.size - 1 - size])
        size++;
    return size;
}

static bool is_delimiter(uint8_t byte)
{
    return byte != 0 && strchr(KEY_DELIMITERS "-_.", byte) != NULL;
}

/* Joined keys have the shared part in front: anna#prof for prof#anna. */
static status add_joined_keys(struct advisor *advisor, struct advice_finding *finding)
{
    const bytes *keys = advisor->seen->usage.scattered_keys;
    for (size_t i = 0; i < 2; i++) {
        struct buffer text = {0};
        bytes key = keys[i], better;
        size_t at = key.size - common_end(keys[0], keys[1]);
        while (at < key.size && at > 0 && !is_delimiter(key.data[at - 1]) &&
               !is_delimiter(key.data[at]))
            at++;
        size_t begins = at < key.size && is_delimiter(key.data[at]) ? at + 1 : at;
        bytes front = bytes_make(key.data, begins > 0 ? begins - 1 : 0);
        buffer_append_bytes(&text, bytes_from(key, begins));
        buffer_append_byte(
            &text, begins > 0 && is_delimiter(key.data[begins - 1]) ? key.data[begins - 1] : '#');
        buffer_append_bytes(&text, front);
        TRY(keep_text(advisor, &text, &better));
        finding_add_key(finding, key);
        finding_add_better(finding, key, better);
    }
    return status_ok();
}

static status advise_on_parts(struct advisor *advisor)
{
    const struct advice_usage *usage = &advisor->seen->usage;
    struct advice_finding *finding;
    struct buffer text = {0};
    if (usage->several_reads < ASKED_LEAST ||
        usage->scattered_reads * 100 < usage->several_reads * SCATTERED_PERCENT)
        return status_ok();
    append_time(advisor->seen, &text);
    buffer_append_format(&text,
                         "%.0f %% of %llu ReadRows of several keys asked for rows whose keys end "
                         "alike and begin differently.",
                         100.0 * (double)usage->scattered_reads / (double)usage->several_reads,
                         (unsigned long long)usage->several_reads);
    TRY(tell(advisor, RULE_parts_apart, &text, &finding));
    return add_joined_keys(advisor, finding);
}

/* --- calls --- */

static status tell_of_increments(struct advisor *advisor)
{
    const struct advice_usage *usage = &advisor->seen->usage;
    struct advice_finding *finding;
    struct buffer text = {0};
    append_time(advisor->seen, &text);
    buffer_append_format(&text, "%llu ReadModifyWriteRow incremented a cell, one of them ",
                         (unsigned long long)usage->increments);
    append_column(usage->incremented_family, usage->incremented_qualifier, &text);
    append(&text, ".");
    TRY(tell(advisor, RULE_read_modify_writes, &text, &finding));
    finding_add_key(finding, usage->incremented_key);
    return status_ok();
}

static status tell_of_rewrites(struct advisor *advisor)
{
    const struct advice_usage *usage = &advisor->seen->usage;
    struct advice_finding *finding;
    struct buffer text = {0};
    append_time(advisor->seen, &text);
    buffer_append_format(&text,
                         "%llu of %llu MutateRow wrote a cell of a row that the same connection "
                         "had read just before, %.0f %% of these or more of a few rows.",
                         (unsigned long long)usage->rewrites,
                         (unsigned long long)usage->single_writes,
                         100.0 * (double)usage->few_rewrites / (double)usage->rewrites);
    TRY(tell(advisor, RULE_read_modify_writes, &text, &finding));
    finding_add_key(finding, usage->rewritten_key);
    return status_ok();
}

static status advise_on_increments(struct advisor *advisor)
{
    const struct advice_usage *usage = &advisor->seen->usage;
    if (usage->increments >= INCREMENTS_LEAST)
        return tell_of_increments(advisor);
    bool are_rewrites = usage->rewrites >= INCREMENTS_LEAST &&
                        2 * usage->rewrites >= usage->single_writes &&
                        2 * usage->few_rewrites >= usage->rewrites;
    return are_rewrites ? tell_of_rewrites(advisor) : status_ok();
}

static bool come_in_order(uint64_t rising, uint64_t calls)
{
    return rising >= CALLS_LEAST && rising * 100 >= calls * CALLS_PERCENT;
}

static status advise_on_single_calls(struct advisor *advisor)
{
    const struct advice_usage *usage = &advisor->seen->usage;
    struct advice_finding *finding;
    struct buffer text = {0};
    bool writes = come_in_order(usage->rising_writes, usage->single_writes);
    if (!writes && !come_in_order(usage->rising_reads, usage->single_reads))
        return status_ok();
    append_time(advisor->seen, &text);
    buffer_append_format(
        &text, "%llu of %llu %s came at once after one of the same connection with a lower key.",
        (unsigned long long)(writes ? usage->rising_writes : usage->rising_reads),
        (unsigned long long)(writes ? usage->single_writes : usage->single_reads),
        writes ? "MutateRow" : "ReadRows of one row");
    TRY(tell(advisor, RULE_single_calls, &text, &finding));
    finding_add_key(finding, writes ? usage->rising_write_key : usage->rising_read_key);
    return status_ok();
}

status advise_on_usage(struct advisor *advisor)
{
    if (advisor->seen->usage.from_us == 0)
        return status_ok();
    TRY(advise_on_scans(advisor));
    TRY(advise_on_asked(advisor));
    TRY(advise_on_parts(advisor));
    TRY(advise_on_increments(advisor));
    return advise_on_single_calls(advisor);
}
