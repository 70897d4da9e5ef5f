/* Walking and deleting a row's overflow cells: see overflow_private.h. */
#include "base/check.h"
#include "row/row_key.h"
#include "tablet/overflow_private.h"

enum { FEW_KEYS = 64 };

status overflow_cursor_create(struct keyspace *keyspace, bytes row_key, bool bypasses_cache,
                              struct store_cursor **out)
{
    struct buffer lower = {0};
    struct buffer upper = {0};
    *out = NULL;
    overflow_row_prefix(&lower, row_key);
    if (!lower.failed)
        key_after_prefix(&upper, buffer_bytes(&lower));
    struct store_cursor_options options = {.lower = buffer_bytes(&lower),
                                           .upper = buffer_bytes(&upper),
                                           .read_tier = STORE_READ_ANY,
                                           .bypasses_cache = bypasses_cache};
    status s = lower.failed || upper.failed ? status_out_of_memory()
                                            : store_cursor_create(keyspace, &options, out);
    buffer_free(&lower);
    buffer_free(&upper);
    return s;
}

void overflow_run_extend(struct overflow_run *run, bytes key)
{
    DCHECK(run->count == 0 || run->last.failed || bytes_compare(buffer_bytes(&run->last), key) < 0);
    if (run->count == 0) {
        buffer_clear(&run->few.changes);
        buffer_clear(&run->first);
        buffer_append_bytes(&run->first, key);
    }
    run->count++;
    buffer_clear(&run->last);
    buffer_append_bytes(&run->last, key);
    if (run->count <= FEW_KEYS)
        deferred_delete(&run->few, key);
}

bool overflow_run_is_long(const struct overflow_run *run)
{
    return run->count > FEW_KEYS;
}

status overflow_run_end(struct overflow_run *run, bytes end)
{
    DCHECK(end.size == 0 || run->count == 0 || run->last.failed ||
           bytes_compare(buffer_bytes(&run->last), end) < 0);
    if (end.size == 0) { /* right after the last */
        buffer_append_byte(&run->last, 0);
        end = buffer_bytes(&run->last);
    }
    if (overflow_run_is_long(run))
        deferred_delete_range(run->out, buffer_bytes(&run->first), end);
    else if (run->count > 0)
        buffer_append_bytes(&run->out->changes, buffer_bytes(&run->few.changes));
    run->count = 0;
    bool failed = run->few.changes.failed || run->first.failed || run->last.failed ||
                  run->out->changes.failed;
    return failed ? status_out_of_memory() : status_ok();
}

void overflow_run_free(struct overflow_run *run)
{
    deferred_batch_free(&run->few);
    buffer_free(&run->first);
    buffer_free(&run->last);
}
