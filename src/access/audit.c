/* See audit.h. */
#include "access/audit.h"

#include "access/data_sums.h"
#include "base/check.h"
#include "os/rotated_file.h"
#include "wire/json.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LINE_FIELDS = 12, SECOND_US = 1000000 };

struct audit {
    struct audit_options options;
    struct log log;            /* as the options', of the level that lets lines through */
    struct rotated_file *file; /* NULL: none */
    struct audit_trail *trail;
    struct data_sums *data; /* NULL: they are not wanted */
    int64_t data_since_us;  /* of the steady clock: audit_tick's */

    pthread_mutex_t lock; /* of what follows */
    int64_t second;       /* of the steady clock */
    int64_t told;         /* refusals, in it */
    int64_t untold;       /* refusals since the last line about one */
};

static void set_up(struct audit *audit, const struct audit_options *options)
{
    audit->options = *options;
    audit->log = *options->log;
    audit->log.level = LOG_INFO;
    audit->data_since_us = clock_steady_us(options->clock);
    pthread_mutex_init(&audit->lock, NULL);
}

static status open_file(struct audit *audit)
{
    const struct audit_options *options = &audit->options;
    const struct rotated_file_options file = {.path = options->path,
                                              .bytes_most = options->file_bytes,
                                              .older_most = options->older_files,
                                              .log = options->log};
    return options->path == NULL ? status_ok() : rotated_file_open(&file, &audit->file);
}

status audit_open(const struct audit_options *options, struct audit **out)
{
    struct audit *audit = calloc(1, sizeof *audit);
    *out = NULL;
    if (audit == NULL)
        return status_out_of_memory();
    set_up(audit, options);
    status s = audit_trail_create(clock_wall_us(options->clock), &audit->trail);
    if (status_is_ok(s))
        s = open_file(audit);
    if (status_is_ok(s) && options->data_us > 0)
        s = data_sums_create(&audit->data);
    if (!status_is_ok(s)) {
        audit_close(audit);
        return s;
    }
    *out = audit;
    return s;
}

status audit_reopen(struct audit *audit)
{
    return audit->file == NULL ? status_ok() : rotated_file_reopen(audit->file);
}

struct audit_trail *audit_trail(const struct audit *audit)
{
    return audit->trail;
}

/* --- lines --- */

/* The fields of one, and what was changed. */
struct line {
    size_t count;
    struct log_field fields[LINE_FIELDS + 1];
    const struct audit_changes *changes; /* NULL: nothing is said of it */
};

static void add(struct line *line, struct log_field field)
{
    CHECK(line->count < LINE_FIELDS);
    line->fields[line->count++] = field;
}

static void add_text(struct line *line, const char *name, bytes text)
{
    if (text.size > 0)
        add(line, LOG_TEXT(name, text));
}

