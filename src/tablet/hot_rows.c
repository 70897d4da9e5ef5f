/* The sketch of hot rows: see hot_rows.h. */
#include "tablet/hot_rows.h"

#include "base/check.h"

#include <stdlib.h>

enum { SLOT_COUNT = 4096 };

struct slot {
    uint64_t row_hash;
    uint64_t bytes;
    uint32_t votes;    /* the row's changes, less those of others; 0: the slot is free */
    uint32_t operands; /* the row's */
};

struct hot_rows {
    uint64_t byte_limit;
    struct slot slots[SLOT_COUNT];
};

status hot_rows_create(uint64_t byte_limit, struct hot_rows **out)
{
    DCHECK(byte_limit > 0);
    struct hot_rows *hot = *out = calloc(1, sizeof *hot);
    if (hot == NULL)
        return status_out_of_memory();
    hot->byte_limit = byte_limit;
    return status_ok();
}

void hot_rows_destroy(struct hot_rows *hot)
{
    free(hot);
}

bool hot_rows_note(struct hot_rows *hot, uint64_t row_hash, uint64_t bytes, bool is_operand)
{
    struct slot *slot = &hot->slots[row_hash % SLOT_COUNT];
    if (slot->votes > 0 && slot->row_hash != row_hash) {
        slot->votes--;
        return bytes >= hot->byte_limit;
    }
    if (slot->votes == 0)
        *slot = (struct slot){.row_hash = row_hash};
    slot->votes++;
    slot->operands += is_operand;
    slot->bytes += bytes;
    bool is_hot = slot->operands >= HOT_ROW_OPERANDS || slot->bytes >= hot->byte_limit;
    if (is_hot)
        *slot = (struct slot){0};
    return is_hot;
}
