/* See sarif.h. Names of members and their order are of SARIF 2.1.0 §3. What always holds
 *  1. A rule that this program knows is named by its place in the driver's list; of a newer
 *     server's the results have the id alone.
 *  2. A table is a logical location, and an artifact whose URI is its name, since some readers take
 *     results with a place in an artifact only. One that is described is at a line of its file. */
#include "advisor/sarif.h"

#include "wire/json.h"

#include <ctype.h>

#define SCHEMA                                                                                     \
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

static void append(struct buffer *out, const char *text)
{
    buffer_append_bytes(out, bytes_of(text));
}

static void append_member(struct buffer *out, const char *name, const char *value)
{
    json_encode_string(bytes_of(name), out);
    append(out, ": ");
    json_encode_string(bytes_of(value), out);
}

/* A member that is a message, or a text in several formats: {"text": …}. */
static void append_text(struct buffer *out, const char *name, const char *text)
{
    json_encode_string(bytes_of(name), out);
    append(out, ": {");
    append_member(out, "text", text);
    append(out, "}");
}

void sarif_free(struct sarif *sarif)
{
    buffer_free(&sarif->results);
    buffer_free(&sarif->notes);
}

static const char *level_of(enum advice_severity severity)
{
    switch (severity) {
    case ADVICE_CRITICAL:
        return "error";
    case ADVICE_WARNING:
        return "warning";
    case ADVICE_INFO:
        break;
    }
    return "note";
}

/* --- results --- */

/* A path as a URI relative to where the reader is. */
static void append_path(struct buffer *out, const char *path)
{
    struct buffer text = {0};
    for (const char *c = path; *c != '\0'; c++)
        if (isalnum((unsigned char)*c) || strchr("-._~/", *c) != NULL)
            buffer_append_byte(&text, (uint8_t)*c);
        else
            buffer_append_format(&text, "%%%02X", (unsigned char)*c);
    append(out, "\"uri\": ");
    json_encode_string(buffer_bytes(&text), out);
    out->failed |= text.failed;
    buffer_free(&text);
}

static void append_locations(struct buffer *out, const char *subject,
                             const struct advice_finding *finding)
{
    append(out, "\"locations\": [{\"physicalLocation\": {\"artifactLocation\": {");
    if (finding->file != NULL) {
        append_path(out, finding->file);
        buffer_append_format(out, "}, \"region\": {\"startLine\": %zu}", finding->line);
    } else {
        append_member(out, "uri", subject);
        append(out, "}");
    }
    append(out, "}, \"logicalLocations\": [{");
    append_member(out, "fullyQualifiedName", subject);
    append(out, ", \"kind\": \"resource\"}]}]");
}

static void append_key_or(struct buffer *text, bytes key, const char *edge)
{
    if (key.size == 0)
        append(text, edge);
    else
        advice_write_key(key, text);
}

/* Appends what was found, where, and how a key might be, in one paragraph. */
static void append_message(struct buffer *out, const struct advice_finding *finding)
{
    struct buffer text = {0};
    append(&text, finding->evidence);
    if (finding->has_range && finding->start.size + finding->end.size > 0) {
        append(&text, " It is about the keys from ");
        append_key_or(&text, finding->start, "the first");
        append(&text, " up to ");
        append_key_or(&text, finding->end, "the last");
        append(&text, ".");
    }
    if (finding->better_count > 0) {
        append(&text, " Better is ");
        advice_write_key(finding->better[0].better, &text);
        append(&text, " for ");
        advice_write_key(finding->better[0].key, &text);
        append(&text, ".");
    }
    append(out, "\"message\": {\"text\": ");
    json_encode_string(buffer_bytes(&text), out);
    append(out, "}");
    out->failed |= text.failed;
    buffer_free(&text);
}

