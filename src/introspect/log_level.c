/* SetLogLevel: how much the log tells, from now until it is set again or the server restarts. */
#include "base/settings.h"
#include "introspect/methods.h"

static status find_level(const char *name, enum log_level *out)
{
    for (int level = LOG_DEBUG; level <= LOG_ERROR; level++) {
        *out = (enum log_level)level;
        if (strcmp(name, log_level_name(*out)) == 0)
            return status_ok();
    }
    return status_make(STATUS_INVALID_ARGUMENT, "level should be debug, info, warn or error");
}

static void note_change(const struct admin_request *request, const Insight__LogLevel *answer)
{
    struct access_caller *caller = request->caller;
    struct audit_changes *changes =
        caller == NULL ? NULL : arena_zalloc(request->arena, sizeof *changes);
    if (changes == NULL)
        return;
    AUDIT_CHANGE(changes, LOG_STR("action", "CHANGE"), LOG_STR("log_level", answer->level),
                 LOG_STR("previous", answer->previous_level));
    caller->changes = changes;
}

/* Told in the log whatever the level, so that a later reader knows why the log is as it is: while
 * it is told the level is that of such lines. */
static void tell(const struct log *log, const Insight__LogLevel *answer)
{
    log_info(log, "log level set", LOG_STR("level", answer->level),
             LOG_STR("previous", answer->previous_level));
}

status set_log_level(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__SetLogLevelRequest *message = (const void *)request->message;
    const struct insight *insight = insight_of(request);
    Insight__LogLevel *answer;
    enum log_level level;
    TRY(insight_check_server(message->name));
    TRY(find_level(message->level, &level));
    PROTO_NEW(request->arena, answer, INSIGHT__LOG_LEVEL__INIT);
    answer->level = log_level_name(level);
    answer->previous_level = log_level_name(log_set_level(insight->log, LOG_INFO));
    answer->configured_level = log_level_name((enum log_level)insight->settings->log_level);
    note_change(request, answer);
    tell(insight->log, answer);
    (void)log_set_level(insight->log, level);
    *response = &answer->base;
    return status_ok();
}
