/* Runs a view's program over rows of its source: see run.h.
 *
 * The plan of the pieces is executed over a scan of our own, which stands before the caller's. An
 * operator asks for the next source row only when no piece of the last is left: so when the scan is
 * asked, the row before is over, its contribution is put together and visited. An error of an
 * expression ends the execution, and another one is made over the same scan. */
#include "sql/view/run.h"

#include "base/limits.h"
#include "sql/run/execute.h"
#include "sql/time/zone.h"
#include "sql/view/pieces.h"
#include "sql/view/runner.h"

#include <stdlib.h>

enum { ARENA_LIMIT = 64 << 20, EXECUTION_MEMORY = 1 << 20 };

/* One run. */
struct run {
    struct sql_scan scan; /* what the execution reads */
    struct view_runner *runner;
    const struct view_source *source;
    view_visit *visit;
    void *context;
    struct arena *arena; /* of the run */
    struct sql_scan *inner;
    struct sql_scan_spec spec;
    bool has_row;
    bytes key; /* of the row in hand */
    uint64_t selected;
    struct buffer contribution;
    bool is_fatal; /* the last failure was not of an expression */
};

/* --- a row is over --- */

/* Of an error of an expression, or of what the row is too large for. */
static status exclude_row(struct run *run, status error)
{
    struct view_pieces *pieces = &run->runner->pieces;
    view_pieces_clear(pieces);
    pieces->why = arena_string(pieces->arena, bytes_of(status_message(error)));
    status_free(error);
    return pieces->why == NULL ? status_out_of_memory() : status_ok();
}

/* An argument that an aggregate cannot take (no sketch) is an error of the row's, too. */
static status write_contribution(struct run *run)
{
    buffer_clear(&run->contribution);
    status result =
        view_pieces_write(&run->runner->pieces, run->selected, run->key.size, &run->contribution);
    if (result.code != STATUS_OUT_OF_RANGE)
        return result;
    buffer_clear(&run->contribution);
    return exclude_row(run, result);
}

static status visit_row(struct run *run)
{
    const struct view_pieces *pieces = &run->runner->pieces;
    TRY(write_contribution(run));
    enum view_outcome outcome = pieces->why != NULL       ? VIEW_ROW_EXCLUDED
                                : pieces->list.count == 0 ? VIEW_ROW_NOTHING
                                                          : VIEW_ROW_IN;
    return run->visit(run->context, run->key, outcome, buffer_bytes(&run->contribution),
                      pieces->why);
}

static status end_row(struct run *run)
{
    if (!run->has_row)
        return status_ok();
    run->has_row = false;
    status result = visit_row(run);
    view_pieces_clear(&run->runner->pieces);
    return result;
}

/* --- the scan --- */

static bool is_needed(const struct sql_family_need *need, bytes qualifier)
{
    size_t low = 0, high = need->qualifier_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = bytes_compare(need->qualifiers[middle], qualifier);
        if (order == 0)
            return true;
        low = order < 0 ? middle + 1 : low;
        high = order > 0 ? middle : high;
    }
    return false;
}

static const struct sql_family_need *need_of(const struct sql_scan_spec *spec, bytes family)
{
    for (size_t i = 0; i < spec->family_count; i++)
        if (bytes_equal(spec->families[i].family, family))
            return &spec->families[i];
    return NULL;
}

/* Bytes that are selected of a row: the scan may give more than was asked for. */
static uint64_t selected_size(const struct sql_scan_spec *spec, const struct cell_list *cells)
{
    uint64_t size = 0;
    const struct sql_family_need *need = NULL;
    for (size_t i = 0; i < cells->count; i++) {
        const struct cell *cell = &cells->items[i];
        if (i == 0 || cell->family != cells->items[i - 1].family)
            need = need_of(spec, cell->family->name);
        if (need != NULL && need->needs_all)
            size += cell->qualifier.size + cell->value.size;
        else if (need != NULL && is_needed(need, cell->qualifier))
            size += cell->value.size;
    }
    return size;
}

/* A row of which too much is selected is not looked at, so that it costs no more than its read. */
static status next_row(struct run *run, struct sql_scan_row *row, bool *found)
{
    do {
        *found = false;
        TRY(end_row(run));
        TRY(run->inner->next(run->inner, row, found));
        if (!*found)
            return status_ok();
        run->has_row = true;
        run->key = row->key;
        run->selected = selected_size(&run->spec, row->cells);
        run->runner->pieces.why =
            run->selected > LIMIT_VIEW_ROW_BYTES ? "more than 1 MiB of it is selected" : NULL;
    } while (run->runner->pieces.why != NULL);
    return status_ok();
}

static status scan_next(struct sql_scan *scan, struct sql_scan_row *row, bool *found)
{
    struct run *run = (struct run *)(void *)scan;
    status result = next_row(run, row, found);
    run->is_fatal = !status_is_ok(result);
    return result;
}

/* It outlives the execution: another one may go on with it. */
static void scan_destroy(struct sql_scan *scan)
{
    (void)scan;
}

