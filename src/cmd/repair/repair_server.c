/* See repair_server.h: it asks trestle.insight.v1.Insight which ranges are damaged, and has the
 * tables repaired one after the other. Nothing is given up that is not named on the disk: of each
 * table it first asks what would be lost. */
#include "cmd/repair/repair_server.h"

#include "client/client_session.h"
#include "cmd/command.h"
#include "cmd/plural.h"
#include "cmd/repair/lost_rows.h"
#include "trestle/insight/v1/insight.pb-c.h"

#include <stdlib.h>
#include <unistd.h>

#define INSIGHT "/trestle.insight.v1.Insight/"

enum { MEMORY_LIMIT = 256 << 20 };

struct repair_options {
    struct target_options target;
    const char *table;
    const char *lost;
    bool in_place;
    bool accept_old_data;
    const char *from;
    const char *backup;
};

/* --- options --- */

#define SERVER(kind, name, place, preset, unit, sentence)                                          \
    TARGET_OPTION(struct repair_options, target.server, kind, name, place, preset, unit, sentence)

#define ROW(kind_, member_, preset_, unit_, sentence_)                                             \
    {                                                                                              \
        .member = #member_, .kind = OPTION_##kind_,                                                \
        .offset = offsetof(struct repair_options, member_), .preset = preset_, .unit = unit_,      \
        .sentence = sentence_                                                                      \
    }

static const struct option rows[] = {
    SERVER(STRING, "endpoint", address, NULL, "ADDR:PORT", "The running server."),
    SERVER(BOOLEAN, "tls", tls, "false", "",
           "Speaks TLS. The default is true with --ca, or if the endpoint is not loopback."),
    TARGET_CREDENTIAL_ROWS_AS(struct repair_options, target, ""),
    ROW(STRING, table, NULL, "NAME",
        "Only this table, by its full name; by default all that have damage."),
    ROW(BOOLEAN, in_place, "false", "", "Does it; else it only says what would be lost."),
    ROW(BOOLEAN, accept_old_data, "false", "",
        "Keeps what other files have of the rows, which may have been deleted or overwritten."),
    ROW(STRING, from, NULL, "PLACE",
        "The rows become what they were in a whole backup: in, or below, one of the server's "
        "places "
        "of backups."),
    ROW(STRING, backup, NULL, "NAME",
        "With --from: this backup; by default the newest of this server from which the rows can be "
        "read."),
    ROW(STRING, lost, "lost.tsv", "FILE", "What is lost is added here, a range a line."),
};

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle repair"};

void repair_server_write_help(struct buffer *out)
{
    options_write_help(&table, out);
}

static status read_options(const char *const *arguments, struct repair_options *out)
{
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = out, .origins = origins};
    const char *const no_environment[] = {NULL};
    *out = (struct repair_options){.target = {.project = "p", .instance = "i"}};
    TRY(options_read(&table, arguments, no_environment, &values));
    if (out->from == NULL && out->backup != NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "--backup goes with --from");
    if (out->from != NULL && out->accept_old_data)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "--from and --accept-old-data exclude each other");
    return target_options_resolve(&table, origins, &out->target);
}

/* --- calls --- */

struct repair {
    const struct repair_options *options;
    struct client_session *session;
    struct arena *arena;
    struct lost_rows_report report;
    bool is_needed; /* something is out of service */
    size_t left;    /* tables of which nothing can be taken from a backup */
};

/* A call without a deadline: the files around the damage are compacted. Made once: what a first one
 * found lost, a second would not tell. */
static status call(const struct repair *repair, const char *path, const ProtobufCMessage *request,
                   const ProtobufCMessageDescriptor *type, const ProtobufCMessage **out)
{
    const struct session_call made = {.path = path, .request = request, .timeout_us = INT64_MAX};
    return client_session_ask(repair->session, &made, type, repair->arena, out);
}

