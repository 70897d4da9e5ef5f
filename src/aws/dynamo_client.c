/* See dynamo_client.h.
 *
 *     start ──► signed and sent ──► answered ──► done
 *                    ▲                 │ throttled, broken, no answer
 *                    └──── waits ◄─────┘ */
#include "aws/dynamo_client.h"

#include "aws/endpoint.h"
#include "base/check.h"

#include <stdlib.h>
#include <strings.h>

enum {
    /* A page of Scan is 1 MB of items as DynamoDB counts; JSON may make some tenfold of that. */
    ANSWER_MOST = 32 << 20,
    TIMEOUT_US = 60 * 1000 * 1000,
    FIRST_WAIT_US = 50 * 1000, /* twice as long each time */
    WAIT_MOST_US = 10 * 1000 * 1000,
    PATIENCE_US = 60 * 1000 * 1000,
    PATIENCE_THROTTLED_US = 10 * 60 * 1000 * 1000,
    ATTEMPTS = 5, /* at least: one that gets no answer takes a minute by itself */
    OK_STATUS = 200,
    TOO_MANY_STATUS = 429,
    BROKEN_STATUS = 500, /* and those above */
};

struct dynamo_client {
    struct dynamo_client_options options;
    struct http_client *http;
    struct buffer urls[2]; /* by enum dynamo_api; with a NUL, as the next */
    struct buffer hosts[2];
    uint64_t random;
};

/* --- making and ending --- */

static const char *const prefixes[] = {
    [DYNAMO_TABLES] = "DynamoDB_20120810", [DYNAMO_STREAMS] = "DynamoDBStreams_20120810"};

static status name_hosts(struct dynamo_client *client, const char *host, const char *scheme)
{
    for (size_t i = 0; i < 2; i++) {
        buffer_append_format(&client->hosts[i], "%s%c", host, 0);
        buffer_append_format(&client->urls[i], "%s%s/%c", scheme, host, 0);
        if (client->hosts[i].failed || client->urls[i].failed)
            return status_out_of_memory();
    }
    return status_ok();
}

/* An endpoint of the user's does both. */
static status take_endpoint(struct dynamo_client *client, const char *endpoint)
{
    const char *scheme;
    struct buffer host = {0};
    status s = aws_endpoint_parse(endpoint, &scheme, &host);
    if (status_is_ok(s))
        s = name_hosts(client, (const char *)host.data, scheme);
    buffer_free(&host);
    return s;
}

static status take_region(struct dynamo_client *client, const char *region)
{
    const char *end = strncmp(region, "cn-", 3) == 0 ? ".amazonaws.com.cn" : ".amazonaws.com";
    for (size_t i = 0; i < 2; i++) {
        buffer_append_format(&client->hosts[i], "%sdynamodb.%s%s%c",
                             i == DYNAMO_STREAMS ? "streams." : "", region, end, 0);
        if (client->hosts[i].failed)
            return status_out_of_memory();
        buffer_append_format(&client->urls[i], "https://%s/%c", (const char *)client->hosts[i].data,
                             0);
        if (client->urls[i].failed)
            return status_out_of_memory();
    }
    return status_ok();
}

static status open_client(struct dynamo_client *client)
{
    const struct dynamo_client_options *options = &client->options;
    const char *ca = options->ca != NULL ? options->ca : getenv("AWS_CA_BUNDLE");
    TRY(options->endpoint != NULL ? take_endpoint(client, options->endpoint)
                                  : take_region(client, options->credentials->region));
    return http_client_create(options->loop, ca, &client->http);
}

status dynamo_client_create(const struct dynamo_client_options *options, struct dynamo_client **out)
{
    struct dynamo_client *client = *out = calloc(1, sizeof *client);
    if (client == NULL)
        return status_out_of_memory();
    client->options = *options;
    client->random = (uint64_t)clock_steady_us(loop_clock(options->loop));
    status s = open_client(client);
    if (status_is_ok(s))
        return s;
    dynamo_client_destroy(client);
    *out = NULL;
    return s;
}

void dynamo_client_destroy(struct dynamo_client *client)
{
    if (client == NULL)
        return;
    http_client_destroy(client->http);
    for (size_t i = 0; i < 2; i++) {
        buffer_free(&client->urls[i]);
        buffer_free(&client->hosts[i]);
    }
    free(client);
}

struct loop *dynamo_client_loop(const struct dynamo_client *client)
{
    return client->options.loop;
}

/* --- what went wrong --- */

struct failure {
    const char *type; /* as DynamoDB calls it, behind the namespace */
    enum status_code code;
};

/* Failures after which a call may be made again have UNAVAILABLE, or RESOURCE_EXHAUSTED if it is
 * throttled. */
