/* What of the programs of views is not there yet: headers first, so that others can build. */
#include "sql/view/row.h"

static status not_yet(void)
{
    return status_make(STATUS_UNIMPLEMENTED, "Materialized views have no program yet");
}

status view_program_make(const struct sql_plan *plan, struct arena *arena,
                         struct view_program **out)
{
    (void)plan, (void)arena;
    *out = NULL;
    return not_yet();
}

enum view_form view_program_form(const struct view_program *program)
{
    (void)program;
    return VIEW_GROUPS;
}

const struct view_column *view_program_columns(const struct view_program *program, size_t *count)
{
    (void)program;
    *count = 0;
    return NULL;
}

bool view_program_has_timestamp(const struct view_program *program)
{
    (void)program;
    return false;
}

const char *const *view_program_families(const struct view_program *program, size_t *count)
{
    (void)program;
    *count = 0;
    return NULL;
}

bool view_program_reads_family(const struct view_program *program, bytes family)
{
    (void)program, (void)family;
    return false;
}

status view_program_relation(const struct view_program *program, const char *name, void *table,
                             struct arena *arena, const struct sql_relation **out)
{
    (void)program, (void)name, (void)table, (void)arena;
    *out = NULL;
    return not_yet();
}

uint64_t view_program_fingerprint(const struct view_program *program)
{
    (void)program;
    return 0;
}

status view_runner_create(const struct view_program *program, struct view_runner **out)
{
    (void)program;
    *out = NULL;
    return not_yet();
}

void view_runner_destroy(struct view_runner *runner)
{
    (void)runner;
}

status view_runner_run(struct view_runner *runner, const struct view_source *source,
                       view_visit *visit, void *context)
{
    (void)runner, (void)source, (void)visit, (void)context;
    return not_yet();
}

status view_contribution_next(bytes *rest, struct view_part *out, bool *found)
{
    (void)rest, (void)out;
    *found = false;
    return not_yet();
}

status view_group_read(const struct view_program *program, bytes record, struct arena *arena,
                       struct view_group **out)
{
    (void)program, (void)record, (void)arena;
    *out = NULL;
    return not_yet();
}

status view_group_fold(struct view_group *group, bytes body, bytes source_key, bool is_removal,
                       const struct view_entries *entries)
{
    (void)group, (void)body, (void)source_key, (void)is_removal, (void)entries;
    return not_yet();
}

status view_group_settle(struct view_group *group, const struct view_entries *entries)
{
    (void)group, (void)entries;
    return not_yet();
}

bool view_group_is_empty(const struct view_group *group)
{
    (void)group;
    return true;
}

uint64_t view_group_rows(const struct view_group *group)
{
    (void)group;
    return 0;
}

status view_group_write(const struct view_group *group, struct buffer *record)
{
    (void)group, (void)record;
    return not_yet();
}

status view_place_of(const struct view_program *program, bytes id, struct arena *arena,
                     struct view_place *out)
{
    (void)program, (void)id, (void)arena, (void)out;
    return not_yet();
}

status view_group_row(struct view_runner *runner, const struct view_group *group, bytes id,
                      struct arena *arena, struct view_row *out, const char **why)
{
    (void)runner, (void)group, (void)id, (void)arena, (void)out;
    *why = NULL;
    return not_yet();
}

status view_index_row(const struct view_program *program, const struct view_part *part,
                      struct arena *arena, struct view_row *out)
{
    (void)program, (void)part, (void)arena, (void)out;
    return not_yet();
}
