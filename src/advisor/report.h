/* Advice in words, for a terminal, and as JSON for programs. */
#ifndef TRESTLE_ADVISOR_REPORT_H
#define TRESTLE_ADVISOR_REPORT_H

#include "advisor/advice.h"

/* The sample's origin and size, for the report's head. */
struct advice_sample {
    const char *name; /* the full one of what was looked at; NULL: unknown */
    size_t places;
    uint64_t bytes; /* read */
    bool is_cut;    /* the bytes or the time allowed were used up before all places were read, or
                       the rows were too large to be read; and less than half was */
    bool is_little; /* fewer than a hundred rows, and less than half: places were too few, too */
    bool has_heat;  /* the server answers ListHotTablets */
    bool is_by_server;
    bool is_database; /* rows are entities */
    bool is_made;     /* the rows follow from a description: nothing was read */
    const char *note; /* what could not be looked at, in a sentence; NULL: nothing */
};

/* Whether so much was seen that silence means something: there is a row, and a sample that is not
 * of all has enough for the rules about keys. */
bool advice_is_enough(const struct advice_observations *seen, const struct advice_sample *sample);

/* A sentence about what else could not be seen; "": nothing. */
const char *advice_heat_note(const struct advice_observations *seen);

/* Key bytes as text, no more than some 80 of them. Bytes that are no UTF-8, or not to be seen, are
 * \xNN, and so is a backslash. */
void advice_write_key(bytes key, struct buffer *out);

/* Words that have keys or names in them, some of which may have been written so already: what is no
 * text in them, or not to be seen, becomes \xNN. */
void advice_write_words(bytes words, struct buffer *out);

/* A time in microseconds since 1970 as 2025-10-09T08:53:20Z. */
void advice_write_time(int64_t us, struct buffer *out);

/* All append; `out->failed` says whether there was memory. */
void advice_write_text(const struct advice_observations *seen, const struct advice_sample *sample,
                       const struct advice *advice, struct buffer *out);
/* The members of the object that advice_write_json writes, for callers that add others. */
void advice_write_json_members(const struct advice_observations *seen,
                               const struct advice_sample *sample, const struct advice *advice,
                               struct buffer *out);
void advice_write_json(const struct advice_observations *seen, const struct advice_sample *sample,
                       const struct advice *advice, struct buffer *out);

void advice_write_rules_text(struct buffer *out);
void advice_write_rules_json(struct buffer *out);
void advice_write_rules_markdown(struct buffer *out);

#endif