static const struct failure failures[] = {
    {"AccessDeniedException", STATUS_PERMISSION_DENIED},
    {"ExpiredIteratorException", STATUS_ABORTED},
    {"ExpiredTokenException", STATUS_UNAUTHENTICATED},
    {"IncompleteSignatureException", STATUS_UNAUTHENTICATED},
    {"InternalFailure", STATUS_UNAVAILABLE},
    {"InternalServerError", STATUS_UNAVAILABLE},
    {"InvalidSignatureException", STATUS_UNAUTHENTICATED},
    {"LimitExceededException", STATUS_RESOURCE_EXHAUSTED},
    {"MissingAuthenticationTokenException", STATUS_UNAUTHENTICATED},
    {"ProvisionedThroughputExceededException", STATUS_RESOURCE_EXHAUSTED},
    {"RequestLimitExceeded", STATUS_RESOURCE_EXHAUSTED},
    {"ResourceNotFoundException", STATUS_NOT_FOUND},
    {"SerializationException", STATUS_INVALID_ARGUMENT},
    {"ServiceUnavailable", STATUS_UNAVAILABLE},
    {"ThrottlingException", STATUS_RESOURCE_EXHAUSTED},
    {"TrimmedDataAccessException", STATUS_DATA_LOSS},
    {"UnrecognizedClientException", STATUS_UNAUTHENTICATED},
    {"ValidationException", STATUS_INVALID_ARGUMENT},
};

static enum status_code code_of(const char *type, unsigned http_status)
{
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        if (strcmp(failures[i].type, type) == 0)
            return failures[i].code;
    if (http_status == TOO_MANY_STATUS)
        return STATUS_RESOURCE_EXHAUSTED;
    return http_status >= BROKEN_STATUS ? STATUS_UNAVAILABLE : STATUS_FAILED_PRECONDITION;
}

/* {"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"…"} */
static status failure_of(const struct dynamo_call *call)
{
    enum { SHOWN_MOST = 500 };
    bytes text = buffer_bytes(&call->http.answer);
    json_t *json = text.size == 0 ? NULL : json_loadb((const char *)text.data, text.size, 0, NULL);
    const char *type = json_string_value(json_object_get(json, "__type"));
    const char *words = json_string_value(json_object_get(json, "message"));
    if (words == NULL)
        words = json_string_value(json_object_get(json, "Message"));
    const char *mark = type == NULL ? NULL : strrchr(type, '#');
    if (mark != NULL)
        type = mark + 1;
    status s =
        status_make(code_of(type == NULL ? "" : type, call->http.http_status),
                    "%s: HTTP status %u%s%.100s%s%.*s", call->operation, call->http.http_status,
                    type == NULL ? "" : ", ", type == NULL ? "" : type, words == NULL ? "" : ": ",
                    SHOWN_MOST, words == NULL ? "" : words);
    json_decref(json);
    return s;
}

static status take_outcome(struct dynamo_call *call)
{
    status s = call->http.outcome;
    if (!status_is_ok(s)) {
        enum status_code code = s.code;
        return status_make(code, "%s: %s", call->operation, status_message(s));
    }
    return call->http.http_status == OK_STATUS ? status_ok() : failure_of(call);
}

/* --- calls --- */

static void end_call(struct dynamo_call *call)
{
    call->is_under_way = false;
    call->server_us = call->http.server_us;
    call->answer = buffer_bytes(&call->http.answer);
    if (call->done != NULL)
        call->done(call);
}

static int64_t now_us(const struct dynamo_client *client)
{
    return clock_steady_us(loop_clock(client->options.loop));
}

/* Between half of the time and all of it, so that calls that failed together come apart. */
static int64_t spread(struct dynamo_client *client, int64_t us)
{
    client->random = client->random * 6364136223846793005u + 1442695040888963407u;
    return us / 2 + (int64_t)((client->random >> 33) % (uint64_t)(us / 2));
}

static bool is_worth_it(const struct dynamo_call *call)
{
    int64_t patience = call->client->options.patience_us;
    bool is_throttled = call->outcome.code == STATUS_RESOURCE_EXHAUSTED;
    if (call->outcome.code != STATUS_UNAVAILABLE &&
        !(is_throttled && status_is_ok(call->http.outcome)))
        return false;
    if (patience == 0 && call->attempts < ATTEMPTS)
        return true;
    if (patience == 0)
        patience = is_throttled ? PATIENCE_THROTTLED_US : PATIENCE_US;
    return now_us(call->client) - call->began_us < patience;
}

/* Sets the timer for another attempt, if that may help; else the call has ended. */
static void retry_or_end(struct dynamo_call *call)
{
    struct dynamo_client *client = call->client;
    if (status_is_ok(call->outcome) || !is_worth_it(call)) {
        end_call(call);
        return;
    }
    call->wait_us = call->wait_us == 0 ? FIRST_WAIT_US : 2 * call->wait_us;
    if (call->wait_us > WAIT_MOST_US)
        call->wait_us = WAIT_MOST_US;
    status s = loop_timer_set(client->options.loop, &call->timer,
                              now_us(client) + spread(client, call->wait_us));
    if (status_is_ok(s))
        return;
    status_free(call->outcome);
    call->outcome = s;
    end_call(call);
}

static void answered(struct http_call *http)
{
    struct dynamo_call *call = LIST_ENTRY(http, struct dynamo_call, http);
    status_free(call->outcome);
    call->outcome = take_outcome(call);
    retry_or_end(call);
}

