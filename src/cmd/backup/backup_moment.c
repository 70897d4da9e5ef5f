/* `trestle backup restore --archive`: the backup, and what was archived since. */
#include "aws/bucket.h"
#include "backup/whole_moment.h"
#include "cmd/backup/archive.h"
#include "cmd/backup/backup_private.h"

#include <stdlib.h>

struct backup_moment_work {
    struct archive_taking taking;
    struct archive_restored restored;
};

static status take_on(void *context, struct store *store, const char *directory)
{
    struct backup_moment_work *work = context;
    return archive_take_on(&work->taking, store, directory, &work->restored);
}

static status begin(const struct backup_moment *moment, struct backup_moment_work *work,
                    struct whole_restore *restore, struct arena *arena, const char **name,
                    struct whole_backup *backup)
{
    work->taking = (struct archive_taking){
        .what = "the backup", .until = ARCHIVE_END, .table = moment->table, .log = restore->log};
    if (moment->until != NULL)
        TRY(archive_parse_moment(moment->until, &work->taking.until));
    TRY(place_of_name_with_key(files_of_system(), moment->archive, moment->key,
                               &work->taking.place));
    const struct whole_moment wanted = {.place = restore->place,
                                        .archive = work->taking.place,
                                        .until = work->taking.until,
                                        .name = *name};
    restore->take_on = take_on;
    restore->context = work;
    struct archive_reach reach;
    TRY(whole_find_base(&wanted, arena, name, backup, &reach));
    work->taking.from = reach.from;
    work->taking.next = reach.next;
    return status_ok();
}

status backup_moment_begin(const struct backup_moment *moment, struct whole_restore *restore,
                           struct arena *arena, const char **name, struct whole_backup *backup,
                           struct backup_moment_work **out)
{
    *out = NULL;
    if (moment->archive == NULL && (moment->until != NULL || moment->table != NULL))
        return status_make(STATUS_INVALID_ARGUMENT, "--until and --table go with --archive");
    if (moment->archive == NULL)
        return backup_find(restore->place, NULL, arena, name, backup);
    *out = calloc(1, sizeof **out);
    return *out == NULL ? status_out_of_memory()
                        : begin(moment, *out, restore, arena, name, backup);
}

void backup_moment_tell(const struct backup_moment_work *work, const char *directory)
{
    if (work != NULL)
        archive_tell_restored(directory, &work->restored);
}

void backup_moment_end(struct backup_moment_work *work)
{
    if (work == NULL)
        return;
    place_close(work->taking.place);
    free(work);
}
