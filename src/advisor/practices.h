/* The practices of the source pages, which rule speaks of which, and how each is seen: the page
 * docs/reference/practices.md, and what is told of a rule beside its words. */
#ifndef TRESTLE_ADVISOR_PRACTICES_H
#define TRESTLE_ADVISOR_PRACTICES_H

#include "advisor/advice.h"

enum practice_page { PRACTICE_BIGTABLE, PRACTICE_DATASTORE, PRACTICE_PAGES };

enum practice_sight {
    PRACTICE_DATA,
    PRACTICE_TRAFFIC,
    PRACTICE_BOTH,
    PRACTICE_REFUSED, /* by the API */
    PRACTICE_UNSEEN,
    PRACTICE_SIGHTS,
};

struct practice {
    const char *number;
    enum practice_page page;
    const char *heading; /* of the page's section */
    const char *words;
    enum practice_sight seen;
    const char *rules; /* their ids, with blanks between them; "": none */
    const char *how;   /* it is seen, or why not */
    const char *tests; /* file:function, with blanks between them; "": none */
};

extern const struct practice practices[];
extern const size_t practice_count;

/* The name of a page of practices. */
const char *practice_page_name(enum practice_page page);

/* Whether the practice names the rule. */
bool practice_names(const struct practice *practice, const char *rule);

/* A case that the advisor was wrong about once: trials.def. */
struct trial {
    const char *what;
    const char *told;
    const char *tests; /* as a practice's */
};

extern const struct trial trials[];
extern const size_t trial_count;

struct advice_example {
    const char *rule;
    const char *before;
    const char *after;
};

extern const struct advice_example advice_examples[];
extern const size_t advice_example_count;

/* NULL: there is none, as for a rule of another program. */
const struct advice_example *advice_example_of(const char *rule);

/* docs/reference/practices.md, appended; `out->failed` says whether there was memory. */
void advice_write_practices_markdown(struct buffer *out);

#endif
