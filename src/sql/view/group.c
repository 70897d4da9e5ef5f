/* Groups: see group.h. A record: a varint of how many source rows are in the group, and what each
 * aggregate writes. */
#include "sql/view/group.h"

#include "base/varint.h"
#include "sql/view/group_private.h"

static size_t aligned(size_t size)
{
    return (size + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
}

static status make_tallies(struct view_group *group)
{
    const struct view_program *program = group->program;
    group->tallies = arena_alloc(group->arena, program->aggregate_count * sizeof *group->tallies);
    size_t size = 0;
    for (size_t i = 0; i < program->aggregate_count; i++)
        size += aligned(program->aggregates[i].kind->tally_size);
    uint8_t *memory = arena_zalloc(group->arena, size);
    if (group->tallies == NULL || memory == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < program->aggregate_count; i++) {
        group->tallies[i] = memory;
        memory += aligned(program->aggregates[i].kind->tally_size);
    }
    return status_ok();
}

static bool read_record(struct view_group *group, bytes record)
{
    const struct view_program *program = group->program;
    if (!view_take_number(&record, &group->rows))
        return false;
    for (size_t i = 0; i < program->aggregate_count; i++) {
        const struct view_aggregate *aggregate = &program->aggregates[i];
        if (!aggregate->kind->read(aggregate, group->tallies[i], &record))
            return false;
    }
    return record.size == 0;
}

status view_group_read(const struct view_program *program, bytes record, struct arena *arena,
                       struct view_group **out)
{
    struct view_group *group = arena_zalloc(arena, sizeof *group);
    *out = group;
    if (group == NULL)
        return status_out_of_memory();
    *group = (struct view_group){.program = program, .arena = arena};
    TRY(make_tallies(group));
    return record.size == 0 || read_record(group, record) ? status_ok() : view_bad_record();
}

status view_group_fold(struct view_group *group, bytes body, bytes source_key, bool is_removal,
                       const struct view_entries *entries)
{
    const struct view_program *program = group->program;
    const struct view_folding folding = {source_key, is_removal, entries, group->arena};
    for (size_t i = 0; i < program->aggregate_count; i++) {
        const struct view_aggregate *aggregate = &program->aggregates[i];
        TRY(aggregate->kind->fold(aggregate, group->tallies[i], &body, &folding));
    }
    if (body.size > 0)
        return view_bad_record();
    group->rows += is_removal ? UINT64_MAX : 1;
    return status_ok();
}

status view_group_settle(struct view_group *group, const struct view_entries *entries)
{
    const struct view_program *program = group->program;
    for (size_t i = 0; i < program->aggregate_count; i++) {
        const struct view_aggregate *aggregate = &program->aggregates[i];
        if (aggregate->kind->settle != NULL)
            TRY(aggregate->kind->settle(aggregate, group->tallies[i], entries, group->arena));
    }
    return status_ok();
}

bool view_group_is_empty(const struct view_group *group)
{
    return group->rows == 0;
}

uint64_t view_group_rows(const struct view_group *group)
{
    return group->rows;
}

status view_group_write(const struct view_group *group, struct buffer *record)
{
    const struct view_program *program = group->program;
    buffer_append_varint(record, group->rows);
    for (size_t i = 0; i < program->aggregate_count; i++) {
        const struct view_aggregate *aggregate = &program->aggregates[i];
        aggregate->kind->write(aggregate, group->tallies[i], record);
    }
    return record->failed ? status_out_of_memory() : status_ok();
}
