/* A DynamoDB export as it lies in a directory:
 *
 *     <export>/manifest-summary.json    what it is an export of, when, how many items
 *     <export>/manifest-files.json      a line for each data file: items, MD5
 *     <export>/manifest-*.checksum      the MD5 of each of the two
 *     <export>/data/NAME.json.gz        or .ion.gz
 *
 * also without manifests: a directory of data files, or such a file itself. Data files keep the
 * names that they have in the manifest, in `data/` of the export or beside it, where incremental
 * exports of one table share theirs.
 *
 * A directory of exports is all of them, in the order of their times: one full export at most,
 * which comes first, and incremental ones. Those that end before the full one are left out: it has
 * what they say. */
#ifndef TRESTLE_FORMATS_DYNAMO_EXPORT_H
#define TRESTLE_FORMATS_DYNAMO_EXPORT_H

#include "base/arena.h"
#include "formats/dynamo_record.h"

struct dynamo_file {
    const char *path;
    enum dynamo_format format; /* by its name: Ion if it has ".ion" in it */
    bool has_manifest;         /* the rest is known */
    uint64_t items;
    const char *md5;        /* base64 */
    int64_t export_time_us; /* -1: not known; of an incremental export, its end */
};

/* An export; all of it is an arena's. */
struct dynamo_export {
    struct dynamo_file *files; /* in the order of exports and their manifests, else of names */
    size_t count;
    bool has_manifest;
    bool is_incremental; /* one of them is */
    uint64_t items;      /* as the manifests say */
};

/* NOT_FOUND if there is no such file, or a file of the manifest is not there; INVALID_ARGUMENT for
 * a directory without data files, or with two full exports; DATA_LOSS for a manifest that cannot be
 * read, that is not of its MD5, or whose sums do not add up, and for a time between exports that
 * none of them has. */
status dynamo_export_open(const char *source, struct arena *arena, struct dynamo_export *out);

#endif
