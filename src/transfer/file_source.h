/* A source: the rows of files, CSV, JSON lines or Avro, one file behind the other. */
#ifndef TRESTLE_TRANSFER_FILE_SOURCE_H
#define TRESTLE_TRANSFER_FILE_SOURCE_H

#include "formats/row_file.h"
#include "transfer/source.h"

struct file_source;

/* `format` is copied; what it points to, and the paths ("-" is standard input), must outlive the
 * source. Opens the first file. Fails as row_file_open. */
status file_source_create(const char *const *paths, size_t count, const struct row_format *format,
                          struct file_source **out);
void file_source_destroy(struct file_source *source); /* NULL is fine */

/* What is done with the second of two records; UNIQUE_NOTHING unless it is said, before the
 * interface is asked for. With UNIQUE_LAST records of one row are written in their order. */
void file_source_set_unique(struct file_source *source, enum transfer_unique unique);

struct transfer_source file_source_interface(struct file_source *source);

#endif
