/* Gathering asks a source for the advisor's observations: the schema, a sample of rows, the sizes
 * of ranges, hot tablets, and tables with similar names.
 *
 * Which rows are read is chosen here, and how much of them; a source answers: a Bigtable endpoint
 * (cmd/advise/advise_source.h) or the tables of the process (introspect/table_source.h). It is
 * light: some hundred short reads, one at a time, and no more than the bytes and the time allowed.
 * A question without an answer from the source gives no evidence. */
#ifndef TRESTLE_ADVISOR_GATHER_H
#define TRESTLE_ADVISOR_GATHER_H

#include "advisor/report.h"
#include "advisor/sample_rows.h"

struct advice_cut {
    bytes key;       /* behind the rows; empty: the end of the table */
    uint64_t offset; /* bytes of the table before it */
};

struct advice_cuts {
    struct advice_cut *all; /* the arena's */
    size_t count;
    size_t capacity;
    struct arena *arena;
};

/* A source of observations. Functions may block, and end with CANCELLED when the caller does not
 * wait for the advice any more. Their results are the arena's. */
struct advice_source {
    struct arena *arena;
    void *context;
    const struct advice_source_calls *calls;
};

struct advice_source_calls {
    /* Sets the families, before anything else. NOT_FOUND if there is no such table. */
    status (*read_schema)(struct advice_source *source, struct advice_observations *out);
    /* Where the table can be cut, as SampleRowKeys tells it: advice_cuts_add. */
    status (*read_cuts)(struct advice_source *source, struct advice_cuts *out);
    /* Adds rows; one that is larger than the source reads with the size LIMIT_ROW_BYTES and no
     * cells, as the last one. `*is_whole`: those are all that the range has. */
    status (*read_rows)(struct advice_source *source, struct sample_rows *rows,
                        const struct sample_reading *reading, bool *is_whole);
    /* Makes the size of a row that is cut an estimate of all of it. */
    status (*estimate_row)(struct advice_source *source, struct sample_rows *rows,
                           struct advice_row *row);
    /* Whether the range has exactly one row. */
    status (*is_one_row)(struct advice_source *source, struct sample_rows *rows, bytes start,
                         bytes end, bool *is_one);
    /* Sets `out->weights`, where the source notes what is large. */
    status (*read_weights)(struct advice_source *source, struct advice_observations *out);
    /* Sets `out->heat`, `out->hotspots` and `out->usage`; `*is_answered`: the source tells hot
     * tablets. */
    status (*read_heat)(struct advice_source *source, struct advice_observations *out,
                        bool *is_answered);
    /* Sets `out->siblings`, tables with related names, of which at most SIBLINGS_KNOWN are looked
     * at, and `out->table_count`. */
    status (*read_siblings)(struct advice_source *source, struct advice_observations *out);
};

enum { SIBLINGS_KNOWN = 20 };

struct gather_options {
    struct advice_source source;
    const char *table_id;
    int64_t now_us;
    size_t places;         /* at least 1 */
    size_t rows;           /* at each; at least 1 */
    uint64_t bytes;        /* after which no more is sampled */
    int64_t time_limit_us; /* after which no more is sampled; INT64_MAX: none */
    uint64_t seed;         /* of the places; not 0 */
    bool shows_values;     /* findings do */
    int64_t since_us;      /* as in advice_observations */
};

/* The observations are in the source's arena. */
status gather(const struct gather_options *options, struct advice_observations *out,
              struct advice_sample *sample);

status advice_cuts_add(struct advice_cuts *cuts, const struct advice_cut *cut);

/* Bytes of the whole table. */
uint64_t advice_cuts_size(const struct advice_cuts *cuts);

#endif
