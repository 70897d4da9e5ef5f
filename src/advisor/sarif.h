/* Advice as SARIF 2.1.0 (Static Analysis Results Interchange Format, an OASIS standard), which
 * systems for continuous integration show: one run of one tool, of all that was looked at. */
#ifndef TRESTLE_ADVISOR_SARIF_H
#define TRESTLE_ADVISOR_SARIF_H

#include "advisor/report.h"

struct sarif {
    struct buffer results;
    struct buffer notes; /* about tables of which too little was seen */
};

void sarif_free(struct sarif *sarif); /* all zeroes are fine */

/* `subject`: the full name of the table or database. */
void sarif_add(struct sarif *sarif, const char *subject, const struct advice_observations *seen,
               const struct advice_sample *sample, const struct advice *advice);

/* The whole document, appended; `out->failed` says whether there was memory for all of it. */
void sarif_write(const struct sarif *sarif, const char *version, struct buffer *out);

#endif