static status copy_needs(struct arena *arena, const struct sql_scan_spec *spec,
                         const struct sql_family_need **out)
{
    struct sql_family_need *needs = arena_alloc(arena, spec->family_count * sizeof *needs);
    if (needs == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < spec->family_count; i++) {
        const struct sql_family_need *need = &spec->families[i];
        bytes *qualifiers = arena_alloc(arena, need->qualifier_count * sizeof *qualifiers);
        if (qualifiers == NULL)
            return status_out_of_memory();
        needs[i] = *need;
        needs[i].qualifiers = qualifiers;
        for (size_t k = 0; k < need->qualifier_count; k++) {
            qualifiers[k] = arena_copy(arena, need->qualifiers[k]);
            if (qualifiers[k].data == NULL)
                return status_out_of_memory();
        }
    }
    *out = needs;
    return status_ok();
}

static status open_inner(struct run *run, const struct sql_scan_spec *spec)
{
    run->spec = *spec;
    run->spec.ranges = NULL;
    run->spec.range_count = 0;
    TRY(copy_needs(run->arena, spec, &run->spec.families));
    return run->source->open(run->source->context, &run->spec, run->arena, &run->inner);
}

static status catalog_scan(void *context, const struct sql_relation *table,
                           const struct sql_scan_spec *spec, struct arena *arena,
                           struct sql_scan **out)
{
    (void)table, (void)arena;
    struct run *run = context;
    *out = &run->scan;
    if (run->inner != NULL)
        return status_ok();
    status result = open_inner(run, spec);
    run->is_fatal = !status_is_ok(result);
    return result;
}

/* --- running --- */

bool view_lacks_memory(status result)
{
    if (result.code != STATUS_RESOURCE_EXHAUSTED)
        return false;
    void *volatile room = malloc(EXECUTION_MEMORY); /* or the compiler knows that there is some */
    bool is_none = room == NULL;
    free(room);
    return is_none;
}

/* Until an error of an expression, which is in *error, or the end. */
static status run_execution(struct run *run, struct sql_execution *execution, status *error)
{
    const struct sql_value *row;
    *error = status_ok();
    for (;;) {
        status result = sql_execution_next(execution, &row);
        if (!status_is_ok(result) && !run->is_fatal && run->has_row && !view_lacks_memory(result)) {
            *error = result;
            return status_ok();
        }
        TRY(result);
        if (row == NULL)
            return end_row(run);
        TRY(view_pieces_add(&run->runner->pieces, row));
    }
}

static status run_once(struct run *run, const struct sql_catalog *catalog, bool *is_done)
{
    const struct sql_execution_spec spec = {.plan = &run->runner->program->pieces,
                                            .catalog = catalog,
                                            .session = &run->runner->session,
                                            .memory_limit = EXECUTION_MEMORY};
    struct sql_execution *execution;
    status error;
    TRY(sql_execution_create(&spec, &execution));
    status result = run_execution(run, execution, &error);
    sql_execution_destroy(execution);
    *is_done = status_is_ok(error);
    if (!status_is_ok(result))
        status_free(error);
    return !status_is_ok(result) || *is_done ? result : exclude_row(run, error);
}

status view_runner_run(struct view_runner *runner, const struct view_source *source,
                       view_visit *visit, void *context)
{
    struct run run = {.scan = {.next = scan_next, .destroy = scan_destroy},
                      .runner = runner,
                      .source = source,
                      .visit = visit,
                      .context = context,
                      .arena = arena_create(ARENA_LIMIT)};
    const struct sql_catalog catalog = {.context = &run, .scan = catalog_scan};
    status result = run.arena == NULL ? status_out_of_memory() : status_ok();
    view_pieces_clear(&runner->pieces);
    for (bool is_done = false; status_is_ok(result) && !is_done;)
        result = run_once(&run, &catalog, &is_done);
    if (run.inner != NULL)
        run.inner->destroy(run.inner);
    buffer_free(&run.contribution);
    arena_destroy(run.arena);
    return result;
}

/* --- the runner --- */

static status make_frame(struct view_runner *runner)
{
    const struct sql_plan *plan = runner->program->plan;
    runner->calls = arena_zalloc(runner->kept, plan->call_count * sizeof *runner->calls);
    runner->arguments =
        arena_zalloc(runner->kept, plan->argument_count * sizeof *runner->arguments);
    return runner->calls == NULL || runner->arguments == NULL ? status_out_of_memory()
                                                              : status_ok();
}

status view_runner_create(const struct view_program *program, struct view_runner **out)
{
    struct view_runner *runner = calloc(1, sizeof *runner);
    *out = NULL;
    if (runner == NULL)
        return status_out_of_memory();
    runner->program = program;
    runner->session.zones = sql_zones_create();
    runner->kept = arena_create(ARENA_LIMIT);
    runner->pieces = (struct view_pieces){.program = program, .arena = arena_create(ARENA_LIMIT)};
    status result = status_out_of_memory();
    if (runner->session.zones != NULL && runner->kept != NULL && runner->pieces.arena != NULL)
        result = make_frame(runner);
    if (status_is_ok(result))
        *out = runner;
    else
        view_runner_destroy(runner);
    return result;
}

void view_runner_destroy(struct view_runner *runner)
{
    if (runner == NULL)
        return;
    if (runner->calls != NULL)
        sql_calls_release(runner->calls, runner->program->plan->call_count);
    view_pieces_free(&runner->pieces);
    arena_destroy(runner->pieces.arena);
    arena_destroy(runner->kept);
    sql_zones_destroy(runner->session.zones);
    free(runner);
}
