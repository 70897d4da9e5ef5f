/* See advice.h: the table of rules, and findings. */
#include "advisor/advice_private.h"
#include "advisor/report.h"

#include "base/check.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>

const struct advice_rule advice_rules[ADVICE_RULES] = {
#define RULE(member_, id_, severity_, title_, when_, why_, remedy_)                                \
    [RULE_##member_] = {.id = id_,                                                                 \
                        .severity = ADVICE_##severity_,                                            \
                        .title = title_,                                                           \
                        .when = when_,                                                             \
                        .why = why_,                                                               \
                        .remedy = remedy_},
#include "advisor/rules.def"
#undef RULE
};

const char *advice_severity_name(enum advice_severity severity)
{
    static const char *const names[] = {"info", "warning", "critical"};
    return names[severity];
}

uint64_t advice_hash(bytes value)
{
    enum { HASHED_MOST = 32 };
    return value.size <= HASHED_MOST ? bytes_hash(value) : 0;
}

/* --- findings --- */

/* Without the first bytes of a code point whose others were cut off, if it may have been cut. */
static bytes without_part(bytes text, size_t most)
{
    size_t last = text.size;
    if (text.size < most)
        return text;
    while (last > 0 && (text.data[last - 1] & 0xc0) == 0x80)
        last--;
    bool is_part = last > 0 && last - 1 + utf8_size(text.data[last - 1]) > text.size;
    return is_part ? bytes_make(text.data, last - 1) : text;
}

/* A sentence has names in it that somebody gave to columns, kinds and properties: they may have
 * what a terminal obeys, and bytes that are no text, as which no message may have them. */
static char *shown(struct advisor *advisor, bytes sentence)
{
    struct buffer text = {0};
    advice_write_words(sentence, &text);
    char *copy = text.failed ? NULL : arena_string(advisor->arena, buffer_bytes(&text));
    buffer_free(&text);
    return copy;
}

status advise(struct advisor *advisor, enum advice_rule_number rule, struct advice_finding **out,
              const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    CHECK(advisor->out->count < ADVICE_RULES);
    char *evidence = shown(advisor, without_part(bytes_of(text), sizeof text - 1));
    if (evidence == NULL)
        return status_out_of_memory();
    *out = &advisor->out->findings[advisor->out->count++];
    **out = (struct advice_finding){.rule = &advice_rules[rule], .evidence = evidence};
    return status_ok();
}

void finding_set_range(struct advice_finding *finding, bytes start, bytes end)
{
    finding->has_range = true;
    finding->start = start;
    finding->end = end;
}

void finding_add_keys_of_range(struct advice_finding *finding,
                               const struct advice_observations *seen)
{
    size_t first = 0, behind;
    while (first < seen->row_count && bytes_compare(seen->rows[first].key, finding->start) < 0)
        first++;
    for (behind = first; behind < seen->row_count; behind++)
        if (finding->end.size > 0 && bytes_compare(seen->rows[behind].key, finding->end) >= 0)
            break;
    size_t count = behind - first, shown = count < ADVICE_KEYS_SHOWN ? count : ADVICE_KEYS_SHOWN;
    for (size_t i = 0; i < shown; i++)
        finding_add_key(finding, seen->rows[first + count * (2 * i + 1) / (2 * shown)].key);
}

void finding_add_key(struct advice_finding *finding, bytes key)
{
    if (finding->key_count < ADVICE_KEYS_SHOWN)
        finding->keys[finding->key_count++] = key;
}

void finding_add_better(struct advice_finding *finding, bytes key, bytes better)
{
    if (finding->better_count < ADVICE_KEYS_SHOWN)
        finding->better[finding->better_count++] =
            (struct advice_better){.key = key, .better = better};
}

/* In words: a name stays within its quotes, and an id becomes a name. */
static void write_shard_in_words(bytes words, size_t number, struct buffer *out)
{
    size_t last = words.size;
    bool is_name = last > 0 && words.data[last - 1] == '"';
    while (!is_name && last > 0 && words.data[last - 1] != ' ')
        last--;
    buffer_append_bytes(out, bytes_make(words.data, is_name ? last - 1 : last));
    if (!is_name) {
        buffer_append_byte(out, '"');
        buffer_append_bytes(out, bytes_from(words, last));
    }
    buffer_append_format(out, "#%zu\"", number);
}

