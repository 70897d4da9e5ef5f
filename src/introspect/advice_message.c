/* See advice_message.h. */
#include "introspect/advice_message.h"

#include "wire/proto.h"
#include "wire/timestamps.h"

static status text_message(const char *text, struct arena *arena, const char **out)
{
    *out = arena_string(arena, bytes_of(text));
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status key_message(bytes key, struct arena *arena, ProtobufCBinaryData *out)
{
    bytes copy = arena_copy(arena, key);
    if (copy.data == NULL)
        return status_out_of_memory();
    *out = proto_data(copy);
    return status_ok();
}

static Insight__TableAdvice__Finding__Severity severity_message(enum advice_severity severity)
{
    static const Insight__TableAdvice__Finding__Severity severities[] = {
        [ADVICE_INFO] = INSIGHT__TABLE_ADVICE__FINDING__SEVERITY__INFO,
        [ADVICE_WARNING] = INSIGHT__TABLE_ADVICE__FINDING__SEVERITY__WARNING,
        [ADVICE_CRITICAL] = INSIGHT__TABLE_ADVICE__FINDING__SEVERITY__CRITICAL,
    };
    return severities[severity];
}

static status rule_message(const struct advice_rule *rule, struct arena *arena,
                           Insight__TableAdvice__Finding *out)
{
    out->severity = severity_message(rule->severity);
    TRY(text_message(rule->id, arena, &out->rule));
    TRY(text_message(rule->title, arena, &out->title));
    TRY(text_message(rule->when, arena, &out->when));
    TRY(text_message(rule->why, arena, &out->why));
    return text_message(rule->remedy, arena, &out->remedy);
}

static status range_message(const struct advice_finding *finding, struct arena *arena,
                            Insight__TableAdvice__Range **out)
{
    if (!finding->has_range)
        return status_ok();
    PROTO_NEW(arena, *out, INSIGHT__TABLE_ADVICE__RANGE__INIT);
    TRY(key_message(finding->start, arena, &(*out)->start_key));
    return key_message(finding->end, arena, &(*out)->end_key);
}

static status key_messages(const struct advice_finding *finding, struct arena *arena,
                           Insight__TableAdvice__Finding *out)
{
    out->keys = arena_alloc(arena, ADVICE_KEYS_SHOWN * sizeof *out->keys);
    if (out->keys == NULL)
        return status_out_of_memory();
    for (; out->n_keys < finding->key_count; out->n_keys++)
        TRY(key_message(finding->keys[out->n_keys], arena, &out->keys[out->n_keys]));
    return status_ok();
}

static status better_messages(const struct advice_finding *finding, struct arena *arena,
                              Insight__TableAdvice__Finding *out)
{
    out->better_keys = arena_alloc(arena, ADVICE_KEYS_SHOWN * sizeof(*out->better_keys));
    if (out->better_keys == NULL)
        return status_out_of_memory();
    for (; out->n_better_keys < finding->better_count; out->n_better_keys++) {
        const struct advice_better *better = &finding->better[out->n_better_keys];
        Insight__TableAdvice__Better *message;
        PROTO_NEW(arena, message, INSIGHT__TABLE_ADVICE__BETTER__INIT);
        TRY(key_message(better->key, arena, &message->key));
        TRY(key_message(better->better, arena, &message->better_key));
        out->better_keys[out->n_better_keys] = message;
    }
    return status_ok();
}

static status finding_message(const struct advice_finding *finding, struct arena *arena,
                              Insight__TableAdvice__Finding **out)
{
    PROTO_NEW(arena, *out, INSIGHT__TABLE_ADVICE__FINDING__INIT);
    TRY(rule_message(finding->rule, arena, *out));
    (*out)->is_muted = finding->mute != NULL;
    TRY(text_message(finding->evidence, arena, &(*out)->evidence));
    TRY(range_message(finding, arena, &(*out)->range));
    TRY(key_messages(finding, arena, *out));
    return better_messages(finding, arena, *out);
}

static status mute_messages(const struct advice *advice, struct arena *arena,
                            Insight__TableAdvice *out)
{
    out->mutes = arena_alloc(arena, (advice->mute_count + 1) * sizeof(*out->mutes));
    if (out->mutes == NULL)
        return status_out_of_memory();
    for (; out->n_mutes < advice->mute_count; out->n_mutes++) {
        const struct advice_mute *mute = &advice->mutes[out->n_mutes];
        Insight__AdviceMute *message;
        PROTO_NEW(arena, message, INSIGHT__ADVICE_MUTE__INIT);
        TRY(text_message(mute->rule, arena, &message->rule));
        TRY(text_message(mute->reason, arena, &message->reason));
        TRY(text_message(mute->principal, arena, &message->principal));
        TRY(timestamp_message(mute->since_us, arena, &message->mute_time));
        out->mutes[out->n_mutes] = message;
    }
    return status_ok();
}

static status sample_message(const struct advice_observations *seen,
                             const struct advice_sample *sample, struct arena *arena,
                             Insight__TableAdvice__Sample **out)
{
    PROTO_NEW(arena, *out, INSIGHT__TABLE_ADVICE__SAMPLE__INIT);
    (*out)->rows = (int64_t)seen->row_count;
    (*out)->places = (int64_t)sample->places;
    (*out)->bytes = (int64_t)sample->bytes;
    (*out)->is_cut = sample->is_cut;
    (*out)->is_little = !advice_is_enough(seen, sample);
    return status_ok();
}

status advice_message(const struct advice_observations *seen, const struct advice_sample *sample,
                      const struct advice *advice, struct arena *arena, Insight__TableAdvice **out)
{
    PROTO_NEW(arena, *out, INSIGHT__TABLE_ADVICE__INIT);
    (*out)->table_bytes = (int64_t)seen->table_size;
    (*out)->findings = arena_alloc(arena, advice->count * sizeof(*(*out)->findings));
    if ((*out)->findings == NULL)
        return status_out_of_memory();
    TRY(text_message(seen->table_id, arena, &(*out)->id));
    TRY(sample_message(seen, sample, arena, &(*out)->sample));
    for (; (*out)->n_findings < advice->count; (*out)->n_findings++)
        TRY(finding_message(&advice->findings[(*out)->n_findings], arena,
                            &(*out)->findings[(*out)->n_findings]));
    TRY(text_message(advice_heat_note(seen), arena, &(*out)->note));
    return mute_messages(advice, arena, *out);
}
