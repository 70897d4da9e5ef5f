/* `trestle copy`: a table of one Bigtable endpoint into another.
 *
 *     ReadRows of several ranges ─► rows with all their cells ─► MutateRows
 *
 * Cells keep their timestamps, so copying a row twice changes nothing. One event loop carries both
 * sides. With --follow the source's changes are replayed behind that: copy_follow.h. */
#include "cmd/transfer/copy.h"

#include "cmd/command.h"
#include "cmd/transfer/copy_follow.h"
#include "cmd/transfer/import.h"
#include "cmd/transfer/row_bounds.h"
#include "transfer/endpoint_source.h"

enum { SETUP_LIMIT = 64 << 20 };

#define US_PER_DAY  (24LL * 3600 * 1000 * 1000)
#define US_PER_WEEK (7 * US_PER_DAY)

struct copy_options {
    struct target_options from;
    struct target_options to;
    struct transfer_options transfer;
    const char *table; /* of the source */
    const char *to_table;
    const char *prefix;
    const char *start;
    const char *end;
    const char *families; /* a regular expression */
    uint64_t versions;
    uint64_t streams;
    bool follow;
    bool until_caught_up;
    bool changes_only;
    bool with_gc;
    const char *state; /* a file; NULL: where it is by default */
    int64_t stream_retention;
};

/* --- options --- */

#define ROW(kind_, member_, preset_, most_, unit_, sentence_)                                      \
    {                                                                                              \
        .member = #member_, .kind = OPTION_##kind_,                                                \
        .offset = offsetof(struct copy_options, member_), .preset = preset_, .most = most_,        \
        .unit = unit_, .sentence = sentence_                                                       \
    }

static const struct option rows[] = {
    TARGET_OPTION_ROWS_AS(struct copy_options, from, "from_", "source's "),
    TARGET_OPTION_ROWS_AS(struct copy_options, to, "", "target's "),
    ROW(STRING, to_table, NULL, 0, "NAME",
        "What the table is called there; by default as it is here. It is made, with the same "
        "families, if it is not there."),
    ROW(STRING, prefix, NULL, 0, "TEXT", "Only rows whose keys begin so."),
    ROW(STRING, start, NULL, 0, "KEY", "Only rows from this key on."),
    ROW(STRING, end, NULL, 0, "KEY", "Only rows before this key."),
    ROW(STRING, families, NULL, 0, "REGEX", "Only families whose names match (RE2)."),
    ROW(INTEGER, versions, "0", INT32_MAX, "N", "The N newest cells of each column; 0: all."),
    ROW(INTEGER, streams, "4", 64, "N", "Ranges of rows that are read at a time."),
    ROW(BOOLEAN, follow, "false", 0, "",
        "Behind the rows, replays what changes in the source, until SIGINT or SIGTERM."),
    ROW(BOOLEAN, until_caught_up, "false", 0, "",
        "With --follow: until all is written that was committed before the changes' turn came."),
    ROW(BOOLEAN, changes_only, "false", 0, "",
        "With --follow: copies no rows; the target's table is there, and has what the source's has "
        "now."),
    ROW(BOOLEAN, with_gc, "false", 0, "",
        "With --follow: deletes what the source has collected also in families that the target "
        "collects by the same rule."),
    ROW(STRING, state, NULL, 0, "FILE",
        "With --follow: where it notes how far it has come; by default a row of the target's "
        "table " POSITIONS_TABLE ", or, if that is Google's service, TABLE.follow."),
    ROW(DURATION, stream_retention, "0", US_PER_WEEK, "1d..7d",
        "With --follow: switches the source's change stream on, if it is off, and keeps changes "
        "for so long. It stays on."),
    TRANSFER_OPTION_ROWS(struct copy_options, transfer),
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle copy TABLE"};

static void write_help(struct buffer *out)
{
    options_write_help(&table, out);
}

/* What changes is told of whole columns, and of all families. */
static status check_follow(const struct copy_options *options)
{
    bool has_others = options->until_caught_up || options->changes_only || options->with_gc ||
                      options->state != NULL || options->stream_retention != 0;
    if (!options->follow)
        return has_others ? status_make(STATUS_INVALID_ARGUMENT,
                                        "--until-caught-up, --changes-only, --with-gc, --state "
                                        "and --stream-retention go with --follow")
                          : status_ok();
    if (options->families != NULL || options->versions > 0)
        return status_make(STATUS_INVALID_ARGUMENT, "--follow excludes --families and --versions");
    if (options->transfer.dry_run || options->transfer.verify == VERIFY_FULL)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "--follow excludes --dry-run and --verify full");
    if (options->stream_retention != 0 && options->stream_retention < US_PER_DAY)
        return status_make(STATUS_INVALID_ARGUMENT, "--stream-retention is 1d at least");
    return status_ok();
}

