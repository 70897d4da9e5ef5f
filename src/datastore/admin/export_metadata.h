/* An export's metadata, overall and of each set of entities, in Google's form
 * (proto/trestle/export.proto), and the names of their files. */
#ifndef TRESTLE_DATASTORE_ADMIN_EXPORT_METADATA_H
#define TRESTLE_DATASTORE_ADMIN_EXPORT_METADATA_H

#include "base/arena.h"
#include "base/status.h"
#include "trestle/export.pb-c.h"

/* Bytes of metadata that are read at most: a set of 10 TB has a hundred thousand files. */
enum { DS_MOST_METADATA = 64 << 20 };

/* A set's metadata, of all namespaces, or one ("" is the default one), and all kinds, or one; NULL:
 * all. `*file` is its path from the export's directory. */
status ds_set_describe(const char *name_space, const char *kind, struct arena *arena,
                       Export__EntitySet **set, const char **file);

/* Append. */
status ds_overall_encode(const Export__OverallExportMetadata *metadata, struct buffer *out);
status ds_metadata_encode(const Export__ExportMetadata *metadata, struct buffer *out);

/* From the whole file; DATA_LOSS if it is none. The result is the arena's. */
status ds_overall_decode(bytes file, struct arena *arena, Export__OverallExportMetadata **out);
status ds_metadata_decode(bytes file, struct arena *arena, Export__ExportMetadata **out);

#endif
