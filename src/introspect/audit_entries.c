/* ListAuditEntries: the latest administrative calls, as access control has noted them. They are not
 * read from the audit log's file: what was before the server's start is there alone. */
#include "access/audit.h"
#include "base/settings.h"
#include "base/utf8.h"
#include "introspect/methods.h"
#include "wire/timestamps.h"

#include <stdio.h>

enum { USUAL_PAGE = 100 };

/* Names come as they were sent, or cut short: what is no text is a question mark. */
static char *text_of(struct arena *arena, bytes b)
{
    char *text = arena_string(arena, b);
    if (text == NULL || (utf8_is_valid(b) && strlen(text) == b.size))
        return text;
    for (size_t i = 0; i < b.size; i++)
        if (text[i] <= 0) /* where char is signed, beyond ASCII, too */
            text[i] = '?';
    return text;
}

static char *method_text(struct arena *arena, const struct audit_entry *entry)
{
    size_t size = strlen(entry->service) + strlen(entry->method) + 2;
    char *text = arena_alloc(arena, size);
    if (text != NULL)
        snprintf(text, size, "%s/%s", entry->service, entry->method);
    return text;
}

static status describe(const struct audit_entry *entry, struct arena *arena,
                       Insight__AuditEntry *out)
{
    TRY(timestamp_message(entry->ended_us, arena, &out->time));
    TRY(duration_message(entry->duration_us, arena, &out->duration));
    out->principal = text_of(arena, entry->principal);
    out->method = method_text(arena, entry);
    out->resource = text_of(arena, entry->resource);
    out->source = text_of(arena, entry->source);
    out->changes = text_of(arena, entry->changes);
    out->address = text_of(arena, entry->address);
    out->code = (int32_t)entry->code;
    bool is_whole = out->principal != NULL && out->method != NULL && out->resource != NULL &&
                    out->source != NULL && out->changes != NULL && out->address != NULL;
    return is_whole ? status_ok() : status_out_of_memory();
}

static status list_entries(struct audit_trail *trail, size_t most, struct arena *arena,
                           Insight__ListAuditEntriesResponse *list)
{
    struct audit_entry *entries;
    size_t count;
    TRY(timestamp_message(audit_trail_since_us(trail), arena, &list->since));
    TRY(audit_trail_list(trail, most, arena, &entries, &count));
    list->entries = arena_alloc(arena, count * sizeof *list->entries);
    if (list->entries == NULL)
        return status_out_of_memory();
    for (; list->n_entries < count; list->n_entries++) {
        Insight__AuditEntry *entry;
        PROTO_NEW(arena, entry, INSIGHT__AUDIT_ENTRY__INIT);
        TRY(describe(&entries[list->n_entries], arena, entry));
        list->entries[list->n_entries] = entry;
    }
    return status_ok();
}

status list_audit_entries(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__ListAuditEntriesRequest *message = (const void *)request->message;
    const struct insight *insight = insight_of(request);
    Insight__ListAuditEntriesResponse *list;
    TRY(insight_check_server(message->parent));
    if (message->page_size < 0)
        return status_make(STATUS_INVALID_ARGUMENT, "page_size is negative");
    PROTO_NEW(request->arena, list, INSIGHT__LIST_AUDIT_ENTRIES_RESPONSE__INIT);
    list->is_audited = insight->audit != NULL;
    if (list->is_audited && insight->settings->audit_log != NULL)
        list->log_file = insight->settings->audit_log;
    if (list->is_audited)
        TRY(list_entries(audit_trail(insight->audit),
                         message->page_size == 0 ? USUAL_PAGE : (size_t)message->page_size,
                         request->arena, list));
    *response = &list->base;
    return status_ok();
}
