/* Metrics as Prometheus reads them. See metrics.h. */
#include "base/metrics.h"

#include <stdio.h>

static const char *const type_names[] = {"counter", "gauge", "histogram"};

const char *metric_type_name(enum metric_type type)
{
    return type_names[type];
}

struct text {
    struct buffer *out;
    bool for_everybody;
    const char *last; /* the name of the last sample; NULL: none */
};

/* Paths may have anything in them. */
static void write_escaped(struct buffer *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\n')
            buffer_append_bytes(out, bytes_of("\\n"));
        else if (*c == '"' || *c == '\\')
            buffer_append_format(out, "\\%c", *c);
        else
            buffer_append_byte(out, (uint8_t)*c);
    }
}

/* `{method="…",le="…"}`; `le` is NULL for none. */
static void write_labels(struct buffer *out, const struct metric_sample *sample, const char *le)
{
    char before = '{';
    for (size_t i = 0; i < sample->label_count; i++) {
        buffer_append_format(out, "%c%s=\"", before, sample->labels[i].name);
        write_escaped(out, sample->labels[i].value);
        buffer_append_byte(out, '"');
        before = ',';
    }
    if (le != NULL) {
        buffer_append_format(out, "%cle=\"%s\"", before, le);
        before = ',';
    }
    if (before == ',')
        buffer_append_byte(out, '}');
}

static void write_bucket(struct buffer *out, const struct metric_sample *sample, const char *le,
                         uint64_t count)
{
    buffer_append_format(out, "%s_bucket", sample->name);
    write_labels(out, sample, le);
    buffer_append_format(out, " %llu\n", (unsigned long long)count);
}

static void write_histogram(struct buffer *out, const struct metric_sample *sample)
{
    for (unsigned i = 0; i < METRIC_BOUNDS; i++) {
        char le[32];
        snprintf(le, sizeof le, "%.9g", sample->bounds[i]);
        write_bucket(out, sample, le, sample->buckets[i]);
    }
    write_bucket(out, sample, "+Inf", sample->count);
    buffer_append_format(out, "%s_sum", sample->name);
    write_labels(out, sample, NULL);
    buffer_append_format(out, " %.15g\n%s_count", sample->value, sample->name);
    write_labels(out, sample, NULL);
    buffer_append_format(out, " %llu\n", (unsigned long long)sample->count);
}

static void write_sample(void *context, const struct metric_sample *sample)
{
    struct text *text = context;
    struct buffer *out = text->out;
    if (sample->names_things && text->for_everybody)
        return;
    if (text->last == NULL || strcmp(text->last, sample->name) != 0)
        buffer_append_format(out, "# HELP %s %s\n# TYPE %s %s\n", sample->name, sample->sentence,
                             sample->name, type_names[sample->type]);
    text->last = sample->name;
    if (sample->type == METRIC_TYPE_HISTOGRAM) {
        write_histogram(out, sample);
        return;
    }
    buffer_append_bytes(out, bytes_of(sample->name));
    write_labels(out, sample, NULL);
    buffer_append_format(out, " %.15g\n", sample->value);
}

void metrics_write(struct metrics *metrics, bool for_everybody, struct buffer *out)
{
    struct text text = {.out = out, .for_everybody = for_everybody};
    metrics_visit(metrics, write_sample, &text);
}
