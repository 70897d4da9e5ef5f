/* The changes made by an administrative call, or by reading files again, for a line of the audit
 * log. */
#ifndef TRESTLE_ACCESS_AUDIT_CHANGES_H
#define TRESTLE_ACCESS_AUDIT_CHANGES_H

#include "access/policies.h"
#include "access/tokens.h"
#include "base/arena.h"
#include "base/log.h"

enum { AUDIT_CHANGES_MOST = 64, AUDIT_CHANGE_FIELDS = 5 };

/* Field by field; the first is "action": ADD, REMOVE, CHANGE, … The last has kind LOG_FIELD_END. */
struct audit_change {
    struct log_field fields[AUDIT_CHANGE_FIELDS + 1];
};

/* Texts are others', and outlive it. All zeroes: nothing. */
struct audit_changes {
    size_t count;    /* of `list` */
    int64_t further; /* changes that there was no room for */
    struct audit_change list[AUDIT_CHANGES_MOST];
};

/* `fields`, AUDIT_CHANGE_FIELDS at most, end with an entry of kind LOG_FIELD_END. */
void audit_changes_add(struct audit_changes *changes, const struct log_field *fields);
#define AUDIT_CHANGE(changes, ...) audit_changes_add(changes, LOG_FIELDS_(__VA_ARGS__))

/* Appends them for people: "ADD role=roles/viewer member=user:a; REMOVE …". Texts are cut to
 * AUDIT_TEXT_MOST bytes. */
enum { AUDIT_TEXT_MOST = 1024 };
void audit_changes_write(const struct audit_changes *changes, struct buffer *out);

/* The text cut to the bytes that a line has, without part of a character. */
bytes audit_text(bytes text);

/* --- tokens --- */

/* Notes which have come, gone, and changed their date: by whose they are. Texts that are made for
 * it are in the arena; without memory dates are left out. */
void audit_compare_tokens(const struct tokens *before, const struct tokens *after,
                          struct arena *arena, struct audit_changes *changes);

/* --- bindings --- */

/* A grant: a member has a role, on a resource. */
struct audit_grant {
    bytes resource; /* empty: is known otherwise */
    bytes role;
    bytes member;
};

/* The bindings' grants, in an array with room for `audit_grant_count` of them. */
size_t audit_grant_count(const struct access_binding *bindings, size_t count);
void audit_grants_of(bytes resource, const struct access_binding *bindings, size_t count,
                     struct audit_grant *out);

/* Notes which grants have come and which have gone; sorts both arrays. */
void audit_compare_grants(struct audit_grant *before, size_t before_count,
                          struct audit_grant *after, size_t after_count,
                          struct audit_changes *changes);

#endif
