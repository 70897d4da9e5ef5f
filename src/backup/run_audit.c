/* See run_audit.h. */
#include "backup/run_audit.h"

struct subject {
    struct buffer resource;
    struct buffer source;
};

static bool makes_tables(const struct whole_wish *wish)
{
    return wish->from[0] != '\0';
}

static void append_place(const struct whole_wish *wish, struct buffer *out)
{
    if (wish->place[0] == '\0')
        return;
    buffer_append_format(out, "servers/self/places/%s", wish->place);
    if (wish->name[0] != '\0')
        buffer_append_format(out, "/%s", wish->name);
}

static void describe(const struct whole_wish *wish, struct subject *out)
{
    if (makes_tables(wish)) {
        buffer_append_bytes(&out->resource, bytes_of(wish->to[0] != '\0' ? wish->to : wish->from));
        append_place(wish, &out->source);
        return;
    }
    append_place(wish, &out->resource);
    const char *all = "servers/self";
    buffer_append_bytes(&out->source, bytes_of(wish->scope[0] != '\0' ? wish->scope : all));
}

static void subject_free(struct subject *subject)
{
    buffer_free(&subject->resource);
    buffer_free(&subject->source);
}

/* --- the call --- */

static status keep(const struct buffer *text, struct arena *arena, bytes *out)
{
    if (text->failed)
        return status_out_of_memory();
    if (text->size == 0)
        return status_ok();
    const char *copy = arena_string(arena, buffer_bytes(text));
    if (copy == NULL)
        return status_out_of_memory();
    *out = bytes_of(copy);
    return status_ok();
}

status run_audit_ask(const struct whole_wish *wish, struct arena *arena,
                     struct access_caller *caller)
{
    struct subject subject = {0};
    if (caller == NULL)
        return status_ok();
    describe(wish, &subject);
    status s = keep(&subject.resource, arena, &caller->resource);
    if (status_is_ok(s))
        s = keep(&subject.source, arena, &caller->source);
    subject_free(&subject);
    return s;
}

/* --- the run --- */

void run_audit_end(struct audit *audit, const struct whole_run *run, bytes principal)
{
    const struct whole_wish wish = {.place = run->place,
                                    .name = run->name,
                                    .from = run->from,
                                    .to = run->to,
                                    .scope = run->scope};
    struct subject subject = {0};
    describe(&wish, &subject);
    const struct audit_run line = {.principal = principal,
                                   .service = "trestle.backup.v1.WholeBackups",
                                   .method =
                                       makes_tables(&wish) ? "RestoreTables" : "CreateWholeBackup",
                                   .resource = buffer_bytes(&subject.resource),
                                   .source = buffer_bytes(&subject.source),
                                   .code = run->code,
                                   .reason = run->error,
                                   .duration_us = run->end_us - run->start_us};
    audit_ended(audit, &line);
    subject_free(&subject);
}