static status check(const struct copy_options *options)
{
    TRY(check_follow(options));
    if (options->prefix != NULL && (options->start != NULL || options->end != NULL))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "--prefix and --start or --end exclude each other");
    if (options->streams == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "--streams is 1 at least");
    bool is_same = strcmp(options->from.server.address, options->to.server.address) == 0 &&
                   strcmp(options->from.project, options->to.project) == 0 &&
                   strcmp(options->from.instance, options->to.instance) == 0 &&
                   strcmp(options->table, options->to_table) == 0;
    if (is_same)
        return status_make(STATUS_INVALID_ARGUMENT, "source and target are the same table");
    return status_ok();
}

static status read_options(const char *const *arguments, struct copy_options *out)
{
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = out, .origins = origins};
    const char *const no_environment[] = {NULL};
    *out = (struct copy_options){0};
    TRY(command_need_words(arguments, 1, "the table comes first"));
    TRY(options_read(&table, arguments + 1, no_environment, &values));
    out->table = arguments[0];
    if (out->to_table == NULL)
        out->to_table = out->table;
    TRY(target_options_resolve_as(&table, origins, "from_", &out->from));
    TRY(target_options_resolve(&table, origins, &out->to));
    return check(out);
}

/* --- what is read --- */

static status make_filter(const struct copy_options *options, struct arena *arena,
                          const Bt__RowFilter **out)
{
    Bt__RowFilter *families, *versions, *chain;
    *out = NULL;
    PROTO_NEW(arena, families, BT__ROW_FILTER__INIT);
    PROTO_NEW(arena, versions, BT__ROW_FILTER__INIT);
    PROTO_NEW(arena, chain, BT__ROW_FILTER__INIT);
    families->filter_case = BT__ROW_FILTER__FILTER_FAMILY_NAME_REGEX_FILTER;
    families->family_name_regex_filter = options->families;
    versions->filter_case = BT__ROW_FILTER__FILTER_CELLS_PER_COLUMN_LIMIT_FILTER;
    versions->cells_per_column_limit_filter = (int32_t)options->versions;
    chain->filter_case = BT__ROW_FILTER__FILTER_CHAIN;
    PROTO_NEW(arena, chain->chain, BT__ROW_FILTER__CHAIN__INIT);
    chain->chain->filters = arena_alloc(arena, 2 * sizeof *chain->chain->filters);
    if (chain->chain->filters == NULL)
        return status_out_of_memory();
    if (options->families != NULL)
        chain->chain->filters[chain->chain->n_filters++] = families;
    if (options->versions > 0)
        chain->chain->filters[chain->chain->n_filters++] = versions;
    if (chain->chain->n_filters == 1) /* a chain has two at least */
        *out = chain->chain->filters[0];
    else if (chain->chain->n_filters == 2)
        *out = chain;
    return status_ok();
}

/* --- the copy --- */

struct copy {
    const struct copy_options *options;
    struct arena *arena;
    struct client_session *session; /* of the source */
    struct buffer table;            /* its full name, and a NUL */
    struct buffer identity;         /* of the copying of its rows */
    struct buffer followed;         /* what is followed into what, in words, and a NUL */
    bytes start;                    /* of the rows that are wanted */
    bytes end;
    struct copy_follow *follow; /* NULL: only the rows are copied */
};

static void append_place(struct buffer *out, const struct target_options *target,
                         const char *table_id)
{
    buffer_append_format(out, "projects/%s/instances/%s/tables/%s", target->project,
                         target->instance, table_id);
}

static const char *or_nothing(const char *text)
{
    return text == NULL ? "" : text;
}

static void name_rows(struct copy *copy)
{
    const struct copy_options *o = copy->options;
    buffer_append_format(&copy->identity, "%s ", o->from.server.address);
    append_place(&copy->identity, &o->from, o->table);
    buffer_append_format(&copy->identity, " to %s ", o->to.server.address);
    append_place(&copy->identity, &o->to, o->to_table);
    buffer_append_format(&copy->identity, "; %s %s %s %s %llu%c", or_nothing(o->prefix),
                         or_nothing(o->start), or_nothing(o->end), or_nothing(o->families),
                         (unsigned long long)o->versions, 0);
}

/* Without addresses: a server may move, and a stream's tokens are believed by none but its own. */
static void name_followed(struct copy *copy)
{
    const struct copy_options *o = copy->options;
    append_place(&copy->followed, &o->from, o->table);
    buffer_append_bytes(&copy->followed, bytes_of(" to "));
    append_place(&copy->followed, &o->to, o->to_table);
    buffer_append_format(&copy->followed, "; %s %s %s%c", or_nothing(o->prefix),
                         or_nothing(o->start), or_nothing(o->end), 0);
}

