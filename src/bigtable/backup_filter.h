/* Filters and orders of ListBackups: which backups, and in which order.
 *
 * The filter language is the API's (google.aip.dev/160, as far as ListBackups has it):
 *
 *     filter      factor { [AND] factor }      AND is weaker than OR
 *     factor      term { OR term }
 *     term        [NOT | -] ( field operator value | '(' filter ')' )
 *     operator    = != < <= > >= :
 *
 * Letters' case does not matter. A name or source_table equals a value that is all of it, or its
 * last segment; `:` with a value that is not in quotes asks whether it is contained. Times are as
 * in RFC 3339; what a backup does not have (the end of one that is being made) fits no comparison
 * but
 * `!=`. */
#ifndef TRESTLE_BIGTABLE_BACKUP_FILTER_H
#define TRESTLE_BIGTABLE_BACKUP_FILTER_H

#include "base/arena.h"
#include "base/status.h"
#include "google/bigtable/admin/v2/table.pb-c.h"

struct backup_filter;

/* In the arena; it points into the text. NULL for an empty one, which lets all pass.
 * INVALID_ARGUMENT. */
status backup_filter_parse(const char *text, struct arena *arena, const struct backup_filter **out);
bool backup_filter_matches(const struct backup_filter *filter, const BtAdmin__Backup *backup);

enum backup_field {
    BACKUP_NAME,
    BACKUP_SOURCE_TABLE,
    BACKUP_STATE,
    BACKUP_START_TIME,
    BACKUP_END_TIME,
    BACKUP_EXPIRE_TIME,
    BACKUP_SIZE_BYTES,
    BACKUP_FIELDS
};

struct backup_ordering {
    struct {
        enum backup_field field;
        bool descends;
    } keys[BACKUP_FIELDS];
    size_t count;
};

/* "start_time desc, name". Empty: the newest first. INVALID_ARGUMENT. */
status backup_ordering_parse(const char *text, struct backup_ordering *out);
/* Backups that are equal otherwise are in the order of their names. */
int backup_ordering_compare(const struct backup_ordering *ordering, const BtAdmin__Backup *a,
                            const BtAdmin__Backup *b);

#endif
