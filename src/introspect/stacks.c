/* GetStacks, GetCpuProfile: where the server's threads are, and where their time goes. Either takes
 * a thread of the pool for as long as it lasts. */
#include "os/stacks.h"

#include "introspect/methods.h"

enum {
    SECOND_US = 1000000,
    US_NS = 1000,
    DURATION_LEAST_US = 100000,
    DURATION_MOST_US = 60 * SECOND_US,
    DURATION_PRESET_US = SECOND_US,
    FREQUENCY_MOST = 1000,
    FREQUENCY_PRESET = 99, /* not in step with what happens ten times a second */
};

/* Ends the text, and has it live as long as the answer. */
static status keep_text(const struct admin_request *request, struct buffer *text, const char **out)
{
    *out = text->failed ? NULL : arena_string(request->arena, buffer_bytes(text));
    buffer_free(text);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

status get_stacks(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__GetStacksRequest *message = (const void *)request->message;
    Insight__Stacks *answer;
    struct buffer text = {0};
    TRY(insight_check_server(message->name));
    PROTO_NEW(request->arena, answer, INSIGHT__STACKS__INIT);
    status s = stacks_write(insight_of(request)->stacks, &text);
    if (!status_is_ok(s)) {
        buffer_free(&text);
        return s;
    }
    TRY(keep_text(request, &text, &answer->text));
    *response = &answer->base;
    return status_ok();
}

/* The client may go: what has been taken is then dropped. */
static bool goes_on(void *context)
{
    const struct admin_request *request = context;
    return request->call == NULL || !grpc_call_is_cancelled(request->call);
}

static status read_wishes(const Insight__GetCpuProfileRequest *message,
                          struct stacks_profile *wanted)
{
    const Pb__Duration *duration = message->duration;
    wanted->duration_us = DURATION_PRESET_US;
    if (duration != NULL && (duration->seconds < 0 || duration->seconds > DURATION_MOST_US))
        return status_make(STATUS_INVALID_ARGUMENT, "duration should be from 100 ms to 60 s");
    if (duration != NULL)
        wanted->duration_us = duration->seconds * SECOND_US + duration->nanos / US_NS;
    if (wanted->duration_us < DURATION_LEAST_US || wanted->duration_us > DURATION_MOST_US)
        return status_make(STATUS_INVALID_ARGUMENT, "duration should be from 100 ms to 60 s");
    if (message->frequency < 0 || message->frequency > FREQUENCY_MOST)
        return status_make(STATUS_INVALID_ARGUMENT, "frequency should be from 1 to 1000");
    wanted->per_second = message->frequency == 0 ? FREQUENCY_PRESET : (unsigned)message->frequency;
    return status_ok();
}

status get_cpu_profile(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__GetCpuProfileRequest *message = (const void *)request->message;
    struct stacks_profile wanted = {.goes_on = goes_on, .context = (void *)(uintptr_t)request};
    struct stacks_counts counts;
    Insight__CpuProfile *answer;
    struct buffer text = {0};
    TRY(insight_check_server(message->name));
    TRY(read_wishes(message, &wanted));
    PROTO_NEW(request->arena, answer, INSIGHT__CPU_PROFILE__INIT);
    status s = stacks_profile(insight_of(request)->stacks, &wanted, &text, &counts);
    if (!status_is_ok(s)) {
        buffer_free(&text);
        return s;
    }
    TRY(keep_text(request, &text, &answer->folded));
    answer->samples = (int64_t)counts.samples;
    answer->lost = (int64_t)counts.lost;
    *response = &answer->base;
    return status_ok();
}