/* By which a reader knows a finding again that it has been told before. */
static void append_fingerprint(struct buffer *out, const char *rule, const char *subject)
{
    struct buffer text = {0};
    buffer_append_format(&text, "%s of %s", rule, subject);
    append(out, "\"partialFingerprints\": {\"ruleOfTable/v1\": ");
    json_encode_string(buffer_bytes(&text), out);
    append(out, "}");
    out->failed |= text.failed;
    buffer_free(&text);
}

/* A viewer that reads the standard's suppressions shows the result as one that needs no work. */
static void append_suppression(struct buffer *out, const struct advice_mute *mute)
{
    append(out, ",\n       \"suppressions\": [{\"kind\": \"external\", \"status\": \"accepted\", ");
    append_member(out, "justification", mute->reason);
    append(out, "}]");
}

static void append_result(struct buffer *out, const char *subject,
                          const struct advice_finding *finding)
{
    const struct advice_rule *rule = finding->rule;
    append(out, out->size == 0 ? "\n      {" : ",\n      {");
    append_member(out, "ruleId", rule->id);
    for (size_t i = 0; i < ADVICE_RULES; i++)
        if (strcmp(advice_rules[i].id, rule->id) == 0)
            buffer_append_format(out, ", \"ruleIndex\": %zu", i);
    append(out, ", ");
    append_member(out, "level", level_of(rule->severity));
    append(out, ",\n       ");
    append_message(out, finding);
    append(out, ",\n       ");
    append_locations(out, subject, finding);
    append(out, ",\n       ");
    append_fingerprint(out, rule->id, subject);
    if (finding->mute != NULL)
        append_suppression(out, finding->mute);
    append(out, "}");
}

static void append_note(struct buffer *out, const char *subject, size_t rows)
{
    struct buffer text = {0};
    buffer_append_format(&text, "Too little of %s was seen: %zu rows.", subject, rows);
    append(out, out->size == 0 ? "" : ", ");
    append(out, "{\"level\": \"warning\", \"message\": {\"text\": ");
    json_encode_string(buffer_bytes(&text), out);
    append(out, "}}");
    out->failed |= text.failed;
    buffer_free(&text);
}

void sarif_add(struct sarif *sarif, const char *subject, const struct advice_observations *seen,
               const struct advice_sample *sample, const struct advice *advice)
{
    for (size_t i = 0; i < advice->count; i++)
        append_result(&sarif->results, subject, &advice->findings[i]);
    if (!advice_is_enough(seen, sample))
        append_note(&sarif->notes, subject, seen->row_count);
}

/* --- the document --- */

static void append_rules(struct buffer *out)
{
    for (size_t i = 0; i < ADVICE_RULES; i++) {
        const struct advice_rule *rule = &advice_rules[i];
        append(out, i == 0 ? "\n      {" : ",\n      {");
        append_member(out, "id", rule->id);
        append(out, ", ");
        append_text(out, "shortDescription", rule->title);
        append(out, ",\n       ");
        append_text(out, "fullDescription", rule->why);
        append(out, ",\n       ");
        append_text(out, "help", rule->remedy);
        append(out, ", \"defaultConfiguration\": {");
        append_member(out, "level", level_of(rule->severity));
        append(out, "}}");
    }
}

void sarif_write(const struct sarif *sarif, const char *version, struct buffer *out)
{
    append(out, "{\n  ");
    append_member(out, "$schema", SCHEMA);
    append(out, ",\n  \"version\": \"2.1.0\",\n  \"runs\": [{\n    \"tool\": {\"driver\": {");
    append_member(out, "name", "trestle advise");
    append(out, ", ");
    append_member(out, "version", version);
    append(out, ", \"rules\": [");
    append_rules(out);
    append(out, "\n    ]}},\n    \"invocations\": [{\"executionSuccessful\": true, "
                "\"toolExecutionNotifications\": [");
    buffer_append_bytes(out, buffer_bytes(&sarif->notes));
    append(out, "]}],\n    \"results\": [");
    buffer_append_bytes(out, buffer_bytes(&sarif->results));
    append(out, "\n    ]\n  }]\n}\n");
    out->failed |= sarif->notes.failed || sarif->results.failed;
}