static status ask(const struct repair *repair, const char *name, bool is_trial,
                  const Insight__RepairTableResponse **out)
{
    const struct repair_options *options = repair->options;
    Insight__RepairTableRequest request = INSIGHT__REPAIR_TABLE_REQUEST__INIT;
    const ProtobufCMessage *message;
    request.name = name;
    request.accept_old_data = options->accept_old_data;
    request.validate_only = is_trial;
    request.place = options->from != NULL ? options->from : "";
    request.backup = options->backup != NULL ? options->backup : "";
    TRY(call(repair, INSIGHT "RepairTable", &request.base,
             &insight__repair_table_response__descriptor, &message));
    *out = (const void *)message;
    return status_ok();
}

/* --- a table --- */

static struct lost_range range_of(const Insight__DamagedRange *range)
{
    return (struct lost_range){.table = range->table,
                               .from = proto_bytes(range->start_key),
                               .to = proto_bytes(range->end_key),
                               .words = range->text};
}

static bool has_range(const Insight__RepairTableResponse *answer,
                      const Insight__DamagedRange *range)
{
    for (size_t i = 0; i < answer->n_lost; i++) {
        const Insight__DamagedRange *at = answer->lost[i];
        if (bytes_equal(proto_bytes(at->start_key), proto_bytes(range->start_key)) &&
            bytes_equal(proto_bytes(at->end_key), proto_bytes(range->end_key)) &&
            at->large_cells == range->large_cells)
            return true;
    }
    return false;
}

static status name_all(struct repair *repair, const Insight__RepairTableResponse *answer)
{
    for (size_t i = 0; i < answer->n_lost; i++) {
        const struct lost_range range = range_of(answer->lost[i]);
        TRY(lost_rows_name(&repair->report, &range));
    }
    return status_ok();
}

static void print_all(struct repair *repair, const Insight__RepairTableResponse *answer)
{
    for (size_t i = 0; i < answer->n_lost; i++) {
        const struct lost_range range = range_of(answer->lost[i]);
        lost_rows_print(&repair->report, &range);
    }
}

/* The repair has looked at the files once more: some may be sound, others damaged elsewhere. */
static status take_back(struct repair *repair, const Insight__RepairTableResponse *foreseen,
                        const Insight__RepairTableResponse *lost)
{
    for (size_t i = 0; i < foreseen->n_lost; i++) {
        const struct lost_range range = range_of(foreseen->lost[i]);
        if (!has_range(lost, foreseen->lost[i]))
            TRY(lost_rows_take_back(&repair->report, &range));
    }
    return status_ok();
}

static status name_unforeseen(struct repair *repair, const Insight__RepairTableResponse *foreseen,
                              const Insight__RepairTableResponse *lost)
{
    for (size_t i = 0; i < lost->n_lost; i++) {
        const struct lost_range range = range_of(lost->lost[i]);
        if (!has_range(foreseen, lost->lost[i]))
            TRY(lost_rows_name(&repair->report, &range));
    }
    return status_ok();
}

/* How much of it was done is not known. */
static void print_uncertain(const Insight__RepairTableResponse *foreseen)
{
    for (size_t i = 0; i < foreseen->n_lost; i++)
        fprintf(stderr, "may be lost: %s\n", foreseen->lost[i]->text);
}

/* After all of it is named. The losses are printed before the file is corrected, which may fail. */
static status give_up(struct repair *repair, const char *name,
                      const Insight__RepairTableResponse *foreseen)
{
    const Insight__RepairTableResponse *lost;
    status s = ask(repair, name, false, &lost);
    if (!status_is_ok(s)) {
        print_uncertain(foreseen);
        return s;
    }
    print_all(repair, lost);
    TRY(take_back(repair, foreseen, lost));
    return name_unforeseen(repair, foreseen, lost);
}

/* Other tables may have what this one lacks. */
static bool is_of_table(const struct repair *repair, enum status_code code)
{
    return repair->options->from != NULL &&
           (code == STATUS_NOT_FOUND || code == STATUS_DATA_LOSS ||
            code == STATUS_FAILED_PRECONDITION || code == STATUS_UNIMPLEMENTED);
}

