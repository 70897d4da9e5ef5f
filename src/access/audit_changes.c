/* See audit_changes.h. */
#include "access/audit_changes.h"

#include "base/check.h"

#include <stdlib.h>

void audit_changes_add(struct audit_changes *changes, const struct log_field *fields)
{
    if (changes->count == AUDIT_CHANGES_MOST) {
        changes->further++;
        return;
    }
    struct audit_change *change = &changes->list[changes->count++];
    size_t count = 0;
    *change = (struct audit_change){0};
    for (; fields->kind != LOG_FIELD_END; fields++) {
        CHECK(count < AUDIT_CHANGE_FIELDS);
        change->fields[count++] = *fields;
    }
}

bytes audit_text(bytes text)
{
    if (text.size <= AUDIT_TEXT_MOST)
        return text;
    text.size = AUDIT_TEXT_MOST;
    while (text.size > 0 && (text.data[text.size] & 0xc0) == 0x80)
        text.size--;
    return text;
}

static void write_field(const struct log_field *field, struct buffer *out)
{
    buffer_append_format(out, " %s=", field->name);
    if (field->kind == LOG_FIELD_INT)
        buffer_append_format(out, "%lld", (long long)field->number);
    else
        buffer_append_bytes(out, audit_text(field->text));
}

void audit_changes_write(const struct audit_changes *changes, struct buffer *out)
{
    for (size_t i = 0; i < changes->count; i++) {
        const struct log_field *field = changes->list[i].fields;
        buffer_append_bytes(out, bytes_of(i == 0 ? "" : "; "));
        buffer_append_bytes(out, field->text);
        for (field++; field->kind != LOG_FIELD_END; field++)
            write_field(field, out);
    }
    if (changes->further > 0)
        buffer_append_format(out, "; and %lld more", (long long)changes->further);
}

/* --- tokens --- */

static bytes date_text(int64_t us, struct arena *arena)
{
    char date[CLOCK_DATE_SIZE];
    return us == INT64_MAX ? bytes_of("never") : arena_copy(arena, bytes_of(clock_date(us, date)));
}

static void note_token(struct audit_changes *changes, const char *action, const struct token *token,
                       struct arena *arena)
{
    AUDIT_CHANGE(changes, LOG_STR("action", action), LOG_STR("token", token->principal),
                 LOG_BYTES("expires", date_text(token->expires_us, arena)));
}

/* The same secret. */
static void compare_token(const struct token *before, const struct token *after,
                          struct arena *arena, struct audit_changes *changes)
{
    if (strcmp(before->principal, after->principal) != 0) {
        note_token(changes, "REMOVE", before, arena);
        note_token(changes, "ADD", after, arena);
    } else if (before->expires_us != after->expires_us) {
        note_token(changes, "CHANGE", after, arena);
    }
}

static int compare_hashes(const struct tokens *before, size_t i, const struct tokens *after,
                          size_t j)
{
    if (i == before->count)
        return 1;
    if (j == after->count)
        return -1;
    return memcmp(before->list[i].hash, after->list[j].hash, TOKEN_HASH_SIZE);
}

void audit_compare_tokens(const struct tokens *before, const struct tokens *after,
                          struct arena *arena, struct audit_changes *changes)
{
    size_t i = 0, j = 0;
    while (i < before->count || j < after->count) {
        int order = compare_hashes(before, i, after, j);
        if (order < 0)
            note_token(changes, "REMOVE", &before->list[i], arena);
        else if (order > 0)
            note_token(changes, "ADD", &after->list[j], arena);
        else
            compare_token(&before->list[i], &after->list[j], arena, changes);
        i += order <= 0;
        j += order >= 0;
    }
}

/* --- bindings --- */

size_t audit_grant_count(const struct access_binding *bindings, size_t count)
{
    size_t grants = 0;
    for (size_t i = 0; i < count; i++)
        grants += bindings[i].member_count;
    return grants;
}

void audit_grants_of(bytes resource, const struct access_binding *bindings, size_t count,
                     struct audit_grant *out)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < bindings[i].member_count; j++)
            *out++ = (struct audit_grant){.resource = resource,
                                          .role = bytes_of(bindings[i].role),
                                          .member = bytes_of(bindings[i].members[j])};
}

static int compare_grants(const void *a, const void *b)
{
    const struct audit_grant *left = a;
    const struct audit_grant *right = b;
    int order = bytes_compare(left->resource, right->resource);
    if (order == 0)
        order = bytes_compare(left->role, right->role);
    return order != 0 ? order : bytes_compare(left->member, right->member);
}

static void note_grant(struct audit_changes *changes, const char *action,
                       const struct audit_grant *grant)
{
    if (grant->resource.size == 0)
        AUDIT_CHANGE(changes, LOG_STR("action", action), LOG_BYTES("role", grant->role),
                     LOG_BYTES("member", grant->member));
    else
        AUDIT_CHANGE(changes, LOG_STR("action", action), LOG_BYTES("role", grant->role),
                     LOG_BYTES("member", grant->member), LOG_BYTES("resource", grant->resource));
}

/* Sorted, and each once. */
static size_t make_set(struct audit_grant *grants, size_t count)
{
    size_t kept = 0;
    if (count > 0)
        qsort(grants, count, sizeof *grants, compare_grants);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || compare_grants(&grants[kept - 1], &grants[i]) != 0)
            grants[kept++] = grants[i];
    return kept;
}

void audit_compare_grants(struct audit_grant *before, size_t before_count,
                          struct audit_grant *after, size_t after_count,
                          struct audit_changes *changes)
{
    size_t i = 0, j = 0;
    before_count = make_set(before, before_count);
    after_count = make_set(after, after_count);
    while (i < before_count || j < after_count) {
        int order = i == before_count  ? 1
                    : j == after_count ? -1
                                       : compare_grants(&before[i], &after[j]);
        if (order < 0)
            note_grant(changes, "REMOVE", &before[i]);
        if (order > 0)
            note_grant(changes, "ADD", &after[j]);
        i += order <= 0;
        j += order >= 0;
    }
}
