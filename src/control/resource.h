/* A resource: one named record of the control plane, as it was at one time.
 *
 * Resources are immutable and counted by reference: a change makes a new one in the place of the
 * old. Where they are kept is control.h's business.
 *
 * In the store a resource is a record of the catalog's keyspace,
 *
 *     'R' <kind, one letter> <name>      Resource (proto/trestle/catalog.proto)
 *
 * so that all records of one kind under one parent are neighbours. */
#ifndef TRESTLE_CONTROL_RESOURCE_H
#define TRESTLE_CONTROL_RESOURCE_H

#include "base/arena.h"
#include "base/status.h"

#include <protobuf-c/protobuf-c.h>
#include <stdatomic.h>

/* The letters stand in keys on the disk. */
enum resource_kind {
    RESOURCE_AUTHORIZED_VIEW = 'a',
    RESOURCE_CLUSTER = 'c',
    RESOURCE_FIELD = 'f', /* of a Datastore database: when entities expire */
    RESOURCE_INSTANCE = 'i',
    RESOURCE_LOGICAL_VIEW = 'l',
    RESOURCE_MATERIALIZED_VIEW = 'm',
    RESOURCE_OPERATION = 'o', /* see operations.h */
    RESOURCE_APP_PROFILE = 'p',
    RESOURCE_SCHEMA_BUNDLE = 's',
    RESOURCE_POLICY = 'y', /* has the name of what it is the policy of */
};

/* The properties that all resources of a kind share. */
struct resource_type {
    enum resource_kind kind;
    const char *label;         /* as errors say it: "App profile" */
    const char *collection;    /* between parent and id: "appProfiles"; NULL: no such form */
    enum resource_kind parent; /* 0: a project; RESOURCE_TABLE_PARENT: a table of the cluster's */
    const ProtobufCMessageDescriptor *message;
};
enum { RESOURCE_TABLE_PARENT = 't' };

/* NULL for a letter that is no kind. */
const struct resource_type *resource_type(enum resource_kind kind);

/* All of them, one after the other, by kind; NULL at the end. */
const struct resource_type *resource_type_at(size_t index);

/* An object that a module has made of a resource and keeps with it; the first member of its
 * structure. */
struct resource_kept {
    void (*destroy)(struct resource_kept *kept);
};

struct resource {
    atomic_uint references;
    struct resource_kept *_Atomic kept; /* NULL: nothing */
    enum resource_kind kind;
    uint64_t version; /* see Resource in catalog.proto */
    const char *name;
    bytes body;
    bytes extra;
};

/* Whether the peers of a server have it, too (replica/schema_snapshot.h). Each cluster has for
 * itself its operations and its backups' policies; and Datastore's databases are not shared so far.
 */
bool resource_is_shared(enum resource_kind kind, const char *name);

/* Copies what it is given; one reference. RESOURCE_EXHAUSTED without memory. */
status resource_create(enum resource_kind kind, const char *name, uint64_t version, bytes body,
                       bytes extra, struct resource **out);
void resource_retain(struct resource *resource);
void resource_release(struct resource *resource); /* NULL is fine */

/* The version of the edit that made it; those of edits that have changed it since are `version`.
 * Not of an operation. */
uint64_t resource_made_in(const struct resource *resource);

/* Keeps it as long as the resource is there, unless another thread has been faster: then destroys
 * it. Returns what is kept. */
struct resource_kept *resource_keep(struct resource *resource, struct resource_kept *kept);

/* The body as a message of the kind's type; all of it is in the arena. */
status resource_decode(const struct resource *resource, struct arena *arena,
                       ProtobufCMessage **out);

/* How much of `<parent>/<collection>/<id>` is the parent; 0 if the name has another form. */
size_t resource_parent_size(const char *name);

/* Parents whose segments may be `-`, which stands for any: how much of such a one's name all names
 * under it share, and whether a name lies under it. */
size_t name_shared_size(const char *parent);
bool name_is_under(const char *name, const char *parent);

/* By kind, then by name: the order of keys. */
int resource_compare(const struct resource *resource, enum resource_kind kind, const char *name);

/* --- records --- */

void resource_append_key(struct buffer *key, enum resource_kind kind, const char *name);
void resource_append_value(struct buffer *value, const struct resource *resource);

/* DATA_LOSS for what is no such record. */
status resource_parse(bytes key, bytes value, struct arena *arena, struct resource **out);

enum { RESOURCE_KEY = 'R' }; /* the first byte of each key */

#endif
