/* See tail_status.h. The lag is by the wall clock: the server's time that has been reached, before
 * this machine's. */
#include "cmd/tail/tail_status.h"

#include "base/clock.h"
#include "transfer/text_file.h"
#include "wire/json.h"

#include <inttypes.h>
#include <stdio.h>

enum { METRICS_US = 10 * 1000 * 1000 };

void tail_status_begin(struct tail_status *self, const struct tail_options *options, int64_t now_us)
{
    *self = (struct tail_status){.table = options->table,
                                 .metrics_file = options->metrics_file,
                                 .line_us = options->status_us,
                                 .metrics_us = options->status_us,
                                 .metrics_due_us = now_us};
    if (self->metrics_us == 0)
        self->metrics_us = METRICS_US;
    self->line_due_us = now_us + self->line_us;
}

static double lag_seconds(int64_t watermark_us)
{
    int64_t lag_us = clock_wall_us(clock_system()) - watermark_us;
    return lag_us > 0 ? (double)lag_us / 1e6 : 0;
}

static void tell_line(const struct tail_status *self, int64_t watermark_us, size_t partitions)
{
    fprintf(stderr, "%" PRIu64 " changes, %" PRIu64 " bytes; ", self->changes, self->bytes);
    if (watermark_us > 0)
        fprintf(stderr, "%.1f s behind; ", lag_seconds(watermark_us));
    fprintf(stderr, partitions == 1 ? "%zu partition\n" : "%zu partitions\n", partitions);
}

static void append_metric(struct buffer *out, const struct tail_status *self, const char *name,
                          const char *type, const char *help)
{
    buffer_append_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
    buffer_append_format(out, "%s{table=", name);
    json_encode_string(bytes_of(self->table), out);
    buffer_append_format(out, "} ");
}

static status write_metrics(const struct tail_status *self, int64_t watermark_us, size_t partitions)
{
    struct buffer text = {0};
    append_metric(&text, self, "trestle_tail_changes_total", "counter", "Changes that were given.");
    buffer_append_format(&text, "%" PRIu64 "\n", self->changes);
    append_metric(&text, self, "trestle_tail_bytes_total", "counter", "Bytes of their lines.");
    buffer_append_format(&text, "%" PRIu64 "\n", self->bytes);
    append_metric(&text, self, "trestle_tail_partitions", "gauge", "Partitions that are followed.");
    buffer_append_format(&text, "%zu\n", partitions);
    if (watermark_us > 0) {
        append_metric(&text, self, "trestle_tail_lag_seconds", "gauge",
                      "What was committed before this time ago has been given.");
        buffer_append_format(&text, "%.6f\n", lag_seconds(watermark_us));
    }
    buffer_append_byte(&text, '\0');
    status s = text.failed ? status_out_of_memory()
                           : text_file_replace(self->metrics_file, (const char *)text.data);
    buffer_free(&text);
    return s;
}

status tail_status_tell(struct tail_status *self, int64_t watermark_us, size_t partitions,
                        int64_t now_us)
{
    if (self->line_us > 0 && now_us >= self->line_due_us) {
        self->line_due_us = now_us + self->line_us;
        tell_line(self, watermark_us, partitions);
    }
    if (self->metrics_file == NULL || now_us < self->metrics_due_us)
        return status_ok();
    self->metrics_due_us = now_us + self->metrics_us;
    return write_metrics(self, watermark_us, partitions);
}

status tail_status_end(struct tail_status *self, int64_t watermark_us, size_t partitions)
{
    if (self->line_us > 0)
        tell_line(self, watermark_us, partitions);
    return self->metrics_file == NULL ? status_ok() : write_metrics(self, watermark_us, partitions);
}