static status name_things(struct copy *copy)
{
    buffer_append_format(&copy->table, "%s/tables/%s%c", client_session_instance(copy->session),
                         copy->options->table, 0);
    name_rows(copy);
    name_followed(copy);
    bool failed = copy->table.failed || copy->identity.failed || copy->followed.failed;
    return failed ? status_out_of_memory() : status_ok();
}

static status open_source(struct copy *copy)
{
    const struct copy_options *o = copy->options;
    const struct client_session_options server = {.target = o->from};
    copy->arena = arena_create(SETUP_LIMIT);
    if (copy->arena == NULL)
        return status_out_of_memory();
    TRY(client_session_create(&server, &copy->session));
    TRY(name_things(copy));
    return row_bounds_find(o->prefix, o->start, o->end, copy->arena, &copy->start, &copy->end);
}

/* --- its rows --- */

/* A table that is made is cut where the source is, so that writes spread from the first on. */
static status find_splits(const struct copy *copy, const struct endpoint_source *source,
                          struct import_target *target)
{
    size_t count = endpoint_source_range_count(source);
    bytes *splits = arena_alloc(copy->arena, count * sizeof *splits);
    if (splits == NULL)
        return status_out_of_memory();
    for (size_t i = 1; i < count; i++)
        splits[i - 1] = endpoint_source_range_start(source, i);
    target->splits = splits;
    target->split_count = count - 1;
    return status_ok();
}

static status import_rows(struct copy *copy, struct endpoint_source *from, bool *is_perfect)
{
    const struct copy_options *o = copy->options;
    struct import_target target = {.server = &o->to, .table_id = o->to_table};
    TRY(transfer_get_schema(copy->session, o->table, copy->arena, &target.schema));
    TRY(find_splits(copy, from, &target));
    target.loop = client_session_loop(copy->session);
    target.identity = (const char *)copy->identity.data;
    const struct transfer_source source = endpoint_source_interface(from);
    return import_run(&o->transfer, &target, &source, is_perfect);
}

static status copy_rows(struct copy *copy, bool *is_perfect)
{
    struct endpoint_source *from;
    struct endpoint_source_options wanted = {.session = copy->session,
                                             .table = (const char *)copy->table.data,
                                             .at_a_time = (unsigned)copy->options->streams,
                                             .start = copy->start,
                                             .end = copy->end};
    TRY(make_filter(copy->options, copy->arena, &wanted.filter));
    TRY(endpoint_source_create(&wanted, &from));
    status s = import_rows(copy, from, is_perfect);
    endpoint_source_destroy(from);
    return s;
}

/* --- and its changes --- */

static status begin_following(struct copy *copy, bool *must_copy)
{
    const struct copy_options *o = copy->options;
    const struct copy_follow_options follow = {.source = copy->session,
                                               .table_id = o->table,
                                               .table = (const char *)copy->table.data,
                                               .to = &o->to,
                                               .to_table = o->to_table,
                                               .identity = (const char *)copy->followed.data,
                                               .state = o->state,
                                               .start = copy->start,
                                               .end = copy->end,
                                               .changes_only = o->changes_only,
                                               .with_gc = o->with_gc,
                                               .until_caught_up = o->until_caught_up,
                                               .stream_retention_us = o->stream_retention,
                                               .transfer = &o->transfer};
    return copy_follow_begin(&follow, &copy->follow, must_copy);
}

/* Behind rows that were rejected, or differ, nothing is replayed: the copy would lack them. */
static status run(struct copy *copy, bool *is_perfect)
{
    bool must_copy = true;
    *is_perfect = true;
    TRY(open_source(copy));
    if (copy->options->follow)
        TRY(begin_following(copy, &must_copy));
    if (must_copy)
        TRY(copy_rows(copy, is_perfect));
    return copy->follow == NULL || !*is_perfect ? status_ok() : copy_follow_run(copy->follow);
}

int copy_command(const char *const *arguments)
{
    struct copy_options options;
    struct copy copy = {.options = &options};
    bool is_perfect = false;
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    status s = read_options(arguments, &options);
    if (!status_is_ok(s))
        return command_refuse("copy", s);
    s = run(&copy, &is_perfect);
    copy_follow_destroy(copy.follow);
    client_session_destroy(copy.session);
    buffer_free(&copy.table);
    buffer_free(&copy.identity);
    buffer_free(&copy.followed);
    arena_destroy(copy.arena);
    return command_end("copy", s, is_perfect);
}
