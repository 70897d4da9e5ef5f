/* The rules of --inject as text: which calls are delayed or fail, for people who test their
 * clients.
 *
 *     seed=7; ReadRows: delay=50ms, rate=0.1; MutateRow: error=UNAVAILABLE, rate=0.01, table=t
 *
 *     rules    item, and more of them after semicolons
 *     item     "seed=" number, or which calls ":" what happens to them
 *     which    "*", "ReadRows", "google.bigtable.v2.Bigtable/ReadRows" or "…Bigtable/" "*"
 *     what     with commas between: delay=TIME or delay=TIME..TIME, error=CODE, after=MESSAGES,
 *              rate=SHARE, table=ID
 *
 * White space may be anywhere around these. Pure functions: no I/O, no memory of their own. */
#ifndef TRESTLE_FAULTS_FAULT_RULES_H
#define TRESTLE_FAULTS_FAULT_RULES_H

#include "base/bytes.h"
#include "base/status.h"

enum {
    FAULT_RULES_MOST = 32,
    FAULT_RATE_ALWAYS = 1000000, /* rates are in millionths */
    FAULT_DELAY_MOST_US = 60 * 1000 * 1000,
    FAULT_AFTER_MOST = 1000000,
};

struct fault_rule {
    bytes which;
    bytes table;            /* only requests that name a table of this id; empty: all */
    uint32_t rate;          /* of the calls that it is about */
    int64_t delay_least_us; /* what is drawn lies between the two; both 0: none */
    int64_t delay_most_us;
    enum status_code code; /* STATUS_OK: no error */
    uint32_t after;        /* messages of the answer before the error */
};

struct fault_rules {
    struct fault_rule list[FAULT_RULES_MOST];
    size_t count;
    bool has_seed;
    uint64_t seed;
};

/* The rules point into the text. INVALID_ARGUMENT, in words that name the item. */
status fault_rules_parse(bytes text, struct fault_rules *out);

/* Appends them in one form, which is read as the same rules. */
void fault_rules_write(const struct fault_rules *rules, struct buffer *out);

/* Whether a rule is about the method. */
bool fault_rule_names(const struct fault_rule *rule, const char *service, const char *method);

#endif
