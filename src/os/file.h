/* What the server asks of file systems beside what the store does. */
#ifndef TRESTLE_OS_FILE_H
#define TRESTLE_OS_FILE_H

#include "base/status.h"

/* Bytes that this process may still write to the file system that `path` is on. */
status disk_free_bytes(const char *path, uint64_t *out);

#endif
