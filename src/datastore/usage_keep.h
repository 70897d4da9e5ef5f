/* Marks of the indexes that answer queries, kept with the database's table (cluster/usage_store.h):
 * so "no query since" goes back further than the last start. */
#ifndef TRESTLE_DATASTORE_USAGE_KEEP_H
#define TRESTLE_DATASTORE_USAGE_KEEP_H

struct ds_open_database;

/* Adds what was kept to what is known of a database that was opened. If it cannot be read, uses are
 * known from now on. Blocks. */
void ds_usage_restore(struct ds_open_database *open);

/* Keeps what is known if that has changed since: the store writes it within a window of heat, so
 * that a kill loses the last of them. One thread at a time. Blocks. */
void ds_usage_keep(struct ds_open_database *open);

#endif
