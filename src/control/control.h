/* The control plane's resources: kept in the catalog's keyspace, all of them in memory.
 *
 * Invariants
 *  1. One edit at a time. An edit is one synced batch, together with what a function of cluster/
 *     writes for it (see edit_txn), and is seen in memory only once it is durable: a crash, or a
 *     failure, finds all of it or nothing.
 *  2. Readers never wait for the disk: they hold a lock for a search, and get references.
 *  3. A resource's parent exists, if its type says that it has one. (Tables are the cluster's; code
 *     that makes something under a table, or deletes one, does it inside an edit.)
 *
 * Threads: any; edits block, so not on event loops. */
#ifndef TRESTLE_CONTROL_CONTROL_H
#define TRESTLE_CONTROL_CONTROL_H

#include "cluster/cluster.h"
#include "control/resource.h"

struct control;

/* Reads what there is. The cluster outlives the control plane. */
status control_open(struct cluster *cluster, const struct log *log, struct control **out);
void control_close(struct control *control); /* NULL is fine */

/* The zone of this server, in names of operations; "local" until it is set, before the first one.
 * It outlives the control plane. */
void control_set_location(struct control *control, const char *zone);
const char *control_location(const struct control *control);

struct cluster *control_cluster(struct control *control);
const struct log *control_log(struct control *control);

/* --- reading --- */

/* With a reference for the caller. NOT_FOUND `Not found: <name>`. */
status control_find(struct control *control, enum resource_kind kind, const char *name,
                    struct resource **out);
bool control_has(struct control *control, enum resource_kind kind, const char *name);

/* Calls `visit` for each resource of the kind under the parent, in the order of names, from the
 * first after the name `after` (empty: from the start), until it returns false. `parent` is a name;
 * its last segments may be `-`, which stands for any. Each resource is as it is when its turn
 * comes; one that is there all the time is visited exactly once, whatever is changed meanwhile.
 * RESOURCE_EXHAUSTED without memory. */
typedef bool resource_visitor(void *context, struct resource *resource);
status control_list(struct control *control, enum resource_kind kind, const char *parent,
                    const char *after, resource_visitor *visit, void *context);

/* Whether control_list would visit any. */
bool control_has_any(struct control *control, enum resource_kind kind, const char *parent);

/* --- changing --- */

struct edit;

/* Runs `change`, which looks at what there is and stages what is to be; if it succeeds, that is
 * made durable, and then visible. Returns its failure, or the disk's: then nothing has changed. */
typedef status edit_function(void *context, struct edit *edit);
status control_edit(struct control *control, edit_function *change, void *context);

/* How many edits there were since the start, at least: it is another number after each. What is
 * looked at behind that has all of them. Cheap, any thread. */
uint64_t control_edit_count(const struct control *control);

/* The version of the last edit: later ones have greater versions. May wait for one that is under
 * way. Any thread. */
uint64_t control_last_version(struct control *control);

/* Calls `look` while no edit is under way: what edits change, tables included, stands still. */
status control_look(struct control *control, status (*look)(void *context), void *context);

struct control *edit_control(const struct edit *edit);

/* The version that every resource of this edit gets, unless it brings its own: never 0, never given
 * before here. */
uint64_t edit_version(const struct edit *edit);

/* The resource as staged, or else as it stands; NULL if there is none. Valid until the edit ends.
 */
const struct resource *edit_find(const struct edit *edit, enum resource_kind kind,
                                 const char *name);

/* Stages a resource, new or in place of the one of that name. The body is encoded at once. */
status edit_put(struct edit *edit, enum resource_kind kind, const char *name,
                const ProtobufCMessage *body, bytes extra);

/* The same, if there is none of that name (ALREADY_EXISTS) and its parent exists (NOT_FOUND). */
status edit_create(struct edit *edit, enum resource_kind kind, const char *name,
                   const ProtobufCMessage *body, bytes extra);

/* Stages a resource as it is, of a peer: with its version, and so its etag. Versions of later edits
 * are greater. Keeps a reference of its own. */
status edit_put_as_is(struct edit *edit, struct resource *resource);

/* Stages the end of a resource, if there is one, and of all records under it. */
status edit_delete(struct edit *edit, enum resource_kind kind, const char *name);

/* The same for records under a name that is not a resource here: a table's. */
status edit_delete_under(struct edit *edit, const char *name);

/* The same, but all of it is kept under the id of the table, which is deleted and can come back;
 * cluster_undelete_table, and the table's end for good, remove it from there. */
status edit_keep_under(struct edit *edit, const char *name, uint64_t table_id);

/* Stages what was kept so, as it was: versions, and with them etags, included. */
status edit_put_back(struct edit *edit, uint64_t table_id);

/* The staged changes, for a function of cluster/, which writes them together with changes of its
 * own. Nothing may be staged afterwards, and `change` returns what the write returned. */
status edit_txn(struct edit *edit, struct catalog_txn **out);

/* --- watching --- */

/* A watcher is told of every change of the resources of one kind. */
struct control_watcher {
    struct control_watcher *next; /* the control plane's */
    enum resource_kind kind;
    void *context;
    /* The change is durable, and no other happens meanwhile. `resource` is NULL if it is gone. */
    void (*changed)(void *context, const char *name, const struct resource *resource);
};

/* Tells of all that there are, and from then on of what changes. The watcher outlives the
 * control plane. */
void control_watch(struct control *control, struct control_watcher *watcher);

/* --- for the doctor --- */

struct control_check {
    void *context;
    bool (*has_table)(void *context, const char *name);
    bool (*has_deleted_table)(void *context, uint64_t id);
    /* Called for each record that cannot be right. */
    void (*report)(void *context, const char *name, const char *what);
};

/* Reads all records of a catalog; `*count` of them were there. */
status control_verify(struct keyspace *catalog, const struct control_check *check, size_t *count);

#endif
