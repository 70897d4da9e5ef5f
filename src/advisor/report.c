/* See report.h. */
#include "advisor/report.h"

#include "advisor/practices.h"
#include "advisor/thresholds.h"
#include "base/utf8.h"
#include "wire/json.h"

#include <time.h>

bool advice_is_enough(const struct advice_observations *seen, const struct advice_sample *sample)
{
    bool is_part = sample->is_cut || sample->is_little;
    return seen->row_count > 0 && (!is_part || seen->row_count >= KEYS_PREFIX_LEAST);
}

const char *advice_heat_note(const struct advice_observations *seen)
{
    return seen->is_heat_coarse ? "Requests were counted by too few ranges of keys to tell which "
                                  "part of it is hot."
                                : "";
}

static void append(struct buffer *out, const char *text)
{
    buffer_append_bytes(out, bytes_of(text));
}

/* Neither control characters, nor what has no width or turns a line around. */
static bool is_shown(uint32_t code)
{
    static const uint32_t hidden[][2] = {{0, 0x1f},        {'\\', '\\'},        {0x7f, 0x9f},
                                         {0xad, 0xad},     {0x200b, 0x200f},    {0x2028, 0x202e},
                                         {0x2060, 0x206f}, {0xe000, 0xf8ff},    {0xfeff, 0xfeff},
                                         {0xfff0, 0xfffb}, {0xe0000, UTF8_LAST}};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (code >= hidden[i][0] && code <= hidden[i][1])
            return false;
    return true;
}

static void append_escaped(bytes part, struct buffer *out)
{
    for (size_t i = 0; i < part.size; i++)
        buffer_append_format(out, "\\x%02x", part.data[i]);
}

/* What is no text, or not to be seen, is escaped, and a backslash if the text has none that begins
 * what is. */
static void append_shown(bytes text, bool has_escapes, struct buffer *out)
{
    bool is_text = utf8_is_valid(text);
    for (size_t at = 0, from = 0; at < text.size; from = at) {
        uint32_t code = is_text || text.data[at] < 0x80 ? utf8_next(text, &at) : (at++, 0);
        bytes part = bytes_make(text.data + from, at - from);
        if (is_shown(code) || (has_escapes && code == '\\'))
            buffer_append_bytes(out, part);
        else
            append_escaped(part, out);
    }
}

void advice_write_key(bytes key, struct buffer *out)
{
    enum { SHOWN_MOST = 80 };
    bool is_cut = key.size > SHOWN_MOST;
    if (is_cut)
        key = utf8_is_valid(key) ? utf8_cut(key, SHOWN_MOST) : bytes_make(key.data, SHOWN_MOST);
    append_shown(key, false, out);
    if (is_cut)
        append(out, "...");
}

void advice_write_words(bytes words, struct buffer *out)
{
    append_shown(words, true, out);
}

void advice_write_time(int64_t us, struct buffer *out)
{
    time_t seconds = (time_t)(us / SECOND_US);
    char text[32] = "";
    struct tm utc;
    if (gmtime_r(&seconds, &utc) != NULL)
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    append(out, text);
}

/* --- text --- */

static void append_key_or(bytes key, const char *edge, struct buffer *out)
{
    if (key.size == 0)
        append(out, edge);
    else
        advice_write_key(key, out);
}

static void write_range(const struct advice_finding *finding, struct buffer *out)
{
    if (!finding->has_range)
        return;
    append(out, "  Range: ");
    append_key_or(finding->start, "(the first key)", out);
    append(out, "  up to  ");
    append_key_or(finding->end, "(the last key)", out);
    append(out, "\n");
}

static void write_finding(const struct advice_finding *finding, struct buffer *out)
{
    const struct advice_rule *rule = finding->rule;
    buffer_append_format(out, "\n%s: %s (%s)\n  %s\n", advice_severity_name(rule->severity),
                         rule->title, rule->id, finding->evidence);
    if (finding->file != NULL)
        buffer_append_format(out, "  Where: %s:%zu\n", finding->file, finding->line);
    write_range(finding, out);
    for (size_t i = 0; i < finding->key_count; i++) {
        append(out, i == 0 ? "  Keys: " : "        ");
        advice_write_key(finding->keys[i], out);
        append(out, "\n");
    }
    buffer_append_format(out, "  Why it matters: %s\n  What to do: %s\n", rule->why, rule->remedy);
    for (size_t i = 0; i < finding->better_count; i++) {
        append(out, i == 0 ? "  Better: " : "          ");
        advice_write_key(finding->better[i].better, out);
        append(out, "  for  ");
        advice_write_key(finding->better[i].key, out);
        append(out, "\n");
    }
}

