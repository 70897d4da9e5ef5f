/* See advise_server.h. The rules' words are the server's, which may know others than this program.
 */
#include "cmd/advise/advise_server.h"

#include "trestle/insight/v1/insight.pb-c.h"

#define MICROS_A_SECOND INT64_C(1000000)

#define ADVISE "/trestle.insight.v1.Insight/Advise"
#define MUTE   "/trestle.insight.v1.Insight/MuteAdvice"
#define UNMUTE "/trestle.insight.v1.Insight/UnmuteAdvice"

static enum advice_severity severity_of(Insight__TableAdvice__Finding__Severity severity)
{
    if (severity == INSIGHT__TABLE_ADVICE__FINDING__SEVERITY__CRITICAL)
        return ADVICE_CRITICAL;
    return severity == INSIGHT__TABLE_ADVICE__FINDING__SEVERITY__WARNING ? ADVICE_WARNING
                                                                         : ADVICE_INFO;
}

static status take_rule(const Insight__TableAdvice__Finding *message, struct arena *arena,
                        const struct advice_rule **out)
{
    struct advice_rule *rule = arena_alloc(arena, sizeof *rule);
    if (rule == NULL)
        return status_out_of_memory();
    *rule = (struct advice_rule){.id = message->rule,
                                 .severity = severity_of(message->severity),
                                 .title = message->title,
                                 .when = message->when,
                                 .why = message->why,
                                 .remedy = message->remedy};
    *out = rule;
    return status_ok();
}

/* In the order of the message, which outlives them. */
static status take_mutes(const Insight__TableAdvice *message, struct arena *arena,
                         struct advice_mute **out)
{
    struct advice_mute *mutes = arena_alloc(arena, (message->n_mutes + 1) * sizeof *mutes);
    if (mutes == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < message->n_mutes; i++) {
        const Insight__AdviceMute *mute = message->mutes[i];
        mutes[i] = (struct advice_mute){
            .rule = mute->rule,
            .reason = mute->reason,
            .principal = mute->principal,
            .since_us = mute->mute_time == NULL ? 0 : mute->mute_time->seconds * MICROS_A_SECOND};
    }
    *out = mutes;
    return status_ok();
}

static status take_finding(const Insight__TableAdvice__Finding *message, struct arena *arena,
                           struct advice_finding *out)
{
    *out = (struct advice_finding){.evidence = message->evidence};
    TRY(take_rule(message, arena, &out->rule));
    if (message->range != NULL) {
        out->has_range = true;
        out->start = proto_bytes(message->range->start_key);
        out->end = proto_bytes(message->range->end_key);
    }
    for (; out->key_count < message->n_keys && out->key_count < ADVICE_KEYS_SHOWN; out->key_count++)
        out->keys[out->key_count] = proto_bytes(message->keys[out->key_count]);
    for (size_t i = 0; i < message->n_better_keys && i < ADVICE_KEYS_SHOWN; i++) {
        const Insight__TableAdvice__Better *better = message->better_keys[i];
        out->better[out->better_count++] = (struct advice_better){
            .key = proto_bytes(better->key), .better = proto_bytes(better->better_key)};
    }
    return status_ok();
}

static void take_sample(const Insight__TableAdvice *message, struct advise_report *out)
{
    const Insight__TableAdvice__Sample *sample = message->sample;
    if (sample == NULL)
        return;
    out->seen.row_count = (size_t)sample->rows;
    out->sample.places = (size_t)sample->places;
    out->sample.bytes = (uint64_t)sample->bytes;
    out->sample.is_cut = sample->is_cut;
    out->sample.is_little = sample->is_little;
}

static status take_answer(const Insight__TableAdvice *message, struct arena *arena,
                          struct advise_report *out)
{
    *out = (struct advise_report){.sample = {.has_heat = true, .is_by_server = true}};
    out->seen.table_id = message->id;
    out->seen.table_size = (uint64_t)message->table_bytes;
    out->sample.note = message->note[0] == '\0' ? NULL : message->note;
    take_sample(message, out);
    struct advice_mute *mutes;
    for (size_t i = 0; i < message->n_findings && i < ADVICE_RULES; i++)
        TRY(take_finding(message->findings[i], arena, &out->advice.findings[out->advice.count++]));
    TRY(take_mutes(message, arena, &mutes));
    advice_mute(&out->advice, mutes, message->n_mutes);
    return status_ok();
}

/* Explains the error of a server that is no Trestle. */
static status explain(const struct client_session *session, status s)
{
    if (s.code != STATUS_UNIMPLEMENTED)
        return s;
    status explained =
        status_make(STATUS_UNIMPLEMENTED, "%s does not look itself, as a Trestle does: %s",
                    client_session_address(session), status_message(s));
    status_free(s);
    return explained;
}

status advise_ask(struct client_session *session, const struct advise_question *question,
                  struct arena *arena, struct advise_report *out)
{
    Insight__AdviseRequest request = INSIGHT__ADVISE_REQUEST__INIT;
    const ProtobufCMessage *message;
    const char *table = question->table;
    request.name = question->name;
    request.tables = &table;
    request.n_tables = question->table != NULL;
    request.places = (int32_t)question->places;
    request.rows = (int32_t)question->rows;
    request.max_bytes = (int64_t)question->bytes;
    request.seed = (int64_t)question->seed;
    request.show_values = question->shows_values;
    Pb__Timestamp since = PB__TIMESTAMP__INIT;
    since.seconds = question->since_us / MICROS_A_SECOND;
    since.nanos = (int32_t)(question->since_us % MICROS_A_SECOND * 1000);
    request.since_time = question->since_us > 0 ? &since : NULL;
    TRY(explain(session, client_session_call(session, ADVISE, NULL, &request.base,
                                             &insight__advice__descriptor, arena, &message)));
    const Insight__Advice *answer = (const void *)message;
    if (answer->n_tables != 1)
        return status_make(STATUS_INTERNAL, "the server's advice is not of one table");
    return take_answer(answer->tables[0], arena, out);
}

/* --- what is muted --- */

static status mute(struct client_session *session, const char *name, const char *rule,
                   const char *reason, struct arena *arena)
{
    Insight__MuteAdviceRequest request = INSIGHT__MUTE_ADVICE_REQUEST__INIT;
    const ProtobufCMessage *message;
    request.name = name;
    request.rule = rule;
    request.reason = reason;
    return client_session_call(session, MUTE, NULL, &request.base,
                               &insight__advice_mute__descriptor, arena, &message);
}

static status unmute(struct client_session *session, const char *name, const char *rule,
                     struct arena *arena)
{
    Insight__UnmuteAdviceRequest request = INSIGHT__UNMUTE_ADVICE_REQUEST__INIT;
    const ProtobufCMessage *message;
    request.name = name;
    request.rule = rule;
    return client_session_call(session, UNMUTE, NULL, &request.base, &pb__empty__descriptor, arena,
                               &message);
}

status advise_set_mute(struct client_session *session, const char *name, const char *rule,
                       const char *reason, struct arena *arena)
{
    return explain(session, reason != NULL ? mute(session, name, rule, reason, arena)
                                           : unmute(session, name, rule, arena));
}
