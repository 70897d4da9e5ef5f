/* See support_archive.h. A file is a block of 512 bytes that describes it, and its content, filled
 * with zeroes to whole blocks; two blocks of zeroes end the archive. */
#include "cmd/support/support_archive.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

enum { BLOCK = 512 };

/* A header as tar reads it: numbers are octal, and end with a NUL. */
struct header {
    char name[100];
    char mode[8];
    char owner[8];
    char group[8];
    char size[12];
    char time[12];
    char sum[8];
    char type;
    char link[100];
    char magic[6];
    char version[2];
    char rest[247];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

struct support_archive {
    gzFile file;
};

status support_archive_create(const char *path, struct support_archive **out)
{
    *out = NULL;
    struct support_archive *archive = calloc(1, sizeof *archive);
    if (archive == NULL)
        return status_out_of_memory();
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        int error = errno;
        free(archive);
        return status_make(error == EEXIST ? STATUS_ALREADY_EXISTS : STATUS_FAILED_PRECONDITION,
                           "%s: %s", path, strerrordesc_np(error));
    }
    archive->file = gzdopen(fd, "wb");
    if (archive->file == NULL) {
        close(fd);
        free(archive);
        return status_out_of_memory();
    }
    *out = archive;
    return status_ok();
}

static status write_bytes(struct support_archive *archive, const void *data, size_t size)
{
    if (size == 0 || gzfwrite(data, 1, size, archive->file) == size)
        return status_ok();
    return status_make(STATUS_UNAVAILABLE, "the archive cannot be written: %s",
                       strerrordesc_np(errno));
}

/* The sum is counted as if it were spaces itself. */
static void set_sum(struct header *header)
{
    unsigned sum = 0;
    memset(header->sum, ' ', sizeof header->sum);
    for (size_t i = 0; i < sizeof *header; i++)
        sum += ((const unsigned char *)header)[i];
    snprintf(header->sum, sizeof header->sum, "%06o", sum);
}

status support_archive_add(struct support_archive *archive, const char *name, int64_t time_s,
                           bytes content)
{
    static const char zeroes[BLOCK];
    struct header header = {.type = '0', .magic = "ustar", .version = {'0', '0'}};
    snprintf(header.name, sizeof header.name, "%s", name);
    snprintf(header.mode, sizeof header.mode, "%07o", 0600);
    snprintf(header.owner, sizeof header.owner, "%07o", 0);
    snprintf(header.group, sizeof header.group, "%07o", 0);
    snprintf(header.size, sizeof header.size, "%011zo", content.size);
    snprintf(header.time, sizeof header.time, "%011" PRIo64, (uint64_t)time_s);
    set_sum(&header);
    TRY(write_bytes(archive, &header, sizeof header));
    TRY(write_bytes(archive, content.data, content.size));
    return write_bytes(archive, zeroes, (BLOCK - content.size % BLOCK) % BLOCK);
}

status support_archive_close(struct support_archive *archive)
{
    static const char zeroes[2 * BLOCK];
    status s = write_bytes(archive, zeroes, sizeof zeroes);
    int closed = gzclose(archive->file);
    free(archive);
    if (status_is_ok(s) && closed != Z_OK)
        s = status_make(STATUS_UNAVAILABLE, "the archive cannot be written to its end");
    return s;
}