status finding_add_shards(struct advisor *advisor, struct advice_finding *finding, bytes key)
{
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN; i++) {
        struct buffer text = {0};
        bytes shard;
        if (advisor->is_database) {
            write_shard_in_words(key, i, &text);
        } else {
            buffer_append_bytes(&text, key);
            buffer_append_format(&text, "#%zu", i);
        }
        TRY(keep_text(advisor, &text, &shard));
        finding_add_better(finding, key, shard);
    }
    return status_ok();
}

const struct advice_row *row_to_show(const struct advice_observations *seen, size_t index)
{
    size_t at = seen->row_count * (2 * index + 1) / (2 * ADVICE_KEYS_SHOWN);
    return &seen->rows[at];
}

status keep_text(struct advisor *advisor, struct buffer *text, bytes *out)
{
    *out = text->failed ? bytes_make(NULL, 0) : arena_copy(advisor->arena, buffer_bytes(text));
    buffer_free(text);
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

/* --- what is muted --- */

static const struct advice_mute *find_mute(const struct advice *advice, const char *rule)
{
    for (size_t i = 0; i < advice->mute_count; i++)
        if (strcmp(advice->mutes[i].rule, rule) == 0)
            return &advice->mutes[i];
    return NULL;
}

void advice_mute(struct advice *advice, const struct advice_mute *mutes, size_t count)
{
    struct advice_finding muted[ADVICE_RULES];
    size_t muted_count = 0, kept = 0;
    advice->mutes = mutes;
    advice->mute_count = count;
    for (size_t i = 0; i < advice->count; i++) {
        struct advice_finding *finding = &advice->findings[i];
        finding->mute = find_mute(advice, finding->rule->id);
        if (finding->mute != NULL)
            muted[muted_count++] = *finding;
        else
            advice->findings[kept++] = *finding;
    }
    for (size_t i = 0; i < muted_count; i++)
        advice->findings[kept + i] = muted[i];
}

/* --- all rules --- */

void sort_findings(struct advice *advice)
{
    for (size_t i = 1; i < advice->count; i++) {
        struct advice_finding finding = advice->findings[i];
        size_t at = i;
        for (; at > 0 && advice->findings[at - 1].rule->severity < finding.rule->severity; at--)
            advice->findings[at] = advice->findings[at - 1];
        advice->findings[at] = finding;
    }
}

void advisor_set_period(struct advisor *advisor)
{
    struct buffer since = {0};
    const char *period = "within an hour", *of_period = "of the last hour";
    if (advisor->seen->since_us > 0) {
        buffer_append_bytes(&since, bytes_of("since "));
        advice_write_time(advisor->seen->since_us, &since);
        buffer_append_byte(&since, 0);
        period = of_period = since.failed ? "lately" : (const char *)since.data;
    }
    snprintf(advisor->period, sizeof advisor->period, "%s", period);
    snprintf(advisor->of_period, sizeof advisor->of_period, "%s", of_period);
    buffer_free(&since);
}

/* Findings that requests show, and nothing else; what of them is personal is known by the rows. */
static status advise_on_requests(struct advisor *advisor)
{
    TRY(advise_on_counted_rewrites(advisor));
    TRY(advise_on_heat(advisor));
    TRY(advise_on_usage(advisor));
    size_t found = advisor->out->count;
    TRY(advise_on_personal_rows(advisor));
    advisor->out->count = found;
    return status_ok();
}

static status advise_on_all(struct advisor *advisor)
{
    TRY(advise_on_keys(advisor));
    TRY(advise_on_domains(advisor));
    TRY(advise_on_sizes(advisor));
    TRY(advise_on_names(advisor));
    TRY(advise_on_versions(advisor));
    TRY(advise_on_columns(advisor));
    TRY(advise_on_heat(advisor));
    TRY(advise_on_usage(advisor));
    TRY(advise_on_siblings(advisor));
    return advise_on_personal_rows(advisor);
}

status advice_find(const struct advice_observations *seen, struct arena *arena, struct advice *out)
{
    struct advisor advisor = {.seen = seen, .arena = arena, .out = out};
    out->count = out->mute_count = 0;
    advisor_set_period(&advisor);
    TRY(seen->since_us > 0 ? advise_on_requests(&advisor) : advise_on_all(&advisor));
    sort_findings(out);
    return hide_personal_data(&advisor);
}
