/* See doctor_backups.h: manifests parse, every file is there with its size and its checksum. A
 * server may be using the directory; what it is just making has no manifest, and is passed over. */
#include "cmd/repair/doctor_backups.h"

#include "cluster/backup/backup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct reading {
    uint64_t backups; /* that were read, whole or not */
    uint64_t damages;
};

static void visit(void *context, const char *name, uint64_t size_bytes, const char *wrong)
{
    struct reading *reading = context;
    reading->backups++;
    if (wrong == NULL) {
        printf("%s: %" PRIu64 " bytes\n", name, size_bytes);
        return;
    }
    reading->damages++;
    fprintf(stderr, "damage: %s: %s\n", name, wrong);
}

static void tell_failure(const char *directory, const char *words)
{
    fprintf(stderr, "trestle doctor: %s: %s\n", directory, words);
}

static status read_backups(const char *directory, struct reading *out)
{
    const struct backups_check check = {.context = out, .visit = visit};
    *out = (struct reading){0};
    return backups_verify(files_of_system(), directory, &check);
}

uint64_t doctor_count_damaged_backups(const char *data_directory)
{
    struct reading reading = {0};
    struct buffer path = {0};
    buffer_append_format(&path, "%s/backups%c", data_directory, 0);
    status s =
        path.failed ? status_out_of_memory() : read_backups((const char *)path.data, &reading);
    if (!status_is_ok(s) && s.code != STATUS_NOT_FOUND) {
        tell_failure(data_directory, status_message(s));
        reading.damages++;
    }
    status_free(s);
    buffer_free(&path);
    return reading.damages;
}

/* --- a directory of backups --- */

static bool has_folder(const char *directory, const char *name)
{
    struct file_look look = {.is_directory = false};
    struct buffer path = {0};
    buffer_append_format(&path, "%s/%s%c", directory, name, 0);
    if (!path.failed)
        status_ignore(files_look(files_of_system(), (const char *)path.data, &look));
    buffer_free(&path);
    return look.is_directory;
}

/* See backup/whole.h. */
static bool has_whole_backups(const char *directory)
{
    return has_folder(directory, "backups") && has_folder(directory, "files");
}

/* An empty directory is how a share looks that is not mounted. */
static int tell_none(const char *directory, bool has_whole)
{
    tell_failure(directory, has_whole ? "it has whole backups, which `trestle backup verify` reads"
                                      : "there is no backup in it");
    return EXIT_FAILURE;
}

static int tell_reading(const char *directory, const struct reading *reading, bool has_whole)
{
    if (reading->backups == 0)
        return tell_none(directory, has_whole);
    if (has_whole)
        printf("the whole backups in it were not read: `trestle backup verify` does that\n");
    if (reading->damages == 0)
        printf("%s: %" PRIu64 " backups read, no damage found\n", directory, reading->backups);
    else
        fprintf(stderr, "%" PRIu64 " of %" PRIu64 " backups are damaged\n", reading->damages,
                reading->backups);
    return reading->damages == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int doctor_examine_backups(const char *directory)
{
    struct reading reading;
    status s = read_backups(directory, &reading);
    if (status_is_ok(s))
        return tell_reading(directory, &reading, has_whole_backups(directory));
    tell_failure(directory, status_message(s));
    status_free(s);
    return EXIT_FAILURE;
}
