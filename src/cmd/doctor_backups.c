/* See doctor_backups.h: manifests parse, every file is there with its size and its checksum. A
 * server may be using the directory; what it is just making has no manifest, and is passed over. */
#include "cmd/doctor_backups.h"

#include "cluster/backup.h"

#include <inttypes.h>
#include <stdio.h>

static void visit(void *context, const char *name, uint64_t size_bytes, const char *wrong)
{
    uint64_t *damages = context;
    if (wrong == NULL) {
        printf("%s: %" PRIu64 " bytes\n", name, size_bytes);
        return;
    }
    ++*damages;
    fprintf(stderr, "damage: %s: %s\n", name, wrong);
}

uint64_t doctor_count_damaged_backups(const char *directory, const char *below)
{
    uint64_t damages = 0;
    struct backups_check check = {.context = &damages, .visit = visit};
    struct buffer path = {0};
    buffer_append_format(&path, "%s/%s%c", directory, below == NULL ? "" : below, 0);
    status s = path.failed ? status_out_of_memory()
                           : backups_verify(files_of_system(), (const char *)path.data, &check);
    bool may_be_missing = below != NULL && s.code == STATUS_NOT_FOUND;
    if (!status_is_ok(s) && !may_be_missing) {
        fprintf(stderr, "trestle doctor: %s: %s\n", directory, status_message(s));
        damages++;
    }
    status_free(s);
    buffer_free(&path);
    return damages;
}
