/* The places of exports: a URL gs://BUCKET/PATH is DIRECTORY/BUCKET/PATH, of the server's own
 * directory for exports. An export is named by the last part of its path.
 *
 * Parts are names of files: none is "." or "..", so that nothing outside of the directory is ever
 * named. All memory is the arena's. */
#ifndef TRESTLE_DATASTORE_ADMIN_EXPORT_PLACE_H
#define TRESTLE_DATASTORE_ADMIN_EXPORT_PLACE_H

#include "base/arena.h"
#include "base/status.h"

#define DS_OVERALL_SUFFIX ".overall_export_metadata"

struct ds_export_place {
    const char *directory; /* of the server */
    const char *url;       /* without a slash at its end */
    const char *path;      /* of the export's own directory */
    const char *name;
};

/* The place of an export to the URL: one that says only the bucket gets a name from the time, of
 * `now_us`. INVALID_ARGUMENT for what is no such URL. */
status ds_export_place(const char *directory, const char *url, int64_t now_us, struct arena *arena,
                       struct ds_export_place *out);

/* The place whose overall metadata the URL names. */
status ds_import_place(const char *directory, const char *url, struct arena *arena,
                       struct ds_export_place *out);

/* A file of the export, by its path from the export's directory: INVALID_ARGUMENT if it leads out
 * of it. The path, or the URL. */
status ds_export_file(const struct ds_export_place *place, const char *file, struct arena *arena,
                      const char **out);
status ds_export_file_url(const struct ds_export_place *place, const char *file,
                          struct arena *arena, const char **out);

/* NAME.overall_export_metadata */
status ds_overall_file(const struct ds_export_place *place, struct arena *arena, const char **out);

/* A name of a file that is told from others by the text, and is the text as far as that can be a
 * part of one: for kinds and namespaces. */
status ds_file_name_of(const char *text, struct arena *arena, const char **out);

#endif
