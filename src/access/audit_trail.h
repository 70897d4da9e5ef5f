/* The latest administrative calls, as many as LIMIT_AUDIT_ENTRIES, for the page that shows them
 * (introspect/audit_entries.c). They are in memory alone: what is to be kept is in the audit log.
 *
 * Any thread, all of it. */
#ifndef TRESTLE_ACCESS_AUDIT_TRAIL_H
#define TRESTLE_ACCESS_AUDIT_TRAIL_H

#include "base/arena.h"
#include "base/status.h"

struct audit_trail;

/* A call that has ended. */
struct audit_entry {
    int64_t ended_us; /* clock_wall_us */
    int64_t duration_us;
    enum status_code code;
    const char *service; /* these two outlive the trail */
    const char *method;
    bytes principal; /* empty: unknown */
    bytes resource;  /* as it came: any bytes */
    bytes source;    /* what that was made from; empty: nothing */
    bytes changes;   /* in words; empty: none */
    bytes address;
};

/* `since_us`: clock_wall_us, the time from which on calls are noted. */
status audit_trail_create(int64_t since_us, struct audit_trail **out);
void audit_trail_destroy(struct audit_trail *trail); /* NULL is fine */

int64_t audit_trail_since_us(const struct audit_trail *trail);

/* Copies the entry, of its texts 1 KB each; the oldest makes room. Without memory it is left out.
 */
void audit_trail_add(struct audit_trail *trail, const struct audit_entry *entry);

/* The latest, at most `most`, the last that was added first; all of it in the arena. */
status audit_trail_list(struct audit_trail *trail, size_t most, struct arena *arena,
                        struct audit_entry **entries, size_t *count);

#endif
