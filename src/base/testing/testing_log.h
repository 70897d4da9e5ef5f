/* A log that a test reads: a file without a name. */
#ifndef TRESTLE_BASE_TESTING_TESTING_LOG_H
#define TRESTLE_BASE_TESTING_TESTING_LOG_H

#include "base/log.h"
#include "base/testing/testing.h"

#include <stdlib.h>
#include <unistd.h>

/* The caller closes `fd`. */
static inline struct log testing_log(void)
{
    char path[] = "/tmp/trestle-log-XXXXXX";
    struct log log = {.fd = mkstemp(path), .level = LOG_INFO, .clock = clock_system()};
    assert_true(log.fd >= 0);
    assert_int_equal(unlink(path), 0);
    return log;
}

/* Into `text`, what has been logged since the last call; it is cut to the size. */
static inline const char *testing_log_take(const struct log *log, char *text, size_t size)
{
    ssize_t read = pread(log->fd, text, size - 1, 0);
    assert_true(read >= 0);
    text[read] = '\0';
    assert_int_equal(ftruncate(log->fd, 0), 0);
    assert_int_equal(lseek(log->fd, 0, SEEK_SET), 0);
    return text;
}

#endif
