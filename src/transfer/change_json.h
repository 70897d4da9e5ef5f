/* Changes as JSON, one a line, as rows are exported (formats/row_json.h): keys, qualifiers and
 * values are strings or, where they are not UTF-8, objects with their base64; times are in
 * microseconds.
 *
 *     {"key":"r1","commit":1764387792123456,"tiebreaker":0,"cluster":"c","mutations":[
 *       {"set_cell":{"family":"f","qualifier":"q","timestamp":1764387792123000,"value":"v"}},
 *       {"delete_from_column":{"family":"f","qualifier":"q","start":1000,"end":2000}},
 *       {"delete_from_family":{"family":"f"}},
 *       {"add_to_cell":{"family":"n","qualifier":"q","timestamp":0,"input":5}},
 *       {"merge_to_cell":{"family":"n","qualifier":"q","timestamp":0,"input":{"base64":"AP8="}}}]}
 *
 * A collection has "collection":true and no cluster. A bound of a deletion that is open is left
 * out. */
#ifndef TRESTLE_TRANSFER_CHANGE_JSON_H
#define TRESTLE_TRANSFER_CHANGE_JSON_H

#include "client/change_assembly.h"

struct regex;

/* Appends the change, and a line's end; of its mutations those of families that match, if there is
 * an expression. Nothing if that leaves none. `out->failed` says whether there was memory. */
void change_json_write(const struct feed_change *change, const struct regex *families,
                       struct buffer *out);

#endif