static void put_time(struct buffer *json, int64_t now_us)
{
    time_t seconds = (time_t)(now_us / SECOND_US);
    char text[40];
    struct tm utc;
    gmtime_r(&seconds, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    buffer_append_format(json, "\"time\":\"%s.%06dZ\"", text, (int)(now_us % SECOND_US));
}

static void put_field(struct buffer *json, const struct log_field *field)
{
    buffer_append_format(json, "\"%s\":", field->name);
    if (field->kind == LOG_FIELD_INT)
        buffer_append_format(json, "%lld", (long long)field->number);
    else
        json_encode_shown(audit_text(field->text), json);
}

static void put_change(struct buffer *json, const struct audit_change *change)
{
    for (const struct log_field *field = change->fields; field->kind != LOG_FIELD_END; field++) {
        buffer_append_byte(json, field == change->fields ? '{' : ',');
        put_field(json, field);
    }
    buffer_append_byte(json, '}');
}

static void put_changes(struct buffer *json, const struct audit_changes *changes)
{
    buffer_append_bytes(json, bytes_of(",\"changes\":["));
    for (size_t i = 0; i < changes->count; i++) {
        if (i > 0)
            buffer_append_byte(json, ',');
        put_change(json, &changes->list[i]);
    }
    buffer_append_byte(json, ']');
    if (changes->further > 0)
        buffer_append_format(json, ",\"further_changes\":%lld", (long long)changes->further);
}

static bool write_to_file(struct audit *audit, const struct line *line)
{
    struct buffer json = {0};
    buffer_append_byte(&json, '{');
    put_time(&json, clock_wall_us(audit->options.clock));
    for (size_t i = 0; i < line->count; i++) {
        buffer_append_byte(&json, ',');
        put_field(&json, &line->fields[i]);
    }
    if (line->changes != NULL)
        put_changes(&json, line->changes);
    buffer_append_bytes(&json, bytes_of("}\n"));
    bool is_written = !json.failed && rotated_file_write(audit->file, buffer_bytes(&json));
    buffer_free(&json);
    return is_written;
}

static bool write_to_log(struct audit *audit, const struct line *line)
{
    struct buffer text = {0};
    struct line whole = *line;
    if (line->changes != NULL)
        audit_changes_write(line->changes, &text);
    if (text.size > 0 && !text.failed && whole.count < LINE_FIELDS)
        add(&whole, LOG_TEXT("changes", buffer_bytes(&text)));
    log_write(&audit->log, LOG_INFO, "audit", whole.fields);
    buffer_free(&text);
    return true;
}

static void write_line(struct audit *audit, const struct line *line)
{
    bool is_written = audit->file == NULL ? write_to_log(audit, line) : write_to_file(audit, line);
    if (!is_written)
        metrics_add(audit->options.metrics, METRIC_audit_lines_lost_total, 1);
}

static bytes principal_text(bytes principal)
{
    return principal.size > 0 ? principal : bytes_of("-");
}

/* --- what was done with data --- */

struct telling {
    struct audit *audit;
    int64_t us; /* the sums are those of so long */
};

static void tell_sum(void *context, const struct data_sum *sum)
{
    enum { MILLISECOND_US = 1000 };
    const struct telling *telling = context;
    struct line line = {0};
    bool is_of_one = sum->method != NULL; /* else of all that there was no room for */
    add(&line, LOG_STR("event", is_of_one ? "data" : "more_data"));
    if (is_of_one) {
        add(&line, LOG_TEXT("principal", principal_text(sum->principal)));
        add(&line, LOG_STR("service", sum->service));
        add(&line, LOG_STR("method", sum->method));
        add(&line, LOG_TEXT("resource", sum->resource));
    }
    add(&line, LOG_INT("calls", sum->calls));
    add(&line, LOG_INT("failed", sum->failed));
    add(&line, LOG_INT("rows", sum->items));
    add(&line, LOG_INT("request_bytes", sum->request_bytes));
    add(&line, LOG_INT("answer_bytes", sum->response_bytes));
    add(&line, LOG_INT("period_ms", telling->us / MILLISECOND_US));
    write_line(telling->audit, &line);
}

static void tell_of_data(struct audit *audit)
{
    int64_t now = clock_steady_us(audit->options.clock);
    struct telling telling = {.audit = audit, .us = now - audit->data_since_us};
    data_sums_take(audit->data, &telling, tell_sum);
    audit->data_since_us = now;
}

bool audit_wants_data(const struct audit *audit)
{
    return audit->data != NULL;
}

/* Accesses since the last sums are written here, too. */
void audit_close(struct audit *audit)
{
    if (audit == NULL)
        return;
    if (audit->data != NULL)
        tell_of_data(audit);
    data_sums_destroy(audit->data);
    rotated_file_close(audit->file);
    audit_trail_destroy(audit->trail);
    pthread_mutex_destroy(&audit->lock);
    free(audit);
}

/* --- lines that any client can cause --- */

/* Whether a line about a refusal may be written now, and how many have been left out before. */
static bool take_refusal(struct audit *audit, int64_t *untold)
{
    int64_t second = clock_steady_us(audit->options.clock) / SECOND_US;
    pthread_mutex_lock(&audit->lock);
    if (second != audit->second)
        audit->told = 0;
    audit->second = second;
    bool may = audit->told < audit->options.refusals_most;
    *untold = audit->untold;
    audit->told += may;
    audit->untold = may ? 0 : audit->untold + 1;
    pthread_mutex_unlock(&audit->lock);
    return may;
}

static bool has_untold(struct audit *audit)
{
    int64_t second = clock_steady_us(audit->options.clock) / SECOND_US;
    pthread_mutex_lock(&audit->lock);
    bool has = audit->untold > 0 && second > audit->second;
    pthread_mutex_unlock(&audit->lock);
    return has;
}

static void tell_untold(struct audit *audit)
{
    struct line line = {0};
    int64_t untold;
    if (!has_untold(audit) || !take_refusal(audit, &untold))
        return;
    add(&line, LOG_STR("event", "untold"));
    add(&line, LOG_INT("untold", untold));
    write_line(audit, &line);
}

void audit_tick(struct audit *audit)
{
    int64_t now = clock_steady_us(audit->options.clock);
    tell_untold(audit);
    if (audit->data != NULL && now - audit->data_since_us >= audit->options.data_us)
        tell_of_data(audit);
}

/* --- calls --- */

static bool is_refusal(enum status_code code)
{
    return code == STATUS_UNAUTHENTICATED || code == STATUS_PERMISSION_DENIED;
}

/* Of what is cut short: what it says of people, for people to read. */
static void keep(struct audit *audit, const struct access_caller *caller,
                 const struct grpc_call_record *record)
{
    struct buffer changes = {0};
    if (caller->changes != NULL)
        audit_changes_write(caller->changes, &changes);
    const struct audit_entry entry = {.ended_us = clock_wall_us(audit->options.clock),
                                      .duration_us = record->duration_us,
                                      .code = record->code,
                                      .service = record->service->name,
                                      .method = record->method->name,
                                      .principal = caller->principal,
                                      .resource = caller->resource,
                                      .source = caller->source,
                                      .changes = changes.failed ? bytes_make(NULL, 0)
                                                                : buffer_bytes(&changes),
                                      .address = bytes_of(caller->address)};
    audit_trail_add(audit->trail, &entry);
    buffer_free(&changes);
}

static bytes reason_of(const struct grpc_call_record *record)
{
    bool has_failed = record->end != NULL && !status_is_ok(*record->end);
    return bytes_of(has_failed ? status_message(*record->end) : "");
}

static void describe_call(const struct access_caller *caller, const struct grpc_call_record *record,
                          struct line *line)
{
    add(line, LOG_STR("event", caller->is_administration ? "call" : "refusal"));
    add(line, LOG_TEXT("principal", principal_text(caller->principal)));
    add(line, LOG_STR("service", record->service->name));
    add(line, LOG_STR("method", record->method->name));
    add(line, LOG_TEXT("resource", caller->resource));
    add_text(line, "source", caller->source);
    add(line, LOG_STR("status", status_code_name(record->code)));
    add_text(line, "reason", reason_of(record));
    add(line, LOG_INT("duration_us", record->duration_us));
    add(line, LOG_STR("peer", caller->address));
    line->changes = caller->changes;
}

void audit_call(struct audit *audit, const struct access_caller *caller,
                const struct grpc_call_record *record)
{
    struct line line = {0};
    int64_t untold = 0;
    if (caller->is_poll && record->code == STATUS_OK)
        return;
    if (!caller->is_administration && !is_refusal(record->code)) {
        if (audit->data != NULL)
            data_sums_add(audit->data, caller->principal, caller->resource, record);
        return;
    }
    bool is_anybodys = !caller->is_administration || record->code == STATUS_UNAUTHENTICATED;
    if (is_anybodys && !take_refusal(audit, &untold))
        return;
    if (caller->is_administration)
        keep(audit, caller, record);
    describe_call(caller, record, &line);
    if (untold > 0)
        add(&line, LOG_INT("untold", untold));
    write_line(audit, &line);
}

void audit_ended(struct audit *audit, const struct audit_run *run)
{
    struct line line = {0};
    add(&line, LOG_STR("event", "ended"));
    add(&line, LOG_TEXT("principal", principal_text(run->principal)));
    add(&line, LOG_STR("service", run->service));
    add(&line, LOG_STR("method", run->method));
    add(&line, LOG_TEXT("resource", run->resource));
    add_text(&line, "source", run->source);
    add(&line, LOG_STR("status", status_code_name(run->code)));
    add_text(&line, "reason", bytes_of(run->reason));
    add(&line, LOG_INT("duration_us", run->duration_us));
    write_line(audit, &line);
}

/* --- what is no call --- */

void audit_refused_page(struct audit *audit, const char *page, bytes principal, const char *address,
                        status why)
{
    struct line line = {0};
    int64_t untold;
    if (!is_refusal(why.code) || !take_refusal(audit, &untold))
        return;
    add(&line, LOG_STR("event", "refusal"));
    add(&line, LOG_TEXT("principal", principal_text(principal)));
    add(&line, LOG_STR("page", page));
    add(&line, LOG_STR("status", status_code_name(why.code)));
    add(&line, LOG_STR("reason", status_message(why)));
    add(&line, LOG_STR("peer", address == NULL ? "-" : address));
    if (untold > 0)
        add(&line, LOG_INT("untold", untold));
    write_line(audit, &line);
}

void audit_reload(struct audit *audit, const char *what, status result,
                  const struct audit_changes *changes)
{
    struct line line = {.changes = changes};
    add(&line, LOG_STR("event", "reload"));
    add(&line, LOG_STR("what", what));
    add(&line, LOG_STR("status", status_code_name(result.code)));
    add_text(&line, "reason", bytes_of(status_is_ok(result) ? "" : status_message(result)));
    write_line(audit, &line);
}
