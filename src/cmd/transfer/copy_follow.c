/* See copy_follow.h.
 *
 *     the target's table   a position     what is done
 *     is not there                        take the place, store it, copy the rows, follow
 *     is there             none           the same, if it is empty; else it is refused
 *     is there             is_copying     copy the rows, from their checkpoint on; follow
 *     is there             else           follow
 *
 * With --changes-only no rows are copied, and a table that is there may have them.
 *
 * A target that has rows of which nothing is known is refused: what was deleted at the source since
 * these were written would stay. To begin anew is to delete the target's table. */
#include "cmd/transfer/copy_follow.h"

#include "client/row_reader.h"
#include "transfer/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define GOOGLE "bigtable.googleapis.com"

enum { SETUP_LIMIT = 64 << 20 };

struct copy_follow {
    struct copy_follow_options options;
    struct arena *arena;
    struct client_session *target;
    struct buffer target_table; /* its full name, and a NUL */
    struct buffer state;        /* the name of a file, and a NUL; empty: none */
    struct position_store *positions;
    struct follow_position position;
    const BtAdmin__Table *source_schema;
    const BtAdmin__Table *target_schema; /* NULL: it is not there */
};

/* --- making and ending --- */

/* Of Google's service the position is kept here: only rows that are paid for are to be there. */
static status name_state(struct copy_follow *follow)
{
    const struct copy_follow_options *options = &follow->options;
    bool is_google = strncmp(options->to->server.address, GOOGLE, strlen(GOOGLE)) == 0;
    if (options->state != NULL)
        buffer_append_format(&follow->state, "%s%c", options->state, 0);
    else if (is_google)
        buffer_append_format(&follow->state, "%s.follow%c", options->to_table, 0);
    return follow->state.failed ? status_out_of_memory() : status_ok();
}

static status open_positions(struct copy_follow *follow)
{
    TRY(name_state(follow));
    const struct position_store_options positions = {
        .file = follow->state.size == 0 ? NULL : (const char *)follow->state.data,
        .target = follow->target,
        .table_id = follow->options.to_table,
        .identity = follow->options.identity};
    return position_store_create(&positions, &follow->positions);
}

static status connect_target(struct copy_follow *follow)
{
    const struct client_session_options server = {
        .target = *follow->options.to, .loop = client_session_loop(follow->options.source)};
    TRY(client_session_create(&server, &follow->target));
    buffer_append_format(&follow->target_table, "%s/tables/%s%c",
                         client_session_instance(follow->target), follow->options.to_table, 0);
    return follow->target_table.failed ? status_out_of_memory() : status_ok();
}

void copy_follow_destroy(struct copy_follow *follow)
{
    if (follow == NULL)
        return;
    follow_position_free(&follow->position);
    position_store_destroy(follow->positions);
    client_session_destroy(follow->target);
    buffer_free(&follow->target_table);
    buffer_free(&follow->state);
    arena_destroy(follow->arena);
    free(follow);
}

/* --- the source --- */

static status explain_no_stream(const struct copy_follow *follow, status s)
{
    bool has_stream = follow->source_schema->change_stream_config != NULL;
    if (s.code != STATUS_FAILED_PRECONDITION || has_stream)
        return s;
    status_free(s);
    return status_make(STATUS_FAILED_PRECONDITION,
                       "the table %s has no change stream: --stream-retention 7d switches it on, "
                       "and so does `gcloud bigtable instances tables update %s "
                       "--change-stream-retention-period=7d`",
                       follow->options.table_id, follow->options.table_id);
}

static status prepare_source(struct copy_follow *follow)
{
    const struct copy_follow_options *options = &follow->options;
    TRY(transfer_get_schema(options->source, options->table_id, follow->arena,
                            &follow->source_schema));
    bool is_on = follow->source_schema->change_stream_config != NULL;
    if (is_on || options->stream_retention_us == 0)
        return status_ok();
    fprintf(stderr, "switching the change stream of %s on\n", options->table_id);
    TRY(transfer_switch_stream_on(options->source, options->table_id, options->stream_retention_us,
                                  follow->arena));
    return transfer_get_schema(options->source, options->table_id, follow->arena,
                               &follow->source_schema);
}

/* --- where it goes on --- */

static status find_target(struct copy_follow *follow)
{
    status s = transfer_get_schema(follow->target, follow->options.to_table, follow->arena,
                                   &follow->target_schema);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    follow->target_schema = NULL;
    return status_ok();
}

