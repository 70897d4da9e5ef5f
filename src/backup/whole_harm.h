/* Damage that a restore finds in the place that it reads: contents that are not what was written,
 * or are missing. It goes on with the others, so that all of them are known at once, and the caller
 * that reads what was fetched decides:
 *
 *     refused     by default: what is damaged is named, with the tables whose rows are in it
 *     salvaged    what is damaged is taken as it is, as if it were damaged in a data directory
 *                 (docs/operating/repair.md): a table file takes the rows that it may hold out of
 *                 service, block by block where the rest of it can be read
 *
 * A table file may be another one than was written and be whole by itself. Then nothing shows which
 * of its rows are wrong, and it counts as missing: all that it may hold is out of service. */
#ifndef TRESTLE_BACKUP_WHOLE_HARM_H
#define TRESTLE_BACKUP_WHOLE_HARM_H

#include "backup/whole.h"

struct whole_harmed {
    struct whole_harmed *next;
    const char *name;    /* in the data directory */
    const char *content; /* in the place */
    const char *wrong;   /* in words */
    bool is_table;       /* a table's file */
};

/* All zeroes but the arena is none. */
struct whole_harm {
    struct arena *arena; /* has all of it */
    struct whole_harmed *first;
    struct whole_harmed **last;
    size_t count;
};

/* Takes the cause, whose words say what is wrong. RESOURCE_EXHAUSTED without memory. */
status whole_harm_note(struct whole_harm *harm, const struct whole_file *file, const char *content,
                       status wrong);

/* Whether all of it is table files: what says which of those there are, and the logs, is whole. */
bool whole_harm_is_of_tables(const struct whole_harm *harm);

/* DATA_LOSS that names what is damaged, and whose rows are in it, as far as the directory, into
 * which all else was fetched, tells; and `way_out`, what there is to be done about it, unless it is
 * NULL. */
status whole_harm_refuse(const struct whole_harm *harm, const char *directory, const char *way_out);

/* Before the directory is opened to be used: removes those of its damaged table files whose damage
 * does not show. Reads them all. */
status whole_harm_remove(const struct whole_harm *harm, struct files *files, const char *directory);

#endif
