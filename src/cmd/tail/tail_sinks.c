/* See tail_sinks.h. */
#include "cmd/tail/tail_sinks.h"

#include "transfer/change_output.h"

#include <unistd.h>

status tail_sink_open(const struct tail_options *options, struct change_sink *out)
{
    if (options->to == NULL)
        return change_output_create(STDOUT_FILENO, out);
    return status_make(STATUS_INVALID_ARGUMENT,
                       "--to: %s is neither file:DIRECTORY nor kafka://HOST:PORT/TOPIC",
                       options->to);
}
