/* See tail_sinks.h. */
#include "cmd/tail/tail_sinks.h"

#include "transfer/change_files.h"
#include "transfer/change_kafka.h"
#include "transfer/change_output.h"

#include <unistd.h>

static status open_files(const struct tail_options *options, struct change_sink *out)
{
    const struct change_files_options files = {
        .directory = options->to + strlen("file:"),
        .rotate_bytes = options->rotate_bytes,
        .rotate_us = options->rotate_us,
        .clock = clock_system(),
    };
    return change_files_create(&files, out);
}

static status open_kafka(const struct tail_options *options, struct change_sink *out)
{
    const struct change_kafka_options kafka = {
        .library = CHANGE_KAFKA_LIBRARY, .url = options->to, .config = options->kafka_config};
    return change_kafka_create(&kafka, out);
}

status tail_sink_check(const struct tail_options *options)
{
    const char *to = options->to;
    if (to == NULL || (tail_options_have_scheme(to, "file:") && to[strlen("file:")] != '\0'))
        return status_ok();
    if (tail_options_have_scheme(to, "kafka:"))
        return change_kafka_check(to);
    return status_make(STATUS_INVALID_ARGUMENT,
                       "--to: %s is neither file:DIRECTORY nor kafka://HOST:PORT/TOPIC", to);
}

status tail_sink_open(const struct tail_options *options, bool (*gives_up)(void),
                      struct change_sink *out)
{
    if (options->to == NULL)
        return change_output_create(STDOUT_FILENO, gives_up, out);
    return tail_options_have_scheme(options->to, "file:") ? open_files(options, out)
                                                          : open_kafka(options, out);
}
