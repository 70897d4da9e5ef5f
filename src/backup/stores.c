/* See stores.h. Beside a server what is written to is a catalog, and what a table had in the log; a
 * scan needs no cache to speak of. */
#include "backup/stores.h"

#include "row/fold.h"

enum { OPEN_FILES = 256, BACKGROUND_THREADS = 2 };

static const struct {
    uint64_t cache_bytes;
    uint64_t write_buffer_bytes;
} sizes[] = {
    [BACKUP_STORE_BESIDE] = {16 << 20, 32 << 20},
    [BACKUP_STORE_ALONE] = {64 << 20, 256 << 20},
};

struct store_options backup_store_options(enum backup_store kind, const char *directory,
                                          const struct log *log)
{
    return (struct store_options){.directory = directory,
                                  .fold = &row_fold,
                                  .log = log,
                                  .cache_bytes = sizes[kind].cache_bytes,
                                  .write_buffer_bytes = sizes[kind].write_buffer_bytes,
                                  .open_files = OPEN_FILES,
                                  .background_threads = BACKGROUND_THREADS};
}
