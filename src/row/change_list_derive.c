/* See change_list_derive.h. In a fragment the tombstones of a place come before what was set after
 * them, and big cells, which were set after all tombstones of theirs, come last (fragment.h). */
#include "row/change_list_derive.h"

#include "base/big_endian.h"
#include "base/check.h"

static int64_t number_of(bytes state)
{
    DCHECK(state.size == BIG_ENDIAN_SIZE);
    return (int64_t)big_endian_read(state.data);
}

static enum list_kind kind_of(enum entry_kind kind)
{
    static const enum list_kind kinds[] = {[ENTRY_ROW_TOMBSTONE] = LIST_DELETE_ROW,
                                           [ENTRY_FAMILY_TOMBSTONE] = LIST_DELETE_FAMILY,
                                           [ENTRY_COLUMN_TOMBSTONE] = LIST_DELETE_COLUMN,
                                           [ENTRY_CELL] = LIST_SET,
                                           [ENTRY_SUM] = LIST_ADD_INT,
                                           [ENTRY_MIN] = LIST_ADD_INT,
                                           [ENTRY_MAX] = LIST_ADD_INT,
                                           [ENTRY_HLL] = LIST_MERGE};
    return kinds[kind];
}

static void add_entry(struct change_list *list, const struct entry *entry, bytes family)
{
    struct list_mutation mutation = {.kind = kind_of(entry->kind),
                                     .family = family,
                                     .qualifier = entry->qualifier,
                                     .timestamp_us = entry->timestamp_us};
    if (mutation.kind == LIST_DELETE_COLUMN)
        mutation.end_us = entry->end_us == INT64_MAX ? 0 : entry->end_us;
    else if (mutation.kind == LIST_ADD_INT)
        mutation.number = number_of(entry->value);
    else
        mutation.value = entry->value;
    change_list_add(list, &mutation);
}

static void add_big(struct change_list *list, const struct big_cell *cell, bytes family)
{
    change_list_add(list, &(struct list_mutation){.kind = LIST_SET,
                                                  .family = family,
                                                  .qualifier = cell->qualifier,
                                                  .timestamp_us = cell->timestamp_us,
                                                  .value = cell->value});
}

void change_list_derive(struct change_list *list, const struct packed_change *change,
                        const struct schema *schema)
{
    struct fragment_reader reader;
    struct entry entry;
    const bytes none = bytes_make(NULL, 0);
    bool is_read = fragment_reader_start(&reader, buffer_bytes(&change->fragment));
    DCHECK(is_read);
    while (is_read && fragment_reader_next(&reader, &entry)) {
        const struct family *family = schema_family(schema, entry.family);
        if (entry.kind == ENTRY_ROW_TOMBSTONE)
            add_entry(list, &entry, none);
        else if (entry.kind != ENTRY_OVERFLOW_MARK && family != NULL)
            add_entry(list, &entry, family->name);
    }
    for (size_t i = 0; i < change->big_count; i++) {
        const struct family *family = schema_family(schema, change->big[i].family);
        if (family != NULL)
            add_big(list, &change->big[i], family->name);
    }
}
