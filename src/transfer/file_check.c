/* See file_check.h. */
#include "transfer/file_check.h"

#include <inttypes.h>
#include <stdio.h>

enum { RECORD_LIMIT = 512 << 20, SHOWN_MOST = 20 };

static void tell(const struct transfer_place *place, status failure, struct file_check *out)
{
    if (++out->mistakes <= SHOWN_MOST)
        fprintf(stderr, "%s:%" PRIu64 ": %s\n", place->file, place->line, status_message(failure));
    status_free(failure);
}

static status take(const struct transfer_source *source, struct transfer_record *record,
                   struct verification *verification, bool has_timestamps, struct file_check *out)
{
    struct transfer_place place;
    source->describe(source->context, record->tag, &place);
    if (!status_is_ok(record->failure)) {
        tell(&place, record->failure, out);
        return status_ok();
    }
    record->change.is_undated = !has_timestamps;
    row_sum_add(&out->sum, &record->change, has_timestamps);
    return verification == NULL ? status_ok() : verification_add(verification, record, &place);
}

static status take_all(const struct transfer_source *source, struct arena *arena,
                       struct verification *verification, bool has_timestamps,
                       struct file_check *out)
{
    for (;;) {
        struct transfer_record record = {0};
        bool is_end = false;
        arena_reset(arena);
        TRY(source->next(source->context, arena, &record, &is_end));
        if (is_end)
            return status_ok();
        TRY(take(source, &record, verification, has_timestamps, out));
    }
}

status file_check_run(const struct transfer_source *source, struct verification *verification,
                      bool has_timestamps, struct file_check *out)
{
    struct arena *arena = arena_create(RECORD_LIMIT);
    *out = (struct file_check){0};
    if (arena == NULL)
        return status_out_of_memory();
    status s = take_all(source, arena, verification, has_timestamps, out);
    arena_destroy(arena);
    TRY(s);
    return verification == NULL
               ? status_ok()
               : verification_finish(verification, &out->compared, &out->different);
}