static status send_signed(struct dynamo_call *call, const char *target)
{
    struct dynamo_client *client = call->client;
    const struct aws_credentials *credentials = client->options.credentials;
    char time[AWS_TIME_SIZE];
    struct buffer authorization = {0};
    aws_time_format(clock_wall_us(loop_clock(client->options.loop)), time);
    /* Sorted by name; the last two are not signed. */
    struct aws_header headers[6] = {{"content-type", "application/x-amz-json-1.0"},
                                    {"host", (const char *)client->hosts[call->api].data},
                                    {"x-amz-date", time}};
    size_t count = 3;
    if (credentials->session_token != NULL)
        headers[count++] = (struct aws_header){"x-amz-security-token", credentials->session_token};
    headers[count++] = (struct aws_header){"x-amz-target", target};
    const struct aws_signer signer = {.access_key = credentials->access_key,
                                      .secret_key = credentials->secret_key,
                                      .region = credentials->region,
                                      .service = "dynamodb"};
    const struct aws_request request = {.method = "POST",
                                        .path = "/",
                                        .headers = headers,
                                        .header_count = count,
                                        .body = buffer_bytes(&call->body)};
    status s = aws_sign(&signer, &request, time, &authorization);
    buffer_append_byte(&authorization, '\0');
    if (status_is_ok(s) && authorization.failed)
        s = status_out_of_memory();
    if (status_is_ok(s)) {
        headers[count++] = (struct aws_header){"authorization", (const char *)authorization.data};
        const struct http_request post = {.url = (const char *)client->urls[call->api].data,
                                          .headers = headers,
                                          .header_count = count,
                                          .body = buffer_bytes(&call->body),
                                          .timeout_us = TIMEOUT_US,
                                          .answer_most = ANSWER_MOST};
        s = http_post(client->http, &call->http, &post);
    }
    buffer_free(&authorization);
    return s;
}

/* From the loop. */
static void attempt(struct timer *timer)
{
    struct dynamo_call *call = LIST_ENTRY(timer, struct dynamo_call, timer);
    struct buffer target = {0};
    call->attempts++;
    buffer_append_format(&target, "%s.%s%c", prefixes[call->api], call->operation, 0);
    status s =
        target.failed ? status_out_of_memory() : send_signed(call, (const char *)target.data);
    buffer_free(&target);
    if (status_is_ok(s))
        return;
    status_free(call->outcome);
    call->outcome = s;
    end_call(call);
}

static bool write_body(struct dynamo_call *call, json_t *body)
{
    char *text = body == NULL ? NULL : json_dumps(body, JSON_COMPACT);
    buffer_clear(&call->body);
    if (text != NULL)
        buffer_append_bytes(&call->body, bytes_of(text));
    bool is_written = text != NULL && !call->body.failed;
    free(text);
    json_decref(body);
    return is_written;
}

void dynamo_call_start(struct dynamo_client *client, struct dynamo_call *call, enum dynamo_api api,
                       const char *operation, json_t *body)
{
    CHECK(!call->is_under_way);
    status_free(call->outcome);
    call->outcome = status_ok();
    call->client = client;
    call->api = api;
    call->operation = operation;
    call->is_under_way = true;
    call->http.done = answered;
    call->timer.run = attempt;
    call->began_us = now_us(client);
    call->wait_us = 0;
    call->attempts = 0;
    /* By the timer, so that `done` always comes from the loop. */
    status s = write_body(call, body)
                   ? loop_timer_set(client->options.loop, &call->timer, call->began_us)
                   : status_out_of_memory();
    if (status_is_ok(s))
        return;
    call->outcome = s;
    end_call(call);
}

void dynamo_call_clear(struct dynamo_call *call)
{
    if (call->client != NULL)
        loop_timer_clear(call->client->options.loop, &call->timer);
    http_call_clear(&call->http);
    status_free(call->outcome);
    buffer_free(&call->body);
    *call = (struct dynamo_call){.done = call->done, .context = call->context};
}

static void stop_loop(struct dynamo_call *call)
{
    loop_stop(call->client->options.loop);
}

static status parse(const struct dynamo_call *call, json_t **out)
{
    json_error_t error;
    *out = json_loadb((const char *)call->answer.data, call->answer.size, 0, &error);
    return *out != NULL ? status_ok()
                        : status_make(STATUS_DATA_LOSS, "%s: the answer is no JSON: %s",
                                      call->operation, error.text);
}

status dynamo_client_call(struct dynamo_client *client, enum dynamo_api api, const char *operation,
                          json_t *body, int64_t *server_us, json_t **out)
{
    struct dynamo_call call = {.done = stop_loop};
    *out = NULL;
    dynamo_call_start(client, &call, api, operation, body);
    while (call.is_under_way)
        loop_run(client->options.loop);
    status s = call.outcome;
    call.outcome = status_ok();
    if (status_is_ok(s))
        s = parse(&call, out);
    if (server_us != NULL)
        *server_us = call.server_us;
    dynamo_call_clear(&call);
    return s;
}
