/* Tables whose names say that they are parts of one: "events_2024_01", "events_2024_02". */
#ifndef TRESTLE_ADVISOR_SIBLINGS_H
#define TRESTLE_ADVISOR_SIBLINGS_H

#include <stdbool.h>

/* Whether the names differ, but have their first word in common, or their last: words of three
 * characters or more, between "-", "_" and ".": acme-orders and globex-orders. */
bool share_first_word(const char *table_id, const char *other_id);
bool share_last_word(const char *table_id, const char *other_id);

/* Whether they are related in any of these ways. */
bool may_be_parts(const char *table_id, const char *other_id);

/* Whether the names differ, and differ in their numbers only, beside letters that they share. */
bool are_siblings(const char *table_id, const char *other_id);

#endif