/* A reason is shown as it was given, except characters that would turn a line around. */
static void write_mute(const struct advice_mute *mute, struct buffer *out)
{
    bytes reason = bytes_of(mute->reason);
    for (size_t at = 0, from = 0; at < reason.size; from = at) {
        uint32_t code = utf8_next(reason, &at);
        bytes part = bytes_make(reason.data + from, at - from);
        if (is_shown(code) || code == '\\')
            buffer_append_bytes(out, part);
        else
            append_escaped(part, out);
    }
    append(out, " (");
    if (mute->principal[0] != '\0')
        buffer_append_format(out, "%s, ", mute->principal);
    advice_write_time(mute->since_us, out);
    append(out, ")");
}

static void write_muted_finding(const struct advice_finding *finding, struct buffer *out)
{
    buffer_append_format(out, "\nmuted: %s (%s)\n  %s\n  Muted: ", finding->rule->title,
                         finding->rule->id, finding->evidence);
    write_mute(finding->mute, out);
    append(out, "\n");
}

static bool has_finding(const struct advice *advice, const struct advice_mute *mute)
{
    for (size_t i = 0; i < advice->count; i++)
        if (advice->findings[i].mute == mute)
            return true;
    return false;
}

/* Mutes that hide nothing: perhaps they are not needed any more. */
static void write_idle_mutes(const struct advice *advice, struct buffer *out)
{
    for (size_t i = 0; i < advice->mute_count; i++) {
        const struct advice_mute *mute = &advice->mutes[i];
        if (has_finding(advice, mute))
            continue;
        buffer_append_format(out, "muted, and not found: %s: ", mute->rule);
        write_mute(mute, out);
        append(out, "\n");
    }
}

static void write_head(const struct advice_observations *seen, const struct advice_sample *sample,
                       struct buffer *out)
{
    buffer_append_format(out, "%s: %zu %s sampled at %zu places", seen->table_id, seen->row_count,
                         sample->is_database ? "entities" : "rows", sample->places);
    if (sample->is_made)
        append(out, ", made of the description");
    else
        buffer_append_format(out, ", %.1f MiB read%s", (double)sample->bytes / (1 << 20),
                             sample->is_by_server ? " by the server itself" : "");
    append(out, sample->is_cut ? ", and then it was enough\n" : "\n");
}

void advice_write_text(const struct advice_observations *seen, const struct advice_sample *sample,
                       const struct advice *advice, struct buffer *out)
{
    write_head(seen, sample, out);
    if (sample->note != NULL)
        buffer_append_format(out, "%s\n", sample->note);
    if (seen->is_heat_coarse)
        buffer_append_format(out, "%s\n", advice_heat_note(seen));
    size_t loud = 0;
    for (size_t i = 0; i < advice->count; i++) {
        bool is_muted = advice->findings[i].mute != NULL;
        loud += !is_muted;
        if (is_muted)
            write_muted_finding(&advice->findings[i], out);
        else
            write_finding(&advice->findings[i], out);
    }
    if (!advice_is_enough(seen, sample))
        append(out, "\ntoo little was seen to say more\n");
    else if (loud == 0)
        append(out, advice->count == 0 ? "nothing was found\n" : "\nnothing else was found\n");
    write_idle_mutes(advice, out);
}

/* --- JSON --- */

static void append_string(struct buffer *out, const char *name, const char *value)
{
    json_encode_string(bytes_of(name), out);
    append(out, ": ");
    json_encode_string(bytes_of(value), out);
}

static void append_json_key(struct buffer *out, bytes key)
{
    struct buffer text = {0};
    advice_write_key(key, &text);
    json_encode_string(buffer_bytes(&text), out);
    out->failed |= text.failed;
    buffer_free(&text);
}

