/* A .tar.gz of files that are given one after the other: POSIX's ustar, compressed by zlib. */
#ifndef TRESTLE_CMD_SUPPORT_SUPPORT_ARCHIVE_H
#define TRESTLE_CMD_SUPPORT_SUPPORT_ARCHIVE_H

#include "base/bytes.h"
#include "base/status.h"

struct support_archive;

/* Makes the file, readable by its owner alone; one that exists is left: ALREADY_EXISTS. */
status support_archive_create(const char *path, struct support_archive **out);

/* `name`: under 100 bytes. `time_s`: since 1970. */
status support_archive_add(struct support_archive *archive, const char *name, int64_t time_s,
                           bytes content);

/* Ends the archive and frees it, whether that succeeds or not. */
status support_archive_close(struct support_archive *archive);

#endif
