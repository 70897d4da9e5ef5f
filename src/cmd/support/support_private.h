/* The parts of a support bundle. Each writes one file of it: text about the server and its machine,
 * with names of tables, and without row keys, values, tokens or keys. A part that cannot find
 * something out fails, and says why. Blocking; one thread. */
#ifndef TRESTLE_CMD_SUPPORT_SUPPORT_PRIVATE_H
#define TRESTLE_CMD_SUPPORT_SUPPORT_PRIVATE_H

#include "base/settings.h"
#include "base/status.h"

struct support {
    const struct settings *settings; /* the server's; NULL: they could not be read */
    const char *settings_refusal;    /* then why not */
    bytes refused;                   /* else those of them that were, a line each */
    const char *endpoint;            /* of the running server */
    const char *data_directory;
    const char *ca;         /* NULL: the system's authorities */
    const char *token_file; /* NULL: none */
    const char *log_file;   /* NULL: none */
    bool tls;
};

/* --- the machine --- */

status support_write_system(const struct support *support, struct buffer *out);
status support_write_limits(const struct support *support, struct buffer *out);
status support_write_disk(const struct support *support, struct buffer *out);
status support_write_files(const struct support *support, struct buffer *out);
status support_write_log(const struct support *support, struct buffer *out);

/* --- the server --- */

status support_write_live(const struct support *support, struct buffer *out);
status support_write_ready(const struct support *support, struct buffer *out);
status support_write_metrics(const struct support *support, struct buffer *out);
/* Write where the server's threads are, and where their CPU time goes within a second. */
status support_write_stacks(const struct support *support, struct buffer *out);
status support_write_profile(const struct support *support, struct buffer *out);
status support_write_served_tables(const struct support *support, struct buffer *out);

/* The same of a stopped server's data directory, which is opened read-only. */
status support_write_stored_tables(const struct support *support, struct buffer *out);

#endif
