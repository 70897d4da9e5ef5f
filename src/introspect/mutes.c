/* MuteAdvice, UnmuteAdvice: which rules' findings about a table, or a database, need no work, and
 * why. */
#include "introspect/mutes.h"

#include "cluster/mutes.h"
#include "introspect/advice_watch.h"
#include "introspect/methods.h"
#include "wire/timestamps.h"

status mute_findings(struct table *table, struct arena *arena, struct advice *advice)
{
    struct mute *kept;
    size_t count;
    TRY(table_read_mutes(table, arena, &kept, &count));
    struct advice_mute *mutes = arena_alloc(arena, (count + 1) * sizeof *mutes);
    if (mutes == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        mutes[i] = (struct advice_mute){.rule = kept[i].rule,
                                        .reason = kept[i].reason,
                                        .principal = kept[i].principal,
                                        .since_us = kept[i].since_us};
    advice_mute(advice, mutes, count);
    return status_ok();
}

/* --- methods --- */

static status check_rule(const char *rule)
{
    for (size_t i = 0; i < ADVICE_RULES; i++)
        if (strcmp(advice_rules[i].id, rule) == 0)
            return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "the advisor has no rule \"%s\": `trestle advise --rules` lists them", rule);
}

/* "" if the caller is not known; NULL without memory. */
static const char *principal_of(const struct admin_request *request)
{
    const struct access_caller *caller = request->caller;
    return caller == NULL ? "" : arena_string(request->arena, caller->principal);
}

/* Without memory the audit log says less. */
static void note_change(const struct admin_request *request, const char *action, const char *rule,
                        const char *reason)
{
    if (request->caller == NULL)
        return;
    struct audit_changes *changes = arena_zalloc(request->arena, sizeof *changes);
    if (changes != NULL)
        AUDIT_CHANGE(changes, LOG_STR("action", action), LOG_STR("rule", rule),
                     LOG_STR("reason", reason));
    request->caller->changes = changes;
}

static status mute_message(const struct mute *mute, struct arena *arena, Insight__AdviceMute **out)
{
    PROTO_NEW(arena, *out, INSIGHT__ADVICE_MUTE__INIT);
    (*out)->rule = mute->rule;
    (*out)->reason = mute->reason;
    (*out)->principal = mute->principal;
    return timestamp_message(mute->since_us, arena, &(*out)->mute_time);
}

status mute_advice(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__MuteAdviceRequest *message = (const void *)request->message;
    struct cluster *cluster = request->bigtable->cluster;
    const struct mute mute = {.rule = message->rule,
                              .reason = message->reason,
                              .principal = principal_of(request),
                              .since_us = cluster_wall_us(cluster)};
    Insight__AdviceMute *answer;
    struct table *table;
    if (mute.principal == NULL)
        return status_out_of_memory();
    TRY(check_rule(message->rule));
    TRY(mute_message(&mute, request->arena, &answer));
    TRY(cluster_table(cluster, bytes_of(message->name), &table));
    status s = table_mute(table, &mute);
    table_release(table);
    TRY(s);
    advice_watch_ask(insight_of(request)->watch, message->name);
    note_change(request, "MUTE", message->rule, message->reason);
    *response = &answer->base;
    return status_ok();
}

status unmute_advice(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__UnmuteAdviceRequest *message = (const void *)request->message;
    struct table *table;
    TRY(cluster_table(request->bigtable->cluster, bytes_of(message->name), &table));
    status s = table_unmute(table, message->rule);
    table_release(table);
    TRY(s);
    advice_watch_ask(insight_of(request)->watch, message->name);
    note_change(request, "UNMUTE", message->rule, "");
    *response = admin_empty_response();
    return status_ok();
}