static status complain_of_row(void *context, const struct move_change *row)
{
    const struct copy_follow *follow = context;
    (void)row;
    return status_make(STATUS_FAILED_PRECONDITION,
                       "the target's table %s has rows, and none of them is known to be of this "
                       "copy: what the source has deleted since would stay. Delete the table",
                       follow->options.to_table);
}

static status expect_empty(struct copy_follow *follow)
{
    Bt__RowFilter one = BT__ROW_FILTER__INIT;
    one.filter_case = BT__ROW_FILTER__FILTER_CELLS_PER_ROW_LIMIT_FILTER;
    one.cells_per_row_limit_filter = 1;
    const struct row_reading reading = {.session = follow->target,
                                        .table = (const char *)follow->target_table.data,
                                        .app_profile = client_session_app_profile(follow->target),
                                        .filter = &one,
                                        .context = follow,
                                        .on_row = complain_of_row};
    return rows_read(&reading);
}

static status check_target(struct copy_follow *follow)
{
    bool is_there = follow->target_schema != NULL;
    if (!follow->options.changes_only)
        return is_there ? expect_empty(follow) : status_ok();
    return is_there ? status_ok()
                    : status_make(STATUS_FAILED_PRECONDITION,
                                  "the target has no table %s: --changes-only is for one that has "
                                  "the source's rows",
                                  follow->options.to_table);
}

/* A checkpoint that is left is of a copy that is over. */
static status begin_anew(struct copy_follow *follow)
{
    const struct copy_follow_options *options = &follow->options;
    TRY(check_target(follow));
    TRY(transfer_job_forget(options->transfer, options->to_table));
    follow->position = (struct follow_position){.is_copying = !options->changes_only};
    TRY(explain_no_stream(
        follow, follow_take_place(options->source, options->table, &follow->position.feed)));
    return position_store_write(follow->positions, &follow->position);
}

static status begin(struct copy_follow *follow, bool *must_copy)
{
    bool found = false;
    follow->arena = arena_create(SETUP_LIMIT);
    if (follow->arena == NULL)
        return status_out_of_memory();
    TRY(prepare_source(follow));
    TRY(connect_target(follow));
    TRY(open_positions(follow));
    TRY(find_target(follow));
    if (follow->target_schema != NULL)
        TRY(position_store_read(follow->positions, &follow->position, &found));
    if (!found)
        TRY(begin_anew(follow));
    *must_copy = follow->position.is_copying;
    return status_ok();
}

status copy_follow_begin(const struct copy_follow_options *options, struct copy_follow **out,
                         bool *must_copy)
{
    struct copy_follow *follow = *out = calloc(1, sizeof *follow);
    *must_copy = false;
    if (follow == NULL)
        return status_out_of_memory();
    follow->options = *options;
    status s = begin(follow, must_copy);
    if (status_is_ok(s))
        return s;
    copy_follow_destroy(follow);
    *out = NULL;
    return s;
}

/* --- following --- */

static status end_copying(struct copy_follow *follow)
{
    if (!follow->position.is_copying)
        return status_ok();
    follow->position.is_copying = false;
    return position_store_write(follow->positions, &follow->position);
}

static void print_result(const struct copy_follow *follow, const struct follow_result *result)
{
    char date[CLOCK_DATE_SIZE];
    struct buffer place = {0};
    printf("%" PRIu64 " changes followed", result->changes);
    if (result->watermark_us > 0)
        printf(", all up to %s", clock_date(result->watermark_us, date));
    position_store_describe(follow->positions, &place);
    buffer_append_byte(&place, '\0');
    printf("; %s: %s knows where it goes on\n", result->has_caught_up ? "caught up" : "stopped",
           place.failed ? "the target" : (const char *)place.data);
    buffer_free(&place);
}

status copy_follow_run(struct copy_follow *follow)
{
    const struct copy_follow_options *options = &follow->options;
    struct follow_result result;
    TRY(end_copying(follow));
    TRY(find_target(follow));
    if (follow->target_schema == NULL)
        return status_make(STATUS_NOT_FOUND, "the target has no table %s any more",
                           options->to_table);
    const struct follow_options following = {.source = options->source,
                                             .source_table = options->table,
                                             .source_schema = follow->source_schema,
                                             .target = follow->target,
                                             .target_table =
                                                 (const char *)follow->target_table.data,
                                             .target_schema = follow->target_schema,
                                             .start = options->start,
                                             .end = options->end,
                                             .positions = follow->positions,
                                             .with_collections = options->with_gc,
                                             .until_caught_up = options->until_caught_up,
                                             .is_quiet = options->transfer->quiet};
    TRY(follow_run(&following, &follow->position, &result));
    print_result(follow, &result);
    return status_ok();
}
