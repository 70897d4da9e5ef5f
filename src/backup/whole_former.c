/* See whole_former.h. */
#include "backup/whole_former.h"

#include "backup/whole_copy.h"
#include "backup/whole_order.h"
#include "backup/whole_private.h"

#include <stdlib.h>

struct whole_former {
    struct whole_former_options options;
    struct arena *names;    /* of the list */
    struct arena *manifest; /* of the backup that is looked at */
    const char *name;
    struct whole_backup backup;
    struct whole_copy *copy;
    const struct foreign_table *table;
};

/* --- a copy --- */

static status look_at_copy(struct whole_former *former)
{
    size_t count;
    former->table = whole_copy_tables(former->copy, &count);
    return former->options.look(former->options.context, former->table);
}

static void close_copy(struct whole_former *former)
{
    whole_copy_close(former->copy);
    former->copy = NULL;
    former->table = NULL;
}

static status open_copy(struct whole_former *former, const struct whole_copy_options *options)
{
    TRY(whole_copy_open(options, &former->copy));
    status s = look_at_copy(former);
    if (!status_is_ok(s))
        close_copy(former);
    return s;
}

static status try_copy(struct whole_former *former)
{
    const struct whole_former_options *options = &former->options;
    const struct whole_copy_options copy = {.place = options->place,
                                            .backup = &former->backup,
                                            .files = options->files,
                                            .directory = options->scratch,
                                            .name = options->table,
                                            .only_records = options->only_record,
                                            .work = options->work};
    return open_copy(former, &copy);
}

/* --- which --- */

static bool counts(const struct whole_former *former)
{
    const struct whole_former_options *options = &former->options;
    return strcmp(former->backup.server, options->server) == 0 &&
           (options->before_us == 0 || former->backup.instant_us < options->before_us);
}

/* `*looked`: it is one that counts. */
static status try_one(struct whole_former *former, const char *name, bool *looked)
{
    arena_reset(former->manifest);
    former->name = name;
    TRY(whole_read_named(former->options.place, name, former->manifest, &former->backup));
    *looked = former->options.name != NULL || counts(former);
    return *looked ? try_copy(former) : status_ok();
}

static status none_counts(const struct whole_former *former)
{
    char before[CLOCK_DATE_SIZE] = "";
    if (former->options.before_us != 0)
        clock_date(former->options.before_us, before);
    return status_make(STATUS_NOT_FOUND,
                       "%s has no whole backup of this server (%s)%s%s: another server's, if this "
                       "one was made of it, is to be named",
                       place_title(former->options.place), former->options.server,
                       before[0] == '\0' ? "" : " from before ", before);
}

/* The error is that of the newest backup that counts. */
static status try_from_newest(struct whole_former *former, const char *const *names, size_t count)
{
    status first = status_ok();
    while (count-- > 0) {
        bool looked = false;
        status s = try_one(former, names[count], &looked);
        if (status_is_ok(s) && !looked)
            continue;
        if (s.code != STATUS_DATA_LOSS) {
            status_free(first);
            return s;
        }
        if (status_is_ok(first))
            first = s;
        else
            status_free(s);
    }
    return status_is_ok(first) ? none_counts(former) : first;
}

static status read_directory(struct whole_former *former)
{
    const struct whole_former_options *options = &former->options;
    const struct whole_copy_options copy = {.files = options->files,
                                            .directory = options->directory,
                                            .name = options->table,
                                            .work = options->work};
    former->name = options->directory;
    return open_copy(former, &copy);
}

static status find(struct whole_former *former)
{
    const char *const *names;
    size_t count;
    bool looked;
    former->names = arena_create(WHOLE_MEMORY);
    former->manifest = arena_create(WHOLE_MEMORY);
    if (former->names == NULL || former->manifest == NULL)
        return status_out_of_memory();
    if (former->options.directory != NULL)
        return read_directory(former);
    if (former->options.name != NULL)
        return try_one(former, former->options.name, &looked);
    TRY(whole_names_by_age(former->options.place, former->names, &names, &count));
    return try_from_newest(former, names, count);
}

/* --- life --- */

status whole_former_open(const struct whole_former_options *options, struct whole_former **out)
{
    *out = NULL;
    struct whole_former *former = calloc(1, sizeof *former);
    if (former == NULL)
        return status_out_of_memory();
    former->options = *options;
    status s = find(former);
    if (status_is_ok(s))
        *out = former;
    else
        whole_former_close(former);
    return s;
}

void whole_former_close(struct whole_former *former)
{
    if (former == NULL)
        return;
    whole_copy_close(former->copy);
    arena_destroy(former->manifest);
    arena_destroy(former->names);
    free(former);
}

const struct foreign_table *whole_former_table(const struct whole_former *former)
{
    return former->table;
}

const char *whole_former_name(const struct whole_former *former, int64_t *instant_us)
{
    *instant_us = former->backup.instant_us;
    return former->name;
}

void whole_former_describe(const struct whole_former *former, struct buffer *out)
{
    char date[CLOCK_DATE_SIZE];
    if (former->options.directory != NULL) {
        buffer_append_format(out, "the data directory %s", former->name);
        return;
    }
    buffer_append_format(out, "the whole backup %s, of %s", former->name,
                         clock_date(former->backup.instant_us, date));
}