static status leave_if_refused(struct repair *repair, const char *name, status s)
{
    if (status_is_ok(s) || !is_of_table(repair, s.code))
        return s;
    fprintf(stderr, "left: %s: nothing can be taken from a backup: %s\n", name, status_message(s));
    repair->left++;
    repair->is_needed = true;
    status_free(s);
    return status_ok();
}

static status repair_table(struct repair *repair, const char *name)
{
    const Insight__RepairTableResponse *foreseen = NULL;
    TRY(leave_if_refused(repair, name, ask(repair, name, true, &foreseen)));
    if (foreseen == NULL || foreseen->n_lost == 0)
        return status_ok();
    repair->is_needed = true;
    TRY(name_all(repair, foreseen));
    if (repair->options->in_place)
        return give_up(repair, name, foreseen);
    print_all(repair, foreseen);
    return status_ok();
}

/* --- all that are damaged --- */

static bool is_first_of_table(Insight__DamagedRange *const *ranges, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(ranges[i]->table, ranges[at]->table) == 0)
            return false;
    return true;
}

static status list(const struct repair *repair, const Insight__ListDamagedRangesResponse **out)
{
    Insight__ListDamagedRangesRequest request = INSIGHT__LIST_DAMAGED_RANGES_REQUEST__INIT;
    const ProtobufCMessage *message;
    request.parent = "servers/self";
    TRY(call(repair, INSIGHT "ListDamagedRanges", &request.base,
             &insight__list_damaged_ranges_response__descriptor, &message));
    *out = (const void *)message;
    return status_ok();
}

static status repair_all(struct repair *repair)
{
    const Insight__ListDamagedRangesResponse *damaged;
    if (repair->options->table != NULL)
        return repair_table(repair, repair->options->table);
    TRY(list(repair, &damaged));
    for (size_t i = 0; i < damaged->n_ranges; i++)
        if (is_first_of_table(damaged->ranges, i))
            TRY(repair_table(repair, damaged->ranges[i]->table));
    return status_ok();
}

static status run(const struct repair_options *options, struct repair *repair)
{
    const struct client_session_options server = {.target = options->target,
                                                  .is_interruptible = true};
    *repair = (struct repair){.options = options,
                              .arena = arena_create(MEMORY_LIMIT),
                              .report = {.is_trial = !options->in_place, .path = options->lost}};
    if (repair->arena == NULL)
        return status_out_of_memory();
    status s = client_session_create(&server, &repair->session);
    if (status_is_ok(s))
        s = repair_all(repair);
    client_session_destroy(repair->session);
    lost_rows_close(&repair->report);
    arena_destroy(repair->arena);
    return s;
}

static void sum_up(const struct repair_options *options, const struct repair *repair)
{
    size_t count = repair->report.count;
    const char *all = options->table == NULL ? "all" : options->table;
    bool is_filled = options->from != NULL;
    const char *ends = is_filled ? "taken from a backup" : "given up";
    if (!repair->is_needed)
        printf("%s: nothing is out of service\n", options->target.server.address);
    else if (!options->in_place)
        printf("%zu range%s to %s; nothing was changed (--in-place does it)\n", count,
               plural(count), is_filled ? "take from a backup" : "give up");
    else if (repair->left > 0)
        printf("%zu range%s %s, named in %s; %zu %s as before\n", count, plural(count), ends,
               options->lost, repair->left,
               repair->left == 1 ? "table is left" : "tables are left");
    else
        printf("%zu range%s %s, named in %s; %s is in service again\n", count, plural(count), ends,
               options->lost, all);
}

int repair_server_command(const char *const *arguments)
{
    struct repair_options options;
    struct repair repair;
    setvbuf(stdout, NULL, _IOLBF, 0);
    status s = read_options(arguments, &options);
    if (!status_is_ok(s))
        return command_refuse("repair", s);
    s = run(&options, &repair);
    if (status_is_ok(s))
        sum_up(&options, &repair);
    bool is_well = repair.left == 0 && (options.in_place || !repair.is_needed);
    return command_end("repair", s, is_well);
}
