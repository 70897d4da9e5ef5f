/* What a description comes to, to look at: what each kind of access takes, the heat map that the
 * load would make, and which line of the description a finding is about. */
#ifndef TRESTLE_DESIGN_SHOW_H
#define TRESTLE_DESIGN_SHOW_H

#include "design/kind.h"
#include "design/load.h"

/* Sets file and line of all findings. */
void show_place_findings(const struct design_table *table, const char *file, struct advice *advice);

/* Both append, and write nothing without accesses; `out->failed` says whether there was memory. The
 * map has SHOW_ROWS rows of characters at most, and a column for each minute; the other are
 * members of an object that go on after others. */
enum { SHOW_ROWS = 24 };
void show_text(const struct design_table *table, const struct load *load, struct buffer *out);
void show_json(const struct design_table *table, const struct load *load, struct buffer *out);

/* What each kind of access to a kind of Datastore is; of it no map is shown. */
void show_kind_text(const struct design_kind *kind, struct buffer *out);
void show_kind_json(const struct design_kind *kind, struct buffer *out);

#endif
