/* The data files of an export, held against the MD5s that its manifests name. */
#ifndef TRESTLE_FORMATS_DYNAMO_CHECK_H
#define TRESTLE_FORMATS_DYNAMO_CHECK_H

#include "formats/dynamo_export.h"

/* Checks the file, if a manifest names its MD5. DATA_LOSS; NOT_FOUND, … */
status dynamo_file_check(const struct dynamo_file *file);

/* Checks each of them, on as many threads as there are processors, four at most. Fails with the
 * first, in their order, that is not as it should be. */
status dynamo_files_check(const struct dynamo_file *files, size_t count);

#endif