static void append_rule(const struct advice_rule *rule, struct buffer *out)
{
    append_string(out, "rule", rule->id);
    append(out, ", ");
    append_string(out, "severity", advice_severity_name(rule->severity));
    append(out, ", ");
    append_string(out, "title", rule->title);
    append(out, ",\n     ");
    append_string(out, "when", rule->when);
    append(out, ",\n     ");
    append_string(out, "why", rule->why);
    append(out, ",\n     ");
    append_string(out, "remedy", rule->remedy);
}

static void append_mute(const struct advice_mute *mute, struct buffer *out)
{
    append(out, "{");
    append_string(out, "rule", mute->rule);
    append(out, ", ");
    append_string(out, "reason", mute->reason);
    append(out, ", ");
    append_string(out, "principal", mute->principal);
    append(out, ", \"time\": \"");
    advice_write_time(mute->since_us, out);
    append(out, "\"}");
}

static void append_mutes(const struct advice *advice, struct buffer *out)
{
    append(out, ",\n  \"mutes\": [");
    for (size_t i = 0; i < advice->mute_count; i++) {
        append(out, i == 0 ? "" : ", ");
        append_mute(&advice->mutes[i], out);
    }
    append(out, "]");
}

static void append_finding(const struct advice_finding *finding, struct buffer *out)
{
    append(out, "\n    {");
    append_rule(finding->rule, out);
    buffer_append_format(out, ",\n     \"isMuted\": %s,\n     ",
                         finding->mute != NULL ? "true" : "false");
    append_string(out, "evidence", finding->evidence);
    if (finding->file != NULL) {
        append(out, ",\n     ");
        append_string(out, "file", finding->file);
        buffer_append_format(out, ", \"line\": %zu", finding->line);
    }
    if (finding->has_range) {
        append(out, ",\n     \"range\": {\"start\": ");
        append_json_key(out, finding->start);
        append(out, ", \"end\": ");
        append_json_key(out, finding->end);
        append(out, "}");
    }
    append(out, ",\n     \"keys\": [");
    for (size_t i = 0; i < finding->key_count; i++) {
        append(out, i == 0 ? "" : ", ");
        append_json_key(out, finding->keys[i]);
    }
    append(out, "], \"better\": [");
    for (size_t i = 0; i < finding->better_count; i++) {
        append(out, i == 0 ? "{\"key\": " : ", {\"key\": ");
        append_json_key(out, finding->better[i].key);
        append(out, ", \"better\": ");
        append_json_key(out, finding->better[i].better);
        append(out, "}");
    }
    append(out, "]}");
}

void advice_write_json_members(const struct advice_observations *seen,
                               const struct advice_sample *sample, const struct advice *advice,
                               struct buffer *out)
{
    append_string(out, "table", seen->table_id);
    if (sample->name != NULL) {
        append(out, ",\n  ");
        append_string(out, "name", sample->name);
    }
    buffer_append_format(
        out,
        ",\n  \"sample\": {\"rows\": %zu, \"places\": %zu, \"bytes\": %llu, \"isCut\": %s, "
        "\"isEnough\": %s, \"hasHotTablets\": %s, \"isByServer\": %s},\n  \"tableBytes\": %llu,\n  "
        "\"findings\": [",
        seen->row_count, sample->places, (unsigned long long)sample->bytes,
        sample->is_cut ? "true" : "false", advice_is_enough(seen, sample) ? "true" : "false",
        sample->has_heat ? "true" : "false", sample->is_by_server ? "true" : "false",
        (unsigned long long)seen->table_size);
    for (size_t i = 0; i < advice->count; i++) {
        append(out, i == 0 ? "" : ",");
        append_finding(&advice->findings[i], out);
    }
    append(out, advice->count == 0 ? "]" : "\n  ]");
    append_mutes(advice, out);
    append(out, ",\n  ");
    append_string(out, "note", sample->note != NULL ? sample->note : advice_heat_note(seen));
}

void advice_write_json(const struct advice_observations *seen, const struct advice_sample *sample,
                       const struct advice *advice, struct buffer *out)
{
    append(out, "{\n  ");
    advice_write_json_members(seen, sample, advice, out);
    append(out, "\n}\n");
}

