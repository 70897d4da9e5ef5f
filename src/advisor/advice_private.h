/* Shared by the files of rules: what each of them looks at, and how it says what it found. */
#ifndef TRESTLE_ADVISOR_ADVICE_PRIVATE_H
#define TRESTLE_ADVISOR_ADVICE_PRIVATE_H

#include "advisor/advice.h"
#include "advisor/thresholds.h"

struct advisor {
    const struct advice_observations *seen;
    struct arena *arena;
    struct advice *out;
    bool is_database; /* keys are in words: Order 5 / Item "a" */
    unsigned hidden;  /* kinds of personal data that no finding shows: personal.h */
    bool hides_families;
    bool hides_tables;  /* names of this one and of others */
    char period[48];    /* that requests were looked at for: "within an hour" */
    char of_period[48]; /* "of the last hour" */
};

/* Fills both. */
void advisor_set_period(struct advisor *advisor);

/* Adds a finding, whose evidence is as printf makes it. */
__attribute__((format(printf, 4, 5))) status advise(struct advisor *advisor,
                                                    enum advice_rule_number rule,
                                                    struct advice_finding **out, const char *format,
                                                    ...);

void finding_set_range(struct advice_finding *finding, bytes start, bytes end);

/* Sampled keys of its range, from all over it. */
void finding_add_keys_of_range(struct advice_finding *finding,
                               const struct advice_observations *seen);

/* Both do nothing when there are ADVICE_KEYS_SHOWN. */
void finding_add_key(struct advice_finding *finding, bytes key);
void finding_add_better(struct advice_finding *finding, bytes key, bytes better);

/* A key of which there should be several: the same with a number behind it. */
status finding_add_shards(struct advisor *advisor, struct advice_finding *finding, bytes key);

/* Rows from all over the sample, not its first ones: the index-th of ADVICE_KEYS_SHOWN. */
const struct advice_row *row_to_show(const struct advice_observations *seen, size_t index);

/* The text that the buffer has, which is freed, as a copy in the arena. */
status keep_text(struct advisor *advisor, struct buffer *text, bytes *out);

/* The minute with the most requests of those that break the rule of gradual rises: over 750 a
 * second, and over one and a half times what any minute had that is five minutes before or more.
 * `requests` is 0 without one. */
struct advice_rise {
    double requests;
    double allowed;
};

struct advice_rise steepest_rise(const struct advice_minute *minutes, size_t count);

/* By severity; of one severity as they were found. */
void sort_findings(struct advice *advice);

/* --- the rules, in groups --- */

status advise_on_keys(struct advisor *advisor);        /* key_rules.c */
status advise_on_rising_keys(struct advisor *advisor); /* those about times and numbers only */
status advise_on_domains(struct advisor *advisor);     /* domain_rule.c */
status advise_on_binary(struct advisor *advisor);      /* binary_rule.c */
status advise_on_padding(struct advisor *advisor);     /* padding_rule.c */
status advise_on_grouping(struct advisor *advisor);    /* grouping_rules.c */
status advise_on_delimiters(struct advisor *advisor);  /* delimiter_rule.c */
status advise_on_sizes(struct advisor *advisor);       /* size_rules.c */
status advise_on_names(struct advisor *advisor);
status advise_on_versions(struct advisor *advisor); /* version_rules.c */
status advise_on_counted_rewrites(struct advisor *advisor);
status advise_on_columns(struct advisor *advisor);  /* column_rules.c */
status advise_on_heat(struct advisor *advisor);     /* heat_rules.c */
status advise_on_usage(struct advisor *advisor);    /* usage_rules.c */
status advise_on_siblings(struct advisor *advisor); /* sibling_rule.c */

/* database_usage_rules.c and index_use_rule.c: of a database; after the others, which may say the
 * same of an entity better */
struct advice_database;
status advise_on_database_usage(struct advisor *advisor, const struct advice_database *database);
status advise_on_index_uses(struct advisor *advisor, const struct advice_database *database);

/* personal_rule.c: of rows, or of such keys and of names that have been counted */
struct personal_counts;
status advise_on_personal_rows(struct advisor *advisor);
status advise_on_personal_data(struct advisor *advisor, const bytes *keys, size_t count,
                               const struct personal_counts *names);

/* Takes what must not be seen out of all findings; after them. */
status hide_personal_data(struct advisor *advisor);

#endif
