/* Names of resources, as far as access control must understand them: what kind of resource a name
 * stands for, and what the resource lies in.
 *
 * A policy on a resource holds for all that lies in it: the names of these begin with its own name,
 * up to a '/'. */
#ifndef TRESTLE_ACCESS_RESOURCE_H
#define TRESTLE_ACCESS_RESOURCE_H

#include "base/bytes.h"

enum access_kind {
    KIND_PROJECT,
    KIND_PROJECT_ID, /* a project without "projects/" before it, as Datastore names it */
    KIND_INSTANCE,
    KIND_CLUSTER,
    KIND_APP_PROFILE,
    KIND_TABLE,
    KIND_AUTHORIZED_VIEW,
    KIND_SCHEMA_BUNDLE,
    KIND_BACKUP,
    KIND_SNAPSHOT,
    KIND_LOGICAL_VIEW,
    KIND_MATERIALIZED_VIEW,
    KIND_LOCATION,
    KIND_DATABASE, /* of Datastore, as are those up to KIND_OPERATION */
    KIND_COLLECTION_GROUP,
    KIND_COLLECTION_INDEX,
    KIND_FIELD,
    KIND_PROJECT_OPERATION,
    KIND_DATABASE_OPERATION,
    KIND_SERVER,    /* a process, in no project: only the policy of "*" is about it */
    KIND_OPERATION, /* "operations/" before the name of what it works on, and more behind */
    KIND_COUNT
};

/* The form of its names: "projects/P/instances/I". */
const char *kind_form(enum access_kind kind);

/* False if the name has the form of no kind. Segments may be any text but control characters, '-'
 * among them, which lists take for "any". */
bool resource_kind(bytes name, enum access_kind *out);

/* The name without what comes before "projects/" in an operation's name. Not of a KIND_PROJECT_ID,
 * which has none of it. */
bytes resource_root(bytes name);

/* Takes `*prefix` from a resource to what it lies in, from a name to the project; false behind
 * that. */
bool resource_parent(bytes *prefix);

#endif