/* --- the rules --- */

/* The next practice from `*at` on that names the rule; NULL: there is none. */
static const struct practice *next_practice(const struct advice_rule *rule, size_t *at)
{
    while (*at < practice_count)
        if (practice_names(&practices[(*at)++], rule->id))
            return &practices[*at - 1];
    return NULL;
}

static void write_practices_text(const struct advice_rule *rule, struct buffer *out)
{
    const struct practice *practice;
    for (size_t at = 0; (practice = next_practice(rule, &at)) != NULL;)
        buffer_append_format(out, "  Practice: %s: %s (%s)\n", practice_page_name(practice->page),
                             practice->heading, practice->number);
}

void advice_write_rules_text(struct buffer *out)
{
    for (size_t i = 0; i < ADVICE_RULES; i++) {
        const struct advice_rule *rule = &advice_rules[i];
        const struct advice_example *example = advice_example_of(rule->id);
        buffer_append_format(out,
                             "%s%s (%s): %s\n  Found when: %s\n  Why it matters: %s\n"
                             "  What to do: %s\n",
                             i == 0 ? "" : "\n", rule->id, advice_severity_name(rule->severity),
                             rule->title, rule->when, rule->why, rule->remedy);
        if (example != NULL)
            buffer_append_format(out, "  Before: %s\n  After: %s\n", example->before,
                                 example->after);
        write_practices_text(rule, out);
    }
}

static void append_practices(const struct advice_rule *rule, struct buffer *out)
{
    const struct practice *practice;
    append(out, ",\n     \"practices\": [");
    for (size_t at = 0, count = 0; (practice = next_practice(rule, &at)) != NULL; count++) {
        append(out, count == 0 ? "{" : ", {");
        append_string(out, "number", practice->number);
        append(out, ", ");
        append_string(out, "page", practice_page_name(practice->page));
        append(out, ", ");
        append_string(out, "heading", practice->heading);
        append(out, "}");
    }
    append(out, "]");
}

static void append_example(const struct advice_example *example, struct buffer *out)
{
    if (example == NULL)
        return;
    append(out, ",\n     ");
    append_string(out, "before", example->before);
    append(out, ", ");
    append_string(out, "after", example->after);
}

void advice_write_rules_json(struct buffer *out)
{
    append(out, "[");
    for (size_t i = 0; i < ADVICE_RULES; i++) {
        append(out, i == 0 ? "\n    {" : ",\n    {");
        append_rule(&advice_rules[i], out);
        append_example(advice_example_of(advice_rules[i].id), out);
        append_practices(&advice_rules[i], out);
        append(out, "}");
    }
    append(out, "\n]\n");
}

static void write_practices_markdown(const struct advice_rule *rule, struct buffer *out)
{
    const struct practice *practice;
    size_t at = 0, count = 0;
    for (; (practice = next_practice(rule, &at)) != NULL; count++)
        buffer_append_format(
            out, "%s%s, section “%s” ([%s](practices.md))", count == 0 ? "- **Practice**: " : "; ",
            practice_page_name(practice->page), practice->heading, practice->number);
    append(out, count == 0 ? "" : "\n");
}

void advice_write_rules_markdown(struct buffer *out)
{
    append(out, "# The rules of trestle advise\n\nMade by `./dev docs` from "
                "`src/advisor/rules.def`. What they are used for: [advise.md](advise.md); which "
                "practices they are about: [practices.md](practices.md).\n");
    for (size_t i = 0; i < ADVICE_RULES; i++) {
        const struct advice_rule *rule = &advice_rules[i];
        const struct advice_example *example = advice_example_of(rule->id);
        buffer_append_format(out,
                             "\n## %s\n\n%s. Severity: %s.\n\n- **Found when**: %s\n"
                             "- **Why it matters**: %s\n- **What to do**: %s\n",
                             rule->id, rule->title, advice_severity_name(rule->severity),
                             rule->when, rule->why, rule->remedy);
        if (example != NULL)
            buffer_append_format(out, "- **Before**: `%s`\n- **After**: `%s`\n", example->before,
                                 example->after);
        write_practices_markdown(rule, out);
    }
}
