/* See dynamo_change.h. */
#include "formats/dynamo_change.h"

enum { US_PER_MS = 1000 };

#define REFUSE(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

/* Cells of what ends are dated where the family has an age. */
static bool ends_cells(const struct item_layout *layout, const struct item_rule *rule)
{
    for (size_t i = 0; i < layout->mapping->family_count; i++)
        if (rule->ttl != NULL && layout->mapping->families[i].age_us != 0)
            return true;
    return false;
}

static bool dates_cells(const struct item_layout *layout)
{
    if (layout->mapping == NULL)
        return layout->form == ITEM_AS_GOOGLE || layout->timestamp != NULL ||
               layout->ttl.family != NULL;
    for (size_t i = 0; i < layout->mapping->rule_count; i++) {
        const struct item_rule *rule = &layout->mapping->rules[i];
        if (rule->timestamp != NULL || rule->together.timestamp != NULL || ends_cells(layout, rule))
            return true;
        for (size_t k = 0; k < rule->column_count; k++)
            if (rule->columns[k].timestamp != NULL)
                return true;
    }
    return false;
}

status dynamo_change_check(const struct item_layout *layout, enum dynamo_order order)
{
    if (layout->mapping != NULL && layout->mapping->has_items)
        return REFUSE("changes of items cannot be followed where several items make one row");
    if (order == DYNAMO_BY_TIME && dates_cells(layout))
        return REFUSE("incremental exports need cells that have the times of their writes: no "
                      "--compat, --timestamp or --ttl-family, no timestamps in a mapping");
    return status_ok();
}

/* When it was written, in the milliseconds of cells. */
static int64_t written_us(const struct dynamo_record *record)
{
    return record->written_us / US_PER_MS * US_PER_MS;
}

status dynamo_change_lay_out(const struct item_layout *layout, enum dynamo_order order,
                             const struct dynamo_record *record, struct arena *arena,
                             struct move_change *out)
{
    if (!record->is_incremental)
        return item_lay_out(layout, &record->item, arena, out);
    struct item_layout dated = *layout;
    dated.default_us = written_us(record);
    TRY(dynamo_change_check(layout, order));
    TRY(item_lay_out(&dated, &record->item, arena, out));
    out->replaces = true;
    out->yields = order == DYNAMO_BY_TIME;
    out->written_us = dated.default_us;
    /* What is over is gone, too: a row that has been there must not stay. */
    bool has_ended = out->ends_us != 0 && out->ends_us <= layout->now_us;
    if (!record->is_gone && !has_ended)
        return status_ok();
    out->count = 0;
    out->bytes = 0;
    out->ends_us = 0;
    return status_ok();
}
